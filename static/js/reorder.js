// Lets rows of a form be dragged by their grips, or moved by their buttons, without asking the server: the order of the
// rows on the page is the order that is sent.
const rowsOf = (list) => [...list.querySelectorAll(":scope > [data-row]")];
let dragged = null;

function moved(row) {
  row.closest("form").dispatchEvent(new CustomEvent("reorder", { bubbles: true }));
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-move]"), row = button?.closest("[data-row]");
  if (!row) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (button.dataset.move === "up") row.previousElementSibling?.before(row);
  else row.nextElementSibling?.after(row);
  button.focus();
  moved(row);
}, { capture: true });

document.addEventListener("pointerdown", (event) => {
  const grip = event.target.closest("[data-grip]");
  if (!grip) return;
  event.preventDefault();
  dragged = grip.closest("[data-row]");
  dragged.classList.add("dragged");
});
document.addEventListener("pointermove", (event) => {
  if (!dragged) return;
  const list = dragged.parentElement;
  const below = rowsOf(list).find((row) => row !== dragged && event.clientY < row.getBoundingClientRect().top + row.offsetHeight / 2);
  if (below) { if (below !== dragged.nextElementSibling) below.before(dragged); } else list.append(dragged);
});
for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => {
  if (!dragged) return;
  dragged.classList.remove("dragged");
  moved(dragged);
  dragged = null;
});
