// Offers to rank the responses as they are rated on the first scale, as long as none of them has a rank.
import { fill, items, rankOf, say, write } from "./ranking.js";

// The order that the ratings on the first scale imply; null while a response has none.
function impliedBy(board) {
  const levels = new Map();
  for (const item of items(board)) {
    const chosen = scaleOf(item)?.querySelector("[type=radio]:checked");
    if (!chosen) return null;
    levels.set(item, Number(chosen.value));
  }
  const steps = [...new Set(levels.values())].sort((one, other) => other - one);
  return steps.map((step) => [...levels.keys()].filter((item) => levels.get(item) === step));
}

const scaleOf = (item) => document.querySelector(`#response-${item.dataset.response} .likert`);

function offer(board) {
  const button = board.querySelector("[data-implied]"), name = scaleOf(items(board)[0])?.querySelector("legend").firstChild.data.trim();
  button.hidden = !impliedBy(board) || items(board).some(rankOf);
  button.textContent = fill(button.dataset.text, { scale: name ?? "" });
}

const everywhere = () => document.querySelectorAll(".ranking.live").forEach(offer);
document.addEventListener("ranking:shown", ({ target }) => offer(target));
document.addEventListener("click", ({ target }) => {
  const board = target.closest("[data-implied]")?.closest(".ranking");
  if (!board) return;
  write(board, impliedBy(board));
  say(board, items(board)[0]);
  items(board)[0].dispatchEvent(new CustomEvent("group:done", { bubbles: true }));
});
document.addEventListener("change", ({ target }) => {
  if (target.closest("#rating .likert")) everywhere();
});
everywhere();
