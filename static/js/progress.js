// Counts the answers: of the whole task in the foot, and of each response beside its letter. A key in a cell of segments
// changes the counts by one: the thousands of other cells are not looked at again.
const isAsked = (question) => !question.matches(".category") || isUnsafe(question.closest(".scales"));
const isUnsafe = (scales) => Boolean(scales?.querySelector('[name^="safe-"][value="0"]:checked'));
const CELL = ".cell-of", OTHER = "[data-question]:not(.cell-of)";

// Radios, or fields that each want a value.
function isAnswered(question) {
  if (question.querySelector("[type=radio]")) return Boolean(question.querySelector("[type=radio]:checked"));
  return [...question.querySelectorAll("input, select, textarea")].every((field) => field.value.trim() !== "");
}

let filled = new WeakSet(); // the cells with an answer
let cells = new Map(), others = new Map(); // {asked, answered} by place: the form (of no cells) and each response
let links = [];

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
  for (const place of [form, ...cells.keys()]) {
    const asked = [...place.querySelectorAll(OTHER)].filter(isAsked);
    others.set(place, { asked: asked.length, answered: asked.filter(isAnswered).length });
  }
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
  const { asked, answered } = sum([others.get(form), ...cells.values()]), bar = text.parentElement.querySelector("progress");
  bar.max = asked;
  bar.value = answered;
  text.textContent = text.dataset.text.replace("{answered}", answered).replace("{asked}", asked);
  for (const link of links) {
    const response = document.getElementById(link.hash.slice(1)), sheet = sum([others.get(response), cells.get(response)]);
    link.classList.toggle("done", sheet.answered === sheet.asked);
    link.querySelector(".count").textContent = sheet.asked ? ` ${sheet.answered}/${sheet.asked}` : "";
  }
}

function begin(change) {
  const form = document.getElementById("rating");
  if (!form) return;
  if (change?.type !== "input") {
    countCells(form);
    others = new Map();
    links = [...form.querySelectorAll(".letters a")];
  }
  countOthers(form);
  show();
}

document.addEventListener("cells:put", ({ detail }) => changeCells(detail));
document.addEventListener("input", (event) => (event.target.matches(".cell") ? changeCells([event.target]) : begin(event)));
for (const change of ["drafts:filled", "htmx:afterSettle"]) document.addEventListener(change, begin);
begin();
