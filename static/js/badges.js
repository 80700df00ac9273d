// The rank stands on the response itself, where it is read. A click on it places the response, or takes it back; it can
// be dragged into the order, which comes into the dock for it.
import { drag, drop, items, nameOf, rankOf, toggle } from "./ranking.js";

function made(board, item) {
  const badge = Object.assign(document.createElement("button"), { type: "button", className: "badge", draggable: true });
  badge.addEventListener("click", () => toggle(board, item));
  badge.addEventListener("dragstart", (event) => {
    drag(event, item);
    // Not within the event: a page that changes then ends the drag.
    setTimeout(() => board.dispatchEvent(new CustomEvent("question:chosen", { bubbles: true })));
  });
  badge.addEventListener("dragend", () => drop(board));
  return badge;
}

function show(board) {
  for (const item of items(board)) {
    const head = document.getElementById(`head-${item.dataset.response}`);
    if (!head || !item.draggable) continue;
    const badge = head.querySelector(".badge") ?? head.appendChild(made(board, item));
    badge.textContent = rankOf(item) || "–";
    badge.setAttribute("aria-label", nameOf(board, item));
    badge.classList.toggle("placed", rankOf(item) > 0);
  }
}

document.addEventListener("ranking:shown", ({ target }) => show(target));
document.querySelectorAll(".ranking.live").forEach(show);
