// A scale that has been answered is no longer marked as missing; a refused form puts the focus on what is missing.
document.addEventListener("change", (event) => {
  const group = event.target.closest(".likert, .choice");
  if (group) group.classList.remove("missing");
});

const errors = document.getElementById("errors");
if (errors) errors.focus();
