// The table of segments: which cell is next, what a key does to it, and the dock with the texts of its levels.
import { nameOf } from "./cells.js";

const DASH = "\u2013";
let shown = null; // the dock of the task on the page: a key must not search a page of thousands of cells for it
const dock = () => (shown?.isConnected ? shown : (shown = document.querySelector("[data-dock]")));
const table = (cell) => cell.closest(".segments");
const rowOf = (cell) => cell.closest("tr");
const cellsOf = (row) => [...row.querySelectorAll(".cell")];
const every = (cell) => [...table(cell).querySelectorAll(".cell")];

let current = null; // the cell that was in focus last; the dock's buttons are about it

export const cellInFocus = () => document.activeElement?.closest(".cell") ?? null;
const openCell = (group) => [...group.querySelectorAll(".cell")].find((cell) => cell.value === "");
export const firstOpen = (group) => openCell(group) ?? group.querySelector(".cell");
const isFull = (group) => !openCell(group);

export function focusCell(cell) {
  // Before the focus, which lays the page out: it is laid out once for both.
  show((current = cell));
  cell.focus({ preventScroll: true });
  cell.select();
  rowOf(cell).scrollIntoView({ block: "nearest" });
}

// One event for all cells: whoever listens does the same work for a thousand of them as for one.
function put(cells, value) {
  for (const cell of cells) {
    cell.value = typeof value === "function" ? value(cell) : value;
    cell.classList.remove("refused");
  }
  if (cells.length) cells[0].dispatchEvent(new CustomEvent("cells:put", { bubbles: true, detail: cells }));
}

// Returns whether the cell takes the digit; a digit beyond the scale is no answer.
export function rate(cell, digit) {
  if (digit < 1 || digit > Number(cell.dataset.levels)) return false;
  return answer(cell, String(digit));
}

function answer(cell, value) {
  const next = cell.closest("td").nextElementSibling ?? rowOf(cell).nextElementSibling;
  if (next) current = null; // the dock goes on to the next cell at once
  put([cell], value);
  if (next) focusCell(next.querySelector(".cell"));
  else leave(cell);
  return true;
}

// After the last cell of a response, its other scales or the next response follow.
function leave(cell) {
  cell.dispatchEvent(new CustomEvent("group:done", { bubbles: true }));
}

const goOn = (row, cell) => (row ? focusCell(row.querySelector(".cell")) : leave(cell));

// Returns false at the edge of the table, where the other scales follow.
export function step(cell, down, right) {
  const own = rowOf(cell), row = down > 0 ? own.nextElementSibling : down < 0 ? own.previousElementSibling : own;
  const to = row && cellsOf(row)[cellsOf(own).indexOf(cell) + right];
  if (to) focusCell(to);
  return Boolean(to) || Boolean(right);
}

let before = null; // what "the rest is fine" has filled, to be taken back

const does = {
  "not-applicable": (cell) => answer(cell, DASH),
  copy(cell) {
    const above = rowOf(cell).previousElementSibling, own = cellsOf(rowOf(cell));
    if (!above) return;
    const values = cellsOf(above).map(({ value }) => value);
    put(own, (one) => values[own.indexOf(one)]);
    goOn(rowOf(cell).nextElementSibling, cell);
  },
  level(cell) {
    const own = cellsOf(rowOf(cell)), last = own.slice(0, own.indexOf(cell) + 1).findLast(({ value }) => value);
    if (!last) return;
    put(own.filter(({ value }) => !value), (one) => fitting(one, last.value));
    goOn(rowOf(cell).nextElementSibling, cell);
  },
  fine(cell, button) {
    before = every(cell).filter(({ value }) => !value);
    put(before, (one) => one.dataset.levels);
    say(before.length ? button.dataset.said.replace("{count}", before.length) : "", before.length > 0);
    leave(cell);
  },
  undo() {
    put(before ?? [], "");
    const [first] = before ?? [];
    before = null;
    say("", false);
    if (first) table(first).dispatchEvent(new CustomEvent("question:chosen", { bubbles: true }));
  },
  comment() {
    const row = rowAtHand(), remark = row.querySelector(".remark"), text = quoted(row);
    show((current = cellsOf(row)[0]));
    remark.open = true;
    if (text) {
      const field = remark.querySelector("[type=hidden]"), shown = remark.querySelector(".quoted");
      field.value = shown.textContent = text;
      shown.hidden = false;
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }
    remark.querySelector("textarea").focus();
  },
};

// A scale that has no such level takes its highest one.
const fitting = (cell, value) => (value === DASH ? value : String(Math.min(Number(value), Number(cell.dataset.levels))));

function quoted(row) {
  const selection = getSelection();
  return row.contains(selection.anchorNode) && row.contains(selection.focusNode) ? selection.toString().trim() : "";
}

function say(text, undoable) {
  dock().querySelector("[data-status]").textContent = text;
  dock().querySelector("[data-does=undo]").hidden = !undoable;
}

let lit = null;

function light(row) {
  if (row !== lit) lit?.classList.remove("lit");
  row?.classList.add("lit");
  lit = row;
}

// The dock takes the place in which other questions are asked.
function openDock(isOpen) {
  dock().hidden = !isOpen;
  document.getElementById("work").classList.toggle("docked", isOpen);
}

const isOpen = () => document.getElementById("work").classList.contains("docked");

let said = ""; // the cell and the value that the dock is about

function show(cell) {
  const place = dock(), about = `${nameOf(cell)}=${cell.value}`;
  if (!place || (said === about && lit === rowOf(cell) && isOpen())) return;
  said = about;
  openDock(true);
  light(rowOf(cell));
  const at = place.querySelector("[data-at]"), number = rowOf(cell).cells[0].textContent;
  const values = { letter: table(cell).dataset.letter, number, count: table(cell).tBodies[0].rows.length };
  at.textContent = at.dataset.text.replace(/{(\w+)}/g, (_, name) => values[name]);
  for (const aspect of place.querySelectorAll("[data-aspect]")) {
    aspect.hidden = aspect.dataset.aspect !== cell.dataset.aspect;
    for (const level of aspect.querySelectorAll("[data-level]")) {
      level.setAttribute("aria-pressed", String(!aspect.hidden && level.dataset.level === cell.value));
    }
  }
}

// What a digit rates next is what the dock shows: nothing while another question is in focus.
function hide() {
  current = null;
  light(null);
  if (!dock()) return;
  openDock(false);
  dock().hidden = !before?.length; // what was filled can be taken back
}

document.addEventListener("focusin", ({ target }) => {
  const cell = target.closest(".cell");
  if (cell) show((current = cell));
  else if (!isCockpit() && target.closest("#rating :is(.likert, .choice, .ranking, .written)")) hide();
});
// Where one question is asked at a time, the dock is open while that is a table.
const isCockpit = () => Boolean(document.querySelector(".cockpit"));
document.addEventListener("question:asked", ({ target }) => {
  if (!target.matches(".segments")) return hide();
  show((current = current?.isConnected && table(current) === target ? current : firstOpen(target)));
});
// A click on a segment's text, but no selection in it, leads to its cells.
document.addEventListener("click", ({ target }) => {
  const row = target.closest(".segment"), cell = row?.querySelector(".cell");
  if (!cell || target.closest("a, button, input, textarea, summary") || String(getSelection()).trim()) return;
  focusCell(cellsOf(row).find(({ value }) => !value) ?? cell);
});

// The row in which text is selected, or else that of the cell at hand.
function rowAtHand() {
  const node = getSelection().anchorNode, place = node?.nodeType === Node.ELEMENT_NODE ? node : node?.parentElement;
  const row = String(getSelection()).trim() ? place?.closest(".segment") : null;
  return row?.querySelector(".cell") ? row : current && rowOf(current);
}
for (const change of ["input", "cells:put"]) document.addEventListener(change, ({ target }) => { if (target === current) show(current); });

document.addEventListener("click", ({ target }) => {
  const level = target.closest(".dock [data-level]"), button = target.closest(".dock [data-does]");
  if (button?.dataset.does === "undo") return void does.undo();
  if (!current?.isConnected) return;
  if (level) answer(current, level.dataset.level);
  else if (button) does[button.dataset.does](current, button);
});
// Before htmx sends the request: the segment that is divided, and the text at whose beginning it is.
document.addEventListener("click", ({ target }) => {
  if (!target.closest("[data-divides]") || !current?.isConnected) return;
  const row = rowAtHand(), fields = document.getElementById("divide-fields");
  const [, response, index] = nameOf(cellsOf(row)[0]).split("-");
  fields.querySelector("[name=divide]").value = `${response}-${index}`;
  fields.querySelector("[name=quote]").value = quoted(row);
}, { capture: true });
// The cell keeps the focus while the dock is used.
document.addEventListener("mousedown", (event) => { if (event.target.closest(".dock button")) event.preventDefault(); });

// What a soft keyboard or the clipboard brings: one digit or a dash, and nothing else.
document.addEventListener("beforeinput", (event) => {
  const { target, data, inputType } = event;
  if (!target.matches?.(".cell") || inputType.startsWith("delete")) return;
  event.preventDefault();
  if (/^[1-9]$/.test(data ?? "")) rate(target, Number(data));
  else if (data === "-" || data === DASH) answer(target, DASH);
});

// A finger rates by the dock, whose texts a keyboard on the screen would cover.
function begin() {
  before = lit = null;
  said = "";
  const open = [...document.querySelectorAll(".segments")].find((group) => group.querySelector(".cell") && !isFull(group));
  if (!dock()) return void document.querySelector("#work")?.classList.remove("docked");
  if (open && !isCockpit()) show((current = firstOpen(open)));
  else hide();
  if (!matchMedia("(pointer: coarse)").matches) return;
  for (const cell of document.querySelectorAll(".cell")) cell.inputMode = "none";
}
document.addEventListener("htmx:afterSettle", ({ target }) => { if (target.id === "work") begin(); });
begin();
