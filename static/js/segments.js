// The table of segments: which cell is next, what a key does to it, and the dock with the texts of its levels.
const DASH = "\u2013";
const dock = () => document.querySelector("[data-dock]");
const table = (cell) => cell.closest(".segments");
const rows = (cell) => [...table(cell).tBodies[0].rows];
const cellsOf = (row) => [...row.querySelectorAll(".cell")];
const every = (cell) => [...table(cell).querySelectorAll(".cell")];

let current = null; // the cell that was in focus last; the dock's buttons are about it

export const cellInFocus = () => document.activeElement?.closest(".cell") ?? null;
const openCell = (group) => [...group.querySelectorAll(".cell")].find((cell) => cell.value === "");
export const firstOpen = (group) => openCell(group) ?? group.querySelector(".cell");
export const isFull = (group) => !openCell(group);

export function focusCell(cell) {
  cell.focus({ preventScroll: true });
  cell.select();
  cell.closest("tr").scrollIntoView({ block: "nearest" });
}

function put(cells, value) {
  for (const cell of cells) {
    cell.value = typeof value === "function" ? value(cell) : value;
    cell.classList.remove("refused");
    cell.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

// Returns whether the cell takes the digit; a digit beyond the scale is no answer.
export function rate(cell, digit) {
  if (digit < 1 || digit > Number(cell.dataset.levels)) return false;
  return answer(cell, String(digit));
}

function answer(cell, value) {
  put([cell], value);
  const all = every(cell), next = all[all.indexOf(cell) + 1];
  if (next) focusCell(next);
  else leave(cell);
  return true;
}

// After the last cell of a response, its other scales or the next response follow.
function leave(cell) {
  cell.dispatchEvent(new CustomEvent("segments:done", { bubbles: true }));
}

// Returns false at the edge of the table, where the other scales follow.
export function step(cell, down, right) {
  const all = rows(cell), at = all.indexOf(cell.closest("tr")), own = cellsOf(all[at]), column = own.indexOf(cell);
  const row = all[at + down], to = row && cellsOf(row)[column + right];
  if (to) focusCell(to);
  return Boolean(to) || Boolean(right);
}

const rowBefore = (cell) => cell.closest("tr").previousElementSibling;
let before = null; // what "the rest is fine" has filled, to be taken back

const does = {
  "not-applicable": (cell) => answer(cell, DASH),
  copy(cell) {
    const above = rowBefore(cell), own = cellsOf(cell.closest("tr"));
    if (!above) return;
    const values = cellsOf(above).map(({ value }) => value);
    put(own, (one) => values[own.indexOf(one)]);
    const next = cell.closest("tr").nextElementSibling;
    if (next) focusCell(cellsOf(next)[0]);
    else leave(cell);
  },
  level(cell) {
    const own = cellsOf(cell.closest("tr")), last = own.slice(0, own.indexOf(cell) + 1).findLast(({ value }) => value);
    if (!last) return;
    put(own.filter(({ value }) => !value), (one) => fitting(one, last.value));
    const next = cell.closest("tr").nextElementSibling;
    if (next) focusCell(cellsOf(next)[0]);
    else leave(cell);
  },
  fine(cell, button) {
    before = every(cell).filter(({ value }) => !value);
    put(before, (one) => one.dataset.levels);
    say(before.length ? button.dataset.said.replace("{count}", before.length) : "", before.length > 0);
    leave(cell);
  },
  undo() {
    put(before ?? [], "");
    if (before?.length) focusCell(before[0]);
    before = null;
    say("", false);
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

function show(cell) {
  const place = dock();
  if (!place) return;
  place.hidden = false;
  for (const lit of document.querySelectorAll(".segment.lit")) lit.classList.remove("lit");
  cell.closest("tr").classList.add("lit");
  const at = place.querySelector("[data-at]"), all = rows(cell);
  const values = { letter: table(cell).dataset.letter, number: all.indexOf(cell.closest("tr")) + 1, count: all.length };
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
  for (const lit of document.querySelectorAll(".segment.lit")) lit.classList.remove("lit");
  if (dock()) dock().hidden = !before?.length;
}

document.addEventListener("focusin", ({ target }) => {
  const cell = target.closest(".cell");
  if (cell) show((current = cell));
  else if (target.closest("#rating :is(.likert, .choice, .ranking, .written)")) hide();
});
document.addEventListener("sheet:revealed", ({ target }) => {
  const group = target.querySelector(".segments");
  if (group && (!current || table(current) !== group)) show((current = firstOpen(group)));
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
  return row?.querySelector(".cell") ? row : current?.closest("tr");
}
document.addEventListener("input", ({ target }) => { if (target === current) show(current); });

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
  const [, response, index] = cellsOf(row)[0].name.split("-");
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
  before = null;
  const open = [...document.querySelectorAll(".segments")].find((group) => group.querySelector(".cell") && !isFull(group));
  if (!dock()) return;
  if (open) show((current = firstOpen(open)));
  else hide();
  if (!matchMedia("(pointer: coarse)").matches) return;
  for (const cell of document.querySelectorAll(".cell")) cell.inputMode = "none";
}
document.addEventListener("htmx:afterSettle", ({ target }) => { if (target.id === "work") begin(); });
begin();
