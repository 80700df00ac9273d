// The keyboard. Digits rate the group in focus and move on; up and down walk the groups; controls carry their own key.
import { ask, inQuestion, noteRated, waits } from "./cockpit.js";
import { isComplete } from "./questions.js";
import { cellInFocus, firstOpen, focusCell, rate as rateCell, step } from "./segments.js";
import { SCROLLED, scrollText } from "./texts.js";
import { typing } from "./typing.js";

const seen = (element) => element.checkVisibility() && !element.matches(":disabled, :disabled *");
const SUBMIT = "#submit-rating, #rating [data-key=Enter]";
const GROUPS = "#rating :is(.segments, .likert, .choice, .ranking.live, .written[data-question])";
const groups = () => [...document.querySelectorAll(GROUPS)].filter((group) => waits(group) || seen(group));
const FIELDS = "[type=radio], [data-handle], textarea, input";
const isTable = (group) => Boolean(group?.matches(".segments"));
const focused = (selector) => document.activeElement?.closest(selector);

export function current() {
  const group = focused("#rating :is(.segments, .likert, .choice, .ranking, .written[data-question])");
  // A box may still be ticked under the scale before the one that is asked.
  const isAsked = group && !group.matches(".rated:not(.current)");
  return (isAsked ? group : null) ?? (focused(SUBMIT) ? undefined : inQuestion()) ?? groups().find((one) => !isComplete(one));
}

function focusOn(group) {
  if (!group) return void document.querySelector(SUBMIT)?.focus();
  const from = (inQuestion() ?? document.activeElement).closest(".sheet"), to = group.closest(".sheet");
  ask(group);
  if (isTable(group)) return focusCell(firstOpen(group));
  const answer = group.querySelector("[type=radio]:checked") ?? group.querySelector(FIELDS);
  answer.focus({ preventScroll: true });
  // Another response is read from its beginning.
  if (to && from && (inQuestion() ? to !== from : to.offsetTop > from.offsetTop)) to.scrollIntoView({ block: "start" });
  else group.scrollIntoView({ block: "nearest" });
}

// What a digit has just rated: the next thing to say about it are its boxes, though the focus has moved on.
let rated = null;

function tick(digit) {
  const last = document.querySelector("#rating .rated") ?? rated;
  const group = last?.isConnected && last.querySelector("[type=checkbox]") ? last : current();
  const box = group?.querySelector(`[type=checkbox][data-digit="${digit}"]`);
  // A click, not `checked`: only a click tells those who listen to the form, the drafts above all.
  return Boolean(box) && (box.click(), true);
}

function rate(digit) {
  const apart = focused("details fieldset"), group = apart ?? current();
  // What is not shown is shown before it is rated.
  if (!apart && group && inQuestion() && group !== inQuestion()) return focusOn(group), true;
  if (isTable(group)) return rateCell(cellInFocus() ?? firstOpen(group), digit);
  const radio = group?.querySelectorAll("[type=radio]")[digit - 1];
  if (!radio) return tick(digit);
  radio.click();
  rated = group;
  noteRated(group);
  if (group.closest("details")) radio.focus();
  else focusOn(groups()[groups().indexOf(group) + 1]);
  return true;
}

// The place of the group before or after a question that is none of them, such as a better version.
function besideOf(list, question, way) {
  const after = list.findIndex((one) => question.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING);
  return (after < 0 ? list.length : after) - (way > 0 ? 0 : 1);
}

function walk(way) {
  if (focused("details fieldset")) return false;
  const cell = cellInFocus();
  if (cell && step(cell, way, 0)) return true;
  rated = null;
  noteRated(null);
  // Submit stands below the last group, and is reached as one more of them.
  const list = groups(), at = focused(SUBMIT) ? list.length : list.indexOf(current());
  focusOn(list[Math.max(at < 0 && inQuestion() ? besideOf(list, inQuestion(), way) : at + way, 0)]);
  return true;
}

// The letters of the responses, while their ranking is what is asked next.
function typesRank(key) {
  const group = focused("#rating [data-question]") ? null : current();
  if (inQuestion() && group !== inQuestion()) return false;
  return Boolean(group?.matches(".ranking")) && !group.dispatchEvent(new CustomEvent("ranking:type", { detail: key, cancelable: true }));
}

const controls = () => [...document.querySelectorAll("[data-key]")].filter(seen);

function press(key) {
  // Keys that somebody has chosen for the bar give way to those of the foot, which cannot be chosen on some pages.
  const named = controls().filter((element) => element.dataset.key === key), control = named.find((one) => one.closest(".foot")) ?? named[0];
  const modal = document.querySelector("dialog[open]");
  if (modal && control?.dataset.opens !== modal.id && !modal.contains(control ?? null)) return false;
  if (modal && !modal.contains(control)) modal.close();
  else control?.click();
  const opened = control?.closest("details[open]");
  if (opened) (opened.querySelector("[type=radio], .raised-body") ?? control).focus();
  return Boolean(control);
}

function leave() {
  const open = focused("details[open]");
  if (open?.matches(".remark")) return focusCell(open.closest("tr").querySelector(".cell")), true;
  if (!open || document.querySelector("dialog[open]")) return false;
  open.open = false;
  open.querySelector("summary").focus();
  return true;
}

function beside(way) {
  const cell = cellInFocus();
  return Boolean(cell) && step(cell, 0, way);
}

const moves = {
  ArrowDown: () => walk(1), ArrowUp: () => walk(-1), ArrowLeft: () => beside(-1), ArrowRight: () => beside(1), Escape: leave,
  PageDown: () => scrollText(inQuestion(), 1), PageUp: () => scrollText(inQuestion(), -1),
};

document.addEventListener("keydown", (event) => {
  // While an input method composes a character, the keys are its own.
  if (event.altKey || event.metaKey || event.isComposing) return;
  const { key, target, ctrlKey } = event, modal = document.querySelector("dialog[open]");
  if (key === "Enter" && ctrlKey) return void (press("Enter") && event.preventDefault());
  if (ctrlKey || (typing(target) && key !== "Escape")) return;
  // Enter on a button or a link presses that one.
  const native = key === "Enter" && target.closest("button, a, summary, details, dialog");
  if (/^(Arrow|Page)/.test(key) && target.matches(SCROLLED)) return;
  if (/^([1-9]$|Arrow|Page)/.test(key) && focused(".raised[open] > .raised-body")) return; // it is read, and scrolls
  const move = modal ? null : /^[1-9]$/.test(key) ? () => rate(Number(key)) : moves[key];
  if (native || (modal && key.length > 1)) return;
  if (move ? move() : (!modal && typesRank(key)) || press(key.length === 1 ? key.toLowerCase() : key)) event.preventDefault();
});
document.addEventListener("group:done", ({ target }) => {
  const list = groups();
  focusOn(list[list.indexOf(target.closest(GROUPS)) + 1]);
});
document.addEventListener("question:chosen", ({ target }) => {
  if (target.matches(GROUPS)) focusOn(target);
  else {
    ask(target);
    target.querySelector("summary, textarea, input").focus();
  }
});
document.addEventListener("pointerdown", () => { rated = null; });
