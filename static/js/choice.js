// A scale that has been answered is no longer marked as missing; a refused form puts the focus on what is missing.
document.addEventListener("change", (event) => {
  event.target.closest(".likert, .choice")?.classList.remove("missing");
});

const showErrors = () => document.getElementById("errors")?.focus();
document.addEventListener("htmx:afterSettle", showErrors);
showErrors();
