// A scale that has been answered is no longer marked as missing. After a submission the focus is where work goes on:
// at what is missing, or at the head of the next task.
document.addEventListener("change", (event) => {
  event.target.closest(".likert, .choice")?.classList.remove("missing");
});

const place = () => document.getElementById("errors") ?? document.querySelector("#work h1[tabindex]");

document.addEventListener("htmx:afterSettle", ({ target }) => {
  if (target.id !== "work") return;
  place()?.focus();
  // A live region that was already there is read out; one that comes with its text often is not.
  const texts = [...document.querySelectorAll("#work .message:not(.error)")].map((each) => each.textContent.trim());
  document.getElementById("live").textContent = texts.join(" ");
});
document.getElementById("errors")?.focus();
