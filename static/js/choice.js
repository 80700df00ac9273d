// A scale that has been answered is no longer marked as missing. After a submission the focus is where work goes on:
// at what is missing, or at the head of the next task.
document.addEventListener("change", (event) => {
  event.target.closest(".likert, .choice")?.classList.remove("missing");
});

const place = () => document.getElementById("errors") ?? document.querySelector("#work h1[tabindex]");

document.addEventListener("htmx:afterSettle", ({ target }) => {
  if (target.id === "work") place()?.focus();
});
document.getElementById("errors")?.focus();
