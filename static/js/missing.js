// A question that has been answered is no longer marked as missing. After a submission the focus is where work goes on:
// at what is missing, or at the head of the next task.
document.addEventListener("change", (event) => {
  const group = event.target.closest(".likert.missing, .choice.missing, .written.missing");
  if (group && event.target.type !== "checkbox") answer(group);
});

// The list above the task shows what is still missing; it goes with the last of it, so that the page moves once.
export function answer(group) {
  group.classList.remove("missing");
  group.querySelector(".error-text")?.remove();
  const errors = document.getElementById("errors");
  for (const link of errors?.querySelectorAll("a") ?? []) {
    if (group.contains(document.getElementById(link.hash.slice(1)))) link.parentElement.classList.add("done");
  }
  if (errors && !errors.querySelector("li:not(.done)")) errors.remove();
}

function goOn() {
  const errors = document.getElementById("errors");
  errors?.focus({ preventScroll: true });
  errors?.scrollIntoView({ block: "start" });
  return Boolean(errors);
}

document.addEventListener("htmx:afterSettle", ({ target }) => {
  if (target.id !== "work" || goOn()) return;
  // A link to a missing answer has left its place in the address, which means nothing on the next task.
  if (location.hash) history.replaceState(history.state, "", location.pathname + location.search);
  scrollTo(0, 0);
  document.querySelector("#work h1[tabindex]")?.focus({ preventScroll: true });
});
goOn(); // for a form that was submitted without htmx
