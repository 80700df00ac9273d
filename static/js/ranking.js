// Puts responses in order: by their letters, by dragging, by buttons, by keys. The selects hold the ranks; the lists, and
// the badges on the responses (badges.js), only show them.
import { answer } from "./missing.js";

const known = new WeakSet();
const selectOf = (item) => item.querySelector("select");
export const rankOf = (item) => Number(selectOf(item).value);
const byLetter = (one, other) => (one.dataset.response < other.dataset.response ? -1 : 1);
export const items = (board) => [...board.querySelectorAll("[data-response]")].sort(byLetter);
export const fill = (template, words) => template.replace(/\{(\w+)\}/g, (_, name) => words[name]);

// The placed items in tiers, the best first; what has no rank stands in the tray.
function tiersOf(board) {
  const tiers = [];
  for (const item of items(board).filter(rankOf)) (tiers[rankOf(item)] ??= []).push(item);
  return tiers.filter(Boolean);
}

// Sets the selects. A value that a script sets fires no event: those who listen to the form, the drafts above all, are
// told which selects have changed.
export function write(board, tiers) {
  const ranks = new Map(tiers.filter((tier) => tier.length).flatMap((tier, at) => tier.map((item) => [item, at + 1])));
  for (const item of items(board)) {
    const rank = String(ranks.get(item) ?? "");
    if (selectOf(item).value === rank) continue;
    selectOf(item).value = rank;
    selectOf(item).dispatchEvent(new Event("input", { bubbles: true }));
  }
  show(board);
}

const without = (tiers, item) => tiers.map((tier) => tier.filter((other) => other !== item));
const placeOf = (tiers, item) => tiers.findIndex((tier) => tier.includes(item));

const moves = {
  place: (tiers, item) => (placeOf(tiers, item) < 0 ? [...tiers, [item]] : tiers),
  back: (tiers, item) => without(tiers, item),
  up(tiers, item) {
    const at = placeOf(tiers, item);
    if (at < 0) return moves.place(tiers, item);
    return without(tiers, item).toSpliced(tiers[at].length > 1 ? at : Math.max(at - 1, 0), 0, [item]);
  },
  down(tiers, item) {
    const at = placeOf(tiers, item);
    if (at < 0) return moves.place(tiers, item);
    return without(tiers, item).toSpliced(tiers[at].length > 1 ? at + 1 : at + 2, 0, [item]);
  },
  // A second time it unties: the response stands alone below those that it was tied with.
  tie(tiers, item) {
    const at = placeOf(tiers, item);
    if (at < 0) return tiers;
    if (tiers[at].length > 1) return without(tiers, item).toSpliced(at + 1, 0, [item]);
    return at ? without(tiers, item).with(at - 1, [...tiers[at - 1], item]) : tiers;
  },
};

export function nameOf(board, item, tiers = tiersOf(board)) {
  const at = placeOf(tiers, item), letter = item.dataset.response;
  if (at < 0) return fill(board.dataset.unplaced, { letter });
  const others = tiers[at].filter((other) => other !== item).map((other) => other.dataset.response).join(", ");
  return fill(others ? board.dataset.tied : board.dataset.rank, { letter, rank: at + 1, others });
}

function show(board) {
  const tiers = tiersOf(board), all = items(board), placed = tiers.flat();
  const tray = all.filter((item) => !rankOf(item)), focused = document.activeElement;
  board.querySelector("[data-ranked]").replaceChildren(...placed);
  board.querySelector("[data-tray]").replaceChildren(...tray);
  for (const item of all) {
    const at = placeOf(tiers, item);
    item.dataset.tied = at >= 0 && tiers[at].length > 1 ? (tiers[at][0] === item ? "first" : "below") : "";
    item.draggable = !selectOf(item).matches(":disabled");
    item.querySelector("[data-shown]").textContent = at < 0 ? "" : at + 1;
    item.querySelector("[data-name]").textContent = nameOf(board, item, tiers);
  }
  const count = fill(board.dataset.count, { placed: placed.length, all: all.length });
  board.querySelector("[data-placed]").textContent = count;
  if (!tray.length) answer(board);
  board.dispatchEvent(new CustomEvent("ranking:shown", { bubbles: true }));
  // An element that is moved within the page loses the focus.
  if (board.contains(focused)) focused.focus({ preventScroll: true });
  return count;
}

// Whoever has placed a response by its button or key goes on with the next one that is not placed.
function move(board, item, name) {
  const before = placeOf(tiersOf(board), item), next = item.nextElementSibling ?? item.previousElementSibling;
  write(board, moves[name](tiersOf(board), item));
  const tray = before < 0 && next && !rankOf(next) ? next : item;
  (name === "place" ? tray : item).querySelector("[data-handle]").focus();
  say(board, item);
}

// Places a response after the others, or takes it back.
export function toggle(board, item) {
  write(board, moves[rankOf(item) ? "back" : "place"](tiersOf(board), item));
  say(board, item);
}

export function say(board, item) {
  board.querySelector("[data-announced]").textContent = `${nameOf(board, item)}. ${show(board)}.`;
}

// Keys ------------------------------------------------------------------------------------------------------

const KEYS = { ArrowUp: "up", ArrowDown: "down" };
const PLAIN = { "=": "tie", Delete: "back", Backspace: "back" };

// The response that was typed last, and whether the next one is typed as its equal.
let typed = null, ties = false;

// C E = A: the letters of the responses in order, the best first, with = between equals.
function type(board, key) {
  if (key === "=" && typed) {
    ties = true;
    return true;
  }
  const item = items(board).find((one) => one.dataset.response === key.toUpperCase());
  if (!item) {
    if (key !== "Shift") typed = null; // on some keyboards = takes it
    return false;
  }
  const tiers = without(tiersOf(board), item), at = typed && ties ? placeOf(tiers, typed) : -1;
  write(board, at < 0 ? [...tiers, [item]] : tiers.with(at, [...tiers[at], item]));
  item.querySelector("[data-handle]").focus({ preventScroll: true }); // the texts stay in view
  say(board, item);
  [typed, ties] = [item, false];
  if (items(board).every(rankOf)) item.dispatchEvent(new CustomEvent("group:done", { bubbles: true }));
  return true;
}

function onKey(event) {
  const item = event.target.closest("[data-response]"), board = event.currentTarget;
  if (!item || event.ctrlKey || event.metaKey || event.target.matches("select")) return;
  if (!event.altKey && type(board, event.key)) {
    event.preventDefault();
    return void event.stopPropagation(); // many letters are keys of the page
  }
  const name = event.altKey ? KEYS[event.key] : PLAIN[event.key];
  if (name) move(board, item, name);
  else if (event.altKey || !(event.key in KEYS) || !walk(board, item, event.key === "ArrowUp" ? -1 : 1)) return;
  event.preventDefault();
  event.stopPropagation(); // keys.js would walk on to another question with the same arrow
}

// From response to response, and at either end out of the ranking.
function walk(board, item, step) {
  const handles = [...board.querySelectorAll("[data-handle]")];
  const next = handles[handles.indexOf(item.querySelector("[data-handle]")) + step];
  next?.focus();
  return Boolean(next);
}

function onClick(event) {
  const item = event.target.closest("[data-response]"), button = event.target.closest("[data-move], [data-handle]");
  if (item && button) move(event.currentTarget, item, button.dataset.move ?? "place");
}

// Dragging --------------------------------------------------------------------------------------------------

let dragged = null;

// The first and the last quarter of a response mean before and after it, the middle means a tie.
function targetOf(event) {
  const over = event.target.closest("[data-ranked] [data-response]");
  if (!over) return { zone: event.target.closest("[data-tray]") ? "tray" : "end" };
  // In the dock they stand in a row, elsewhere below each other.
  const box = over.getBoundingClientRect(), isRow = getComputedStyle(over.parentElement).display === "flex";
  const part = isRow ? (event.clientX - box.left) / box.width : (event.clientY - box.top) / box.height;
  return { over, zone: part < 0.25 ? "before" : part > 0.75 ? "after" : "tie" };
}

export function drag({ dataTransfer }, item) {
  dragged = item;
  dataTransfer.setData("text/plain", item.dataset.response);
  dataTransfer.effectAllowed = "move";
}

export function drop(board) {
  dragged = null;
  unmark(board);
}

function unmark(board) {
  for (const place of board.querySelectorAll("[data-drop]")) delete place.dataset.drop;
}

function onDragOver(event) {
  if (!dragged || !event.currentTarget.contains(dragged)) return;
  event.preventDefault(); // else nothing can be dropped here
  unmark(event.currentTarget);
  const { over, zone } = targetOf(event);
  if (over && over !== dragged) over.dataset.drop = zone;
}

function onDrop(event) {
  const board = event.currentTarget;
  if (!dragged || !board.contains(dragged)) return;
  event.preventDefault();
  const { over, zone } = targetOf(event), item = dragged;
  unmark(board);
  if (over === item) return;
  const tiers = without(tiersOf(board), item), at = over ? placeOf(tiers, over) : -1;
  if (zone === "tie") tiers[at].push(item);
  else if (zone !== "tray") tiers.splice(zone === "before" ? at : zone === "after" ? at + 1 : tiers.length, 0, [item]);
  write(board, tiers);
  say(board, item);
}

// ------------------------------------------------------------------------------------------------------------

function begin(board) {
  // Called again for every change of the page: a second set of listeners would make each move twice.
  if (known.has(board)) return void show(board);
  known.add(board);
  board.classList.add("live");
  for (const select of board.querySelectorAll("select")) {
    select.tabIndex = -1;
    select.setAttribute("aria-hidden", "true");
  }
  board.addEventListener("keydown", onKey);
  board.addEventListener("click", onClick);
  board.addEventListener("ranking:type", (event) => { if (type(board, event.detail)) event.preventDefault(); });
  board.addEventListener("focusout", ({ relatedTarget }) => { if (!board.contains(relatedTarget)) typed = null; });
  board.addEventListener("dragstart", (event) => drag(event, event.target.closest("[data-response]")));
  board.addEventListener("dragover", onDragOver);
  board.addEventListener("dragleave", () => unmark(board));
  board.addEventListener("drop", onDrop);
  board.addEventListener("dragend", () => drop(board));
  show(board);
}

const everywhere = () => document.querySelectorAll("[data-ranking]").forEach(begin);
// After drafts.js, which puts a draft back into the form at the same events.
const soon = () => setTimeout(everywhere);
for (const name of ["htmx:afterSettle", "load"]) addEventListener(name, soon);
for (const name of ["pageshow", "storage"]) addEventListener(name, soon);
everywhere();
