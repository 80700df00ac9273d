// The questions of the form, as they stand on the page: which there are, what they are called and what is answered.
export const NARROW = matchMedia("(max-width: 640px)"); // one response is shown at a time
const QUESTIONS = ".segments, .likert, .choice, .ranking, .written, .edit";

export const cockpit = () => document.querySelector(".cockpit:has(> #rating)");
export const inDock = (element) => element?.closest(`.edit`) ?? element?.closest(QUESTIONS);
const isUnsafe = (category) => category.closest(".scales")?.querySelector('[name^="safe-"][value="0"]:checked');
// A question within another one, such as the texts of a better version, is shown with it.
export const every = () => [...document.querySelectorAll(`#rating :is(${QUESTIONS})`)].filter((one) => inDock(one) === one);
export const isAsked = (question) => !question.matches(".category") || isUnsafe(question);

export const letterOf = (question) => question.closest(".sheet")?.id.slice(-1) ?? "";
export const nameOf = (question) => (question.querySelector("legend, label, caption, summary")?.textContent ?? "").replace(/\s+/g, " ").trim();

export function isComplete(question) {
  if (question.matches(".ranking")) return [...question.querySelectorAll("select")].every(({ value }) => value);
  return question.matches(".segments") ? answerOf(question) === "\u2713" : Boolean(answerOf(question));
}

export function answerOf(question) {
  if (question.matches(".segments")) {
    const cells = [...question.querySelectorAll(".cell")], given = cells.filter(({ value }) => value !== "").length;
    return given === cells.length ? "\u2713" : `${given}/${cells.length}`;
  }
  if (question.matches(".ranking")) return ranked(question);
  const radios = [...question.querySelectorAll("[type=radio]")];
  if (radios.length) return String(radios.findIndex(({ checked }) => checked) + 1 || "");
  return [...question.querySelectorAll("textarea, input:not([type=checkbox])")].some(({ value }) => value.trim()) ? "\u2713" : "";
}

// B > C = D: a response without a rank is left out.
function ranked(board) {
  const items = [...board.querySelectorAll("[data-response]")], rank = (item) => Number(item.querySelector("select").value);
  const placed = items.filter(rank).sort((one, other) => rank(one) - rank(other));
  return placed.map((item, at) => (at ? (rank(item) === rank(placed[at - 1]) ? " = " : " > ") : "") + item.dataset.response).join("");
}

// The first question of a place that has no answer yet.
export function firstOf(place) {
  const all = every().filter((one) => place.contains(one) && isAsked(one));
  return all.find((one) => one.matches("[data-question], .segments") && !isComplete(one)) ?? all[0];
}
