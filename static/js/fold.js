// Folds long earlier turns to their beginning; a button shows all of one.
const texts = document.querySelector("script[data-less]").dataset;

function fold() {
  // A turn that has its button stays as it is: this runs again whenever htmx has changed a part of the page.
  for (const turn of document.querySelectorAll("[data-fold]:not(:has(> .unfold))")) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "unfold" });
    const show = (all) => {
      turn.classList.toggle("folded", !all);
      button.textContent = all ? texts.less : texts.more;
      button.setAttribute("aria-expanded", all);
    };
    button.addEventListener("click", () => show(turn.classList.contains("folded")));
    turn.append(button);
    show(false);
    // A link in the hidden part that gets the focus must be seen.
    turn.addEventListener("focusin", ({ target }) => { if (target !== button) show(true); });
  }
}

fold();
document.addEventListener("htmx:afterSettle", fold);
