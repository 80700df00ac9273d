// A question that has been answered is no longer marked as missing. After a submission the focus is where work goes on:
// at what is missing, or at the head of the next task.
document.addEventListener("change", (event) => {
  const group = event.target.closest(".likert.missing, .choice.missing, .written.missing");
  if (!group || event.target.type === "checkbox") return;
  group.classList.remove("missing");
  group.querySelector(".error-text")?.remove();
});

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
