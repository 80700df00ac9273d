// Counts the answers: of the whole task in the foot, and of each response beside its letter.
const isAsked = (question) => !question.matches(".category") || isUnsafe(question.closest(".scales"));
const isUnsafe = (scales) => Boolean(scales?.querySelector('[name^="safe-"][value="0"]:checked'));

// Radios, or fields that each want a value.
function isAnswered(question) {
  if (question.querySelector("[type=radio]")) return Boolean(question.querySelector("[type=radio]:checked"));
  return [...question.querySelectorAll("input, select, textarea")].every((field) => field.value.trim() !== "");
}

function count(place) {
  const asked = [...place.querySelectorAll("[data-question]")].filter(isAsked);
  return { asked: asked.length, answered: asked.filter(isAnswered).length };
}

function show() {
  const form = document.getElementById("rating"), bar = document.querySelector(".foot progress");
  if (!form || !bar) return;
  const { asked, answered } = count(form), text = document.getElementById("answered");
  bar.max = asked;
  bar.value = answered;
  text.textContent = text.dataset.text.replace("{answered}", answered).replace("{asked}", asked);
  for (const link of form.querySelectorAll(".letters a")) {
    const sheet = count(form.querySelector(link.hash));
    link.classList.toggle("done", sheet.answered === sheet.asked);
    link.querySelector(".count").textContent = sheet.asked ? ` ${sheet.answered}/${sheet.asked}` : "";
  }
}

for (const change of ["input", "drafts:filled", "htmx:afterSettle"]) document.addEventListener(change, show);
show();
