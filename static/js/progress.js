// Counts the answers for the foot. A key in a cell of segments changes the counts by one: the thousands of other cells
// are not looked at again.
import { isAsked, isComplete } from "./questions.js";

const CELL = ".cell-of", OTHER = "[data-question]:not(.cell-of)";

let filled = new WeakSet(); // the cells with an answer
let cells = new Map(); // {asked, answered} by response
let others = { asked: 0, answered: 0 };

function countCells(form) {
  filled = new WeakSet();
  cells = new Map();
  for (const sheet of form.querySelectorAll(".sheet")) {
    const all = [...sheet.querySelectorAll(`${CELL} .cell`)], given = all.filter(({ value }) => value !== "");
    cells.set(sheet, { asked: all.length, answered: given.length });
    for (const cell of given) filled.add(cell);
  }
}

function countOthers(form) {
  const asked = [...form.querySelectorAll(OTHER)].filter(isAsked);
  others = { asked: asked.length, answered: asked.filter(isComplete).length };
}

function changeCells(changed) {
  const counted = cells.get(changed[0]?.closest(".sheet"));
  for (const cell of counted ? changed : []) {
    const has = cell.value !== "";
    if (has === filled.has(cell)) continue;
    counted.answered += has ? 1 : -1;
    if (has) filled.add(cell);
    else filled.delete(cell);
  }
  show();
}

const sum = (counts) => counts.reduce((all, one) => ({ asked: all.asked + one.asked, answered: all.answered + one.answered }));

function show() {
  const form = document.getElementById("rating"), text = document.getElementById("answered");
  if (!form || !text) return;
  const { asked, answered } = sum([others, ...cells.values()]), bar = text.parentElement.querySelector("progress");
  bar.max = asked;
  bar.value = answered;
  text.textContent = text.dataset.text.replace("{answered}", answered).replace("{asked}", asked);
}

function begin(change) {
  const form = document.getElementById("rating");
  if (!form) return;
  if (change?.type !== "input") countCells(form);
  countOthers(form);
  show();
}

document.addEventListener("cells:put", ({ detail }) => changeCells(detail));
document.addEventListener("input", (event) => (event.target.matches(".cell") ? changeCells([event.target]) : begin(event)));
for (const change of ["drafts:filled", "htmx:afterSettle"]) document.addEventListener(change, begin);
begin();
