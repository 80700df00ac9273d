// Lists the keys of the controls on this page, as they are now, whenever the dialog is asked for.
document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-opens=help]")) return;
  const list = document.querySelector("#help [data-keys]");
  const shown = [...document.querySelectorAll("[data-key]")].filter((control) => control.checkVisibility());
  list.replaceChildren(...shown.flatMap((control) => {
    const [term, cap, text] = ["dt", "kbd", "dd"].map((name) => document.createElement(name));
    cap.textContent = control.dataset.key.length === 1 ? control.dataset.key.toUpperCase() : control.dataset.key;
    term.append(cap);
    text.textContent = control.dataset.label ?? control.textContent.trim();
    return [term, text];
  }));
});
