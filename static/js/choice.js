// Shows the chosen level's text under its scale: on narrow screens the five texts do not fit beside each other.
document.addEventListener("change", (event) => {
  const input = event.target;
  if (!(input instanceof HTMLInputElement) || input.type !== "radio") return;
  const scale = input.closest(".likert");
  if (scale) scale.classList.remove("missing");
});

const errors = document.getElementById("errors");
if (errors) errors.focus();
