// One question at a time stands in the dock, under texts that do not move. The strip above it holds the answers so far,
// and is the way to every question. The form keeps its order: what is shown is a matter of style.
import { reveal } from "./letters.js";

const QUESTIONS = ".segments, .likert, .choice, .ranking, .written, .edit";
let asked = null, pointed = null;

const cockpit = () => document.querySelector(".cockpit:has(> #rating)");
const strip = () => document.querySelector(".cockpit [data-strip]");
const inDock = (element) => element?.closest(`.edit`) ?? element?.closest(QUESTIONS);
const isUnsafe = (category) => category.closest(".scales").querySelector('[name^="safe-"][value="0"]:checked');
// A question within another one, such as the texts of a better version, is shown with it.
const every = () => [...document.querySelectorAll(`#rating :is(${QUESTIONS})`)].filter((one) => inDock(one) === one);
const isAsked = (question) => !question.matches(".category") || isUnsafe(question);

// Whether the element's question waits in the dock: it is asked although it cannot be seen.
export const waits = (element) => Boolean(cockpit()?.contains(element)) && isAsked(element) && !element.matches(".ranking:not(.live), :disabled, :disabled *");
export const inQuestion = () => (cockpit() && asked?.isConnected ? asked : null);

export function ask(element) {
  const question = cockpit() && inDock(element);
  if (!question || question === asked) return;
  asked?.classList.remove("current");
  asked = question;
  asked.classList.add("current");
  const sheet = asked.closest(".sheet");
  if (sheet) reveal(sheet);
  for (const [chip, one] of chips) {
    if (one === asked) chip.setAttribute("aria-current", "true");
    else chip.removeAttribute("aria-current");
    if (one === asked) chip.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  asked.dispatchEvent(new CustomEvent("question:asked", { bubbles: true }));
}

// The boxes under a scale may follow its level, though the next scale is asked already.
export function noteRated(question) {
  for (const one of document.querySelectorAll("#rating .rated")) one.classList.remove("rated");
  const boxes = cockpit() && question?.querySelector(".checks");
  if (!boxes) return;
  boxes.dataset.of = `${nameOf(question)}:`;
  question.classList.add("rated");
}

// The strip -------------------------------------------------------------------------------------------------

const chips = new Map(); // the question of each chip
const letterOf = (question) => question.closest(".sheet")?.id.slice(-1) ?? "";
const nameOf = (question) => (question.querySelector("legend, label, caption, summary")?.textContent ?? "").replace(/\s+/g, " ").trim();

function isComplete(question) {
  if (question.matches(".ranking")) return [...question.querySelectorAll("select")].every(({ value }) => value);
  return question.matches(".segments") ? answerOf(question) === "\u2713" : Boolean(answerOf(question));
}

function answerOf(question) {
  if (question.matches(".segments")) {
    const cells = [...question.querySelectorAll(".cell")], given = cells.filter(({ value }) => value !== "").length;
    return given === cells.length ? "\u2713" : `${given}/${cells.length}`;
  }
  if (question.matches(".ranking")) return ranked(question);
  const radios = [...question.querySelectorAll("[type=radio]")];
  if (radios.length) return String(radios.findIndex(({ checked }) => checked) + 1 || "");
  return [...question.querySelectorAll("textarea, input")].some(({ value }) => value.trim()) ? "\u2713" : "";
}

// B > C = D: a response without a rank is left out.
function ranked(board) {
  const items = [...board.querySelectorAll("[data-response]")], rank = (item) => Number(item.querySelector("select").value);
  const placed = items.filter(rank).sort((one, other) => rank(one) - rank(other));
  return placed.map((item, at) => (at ? (rank(item) === rank(placed[at - 1]) ? " = " : " > ") : "") + item.dataset.response).join("");
}

function write(chip) {
  const question = chips.get(chip), answer = answerOf(question);
  chip.hidden = !isAsked(question);
  chip.textContent = answer || "\u00b7";
  chip.classList.toggle("open", !answer);
  chip.classList.toggle("lacking", question.matches(".missing") || Boolean(question.querySelector(".refused")));
  chip.setAttribute("aria-label", answer ? `${nameOf(question)}: ${answer}` : nameOf(question));
  chip.title = nameOf(question);
}

function letterLink(letter) {
  const link = Object.assign(document.createElement("a"), { href: `#response-${letter}`, textContent: letter });
  link.setAttribute("aria-label", strip().dataset.letter.replace("{letter}", letter));
  return link;
}

function build() {
  chips.clear();
  const groups = new Map();
  for (const question of every()) {
    const letter = letterOf(question), chip = Object.assign(document.createElement("button"), { type: "button", className: "chip" });
    chips.set(chip, question);
    write(chip);
    if (letter) question.querySelector("legend, label")?.setAttribute("data-letter", `${letter} \u00b7 `);
    if (!groups.has(letter)) groups.set(letter, letter ? [letterLink(letter)] : []);
    groups.get(letter).push(chip);
  }
  strip().replaceChildren(...[...groups.values()].map((members) => {
    const group = Object.assign(document.createElement("span"), { className: "chips" });
    group.append(...members);
    return group;
  }));
}

function rewrite({ target }) {
  if (!cockpit()) return;
  const changed = target.closest?.("#rating") ? inDock(target) : null;
  for (const [chip, question] of chips) if (!changed || question === changed || question.matches(".category")) write(chip);
}
for (const change of ["change", "drafts:filled"]) document.addEventListener(change, rewrite);
// A thousand cells are counted once the hand rests.
let resting = null;
for (const change of ["input", "cells:put"]) document.addEventListener(change, (event) => {
  if (!event.target.matches(".cell")) return rewrite(event);
  clearTimeout(resting);
  resting = setTimeout(rewrite, 150, { target: document });
});

document.addEventListener("click", ({ target }) => {
  const question = chips.get(target.closest?.(".chip"));
  if (!question) return;
  noteRated(null);
  ask(question);
  question.dispatchEvent(new CustomEvent("question:chosen", { bubbles: true }));
});

// What leads to a question asks it: the focus, and a link of the list of what is missing.
document.addEventListener("focusin", ({ target }) => {
  if (target.closest("#rating") && !target.matches(".rated:not(.current) *")) ask(target);
});
document.addEventListener("click", ({ target }) => {
  const link = target.closest("#rating a[href^='#']"), place = link && document.getElementById(link.hash.slice(1));
  if (!place) return;
  if (!place.matches(".sheet")) return void ask(place);
  // A question about all responses stays while one of them, which is rated, is read again.
  const first = firstOf(place);
  if (first && (letterOf(asked) || !isComplete(first))) ask(first);
}, { capture: true });

// Tab goes through the questions too, though all but one are out of sight.
const STOPS = "input:not([type=hidden]), textarea, select, button, summary";

function beyond(way) {
  const at = document.activeElement, place = asked.closest(".card") ?? asked;
  const stops = [...place.querySelectorAll(STOPS)].filter((one) => one.checkVisibility() && !one.disabled && one.tabIndex >= 0);
  const rest = way > 0 ? stops.slice(stops.indexOf(at) + 1) : stops.slice(0, stops.indexOf(at));
  if (!stops.includes(at) || rest.some((one) => at.type !== "radio" || one.name !== at.name)) return null; // radios are one stop
  const all = every().filter((one) => isAsked(one) && !one.matches(".segments, .ranking:not(.live), :disabled *"));
  return all[all.indexOf(asked) + way] ?? null;
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "Tab" || event.ctrlKey || event.altKey || !inQuestion() || asked.matches(".segments, .ranking")) return;
  const next = beyond(event.shiftKey ? -1 : 1);
  if (!next) return;
  event.preventDefault();
  ask(next);
  (next.querySelector("[type=radio]:checked, [data-handle]") ?? next.querySelector(STOPS)).focus();
});

// Whoever rates by pointer goes on to the next question too; arrows within a scale only change the level. The second
// click of a double one would meet the next question.
document.addEventListener("click", (event) => {
  if (event.detail > 1 && cockpit() && event.target.closest("#rating :is(.level, .line)")?.querySelector("[type=radio]")) event.preventDefault();
}, { capture: true });
document.addEventListener("pointerdown", ({ target }) => { pointed = target.closest("#rating .current"); });
document.addEventListener("keydown", () => { pointed = null; }, { capture: true });
document.addEventListener("change", ({ target }) => {
  if (target.type !== "radio" || !pointed?.contains(target) || !cockpit()) return;
  noteRated(pointed);
  pointed.dispatchEvent(new CustomEvent("group:done", { bubbles: true }));
});

// The texts -------------------------------------------------------------------------------------------------

export const SCROLLED = ".cockpit :is(.conversation, .sheets, .response, .word)";
// Two or three have a pane each.
const panes = () => [...document.querySelectorAll(".cockpit.beside .sheets:not(.single, :has(> :nth-child(4))) .response")];
const room = (pane) => pane.scrollHeight - pane.clientHeight;
const led = new WeakMap(); // where a pane was led to, whose own event is no wish

document.addEventListener("scroll", ({ target }) => {
  const all = panes();
  if (!all.includes(target) || document.querySelector("[data-link]")?.getAttribute("aria-pressed") !== "true") return;
  if (Math.abs((led.get(target) ?? -1) - target.scrollTop) < 2) return void led.delete(target);
  for (const other of all.filter((pane) => pane !== target && room(pane) > 0)) {
    const to = Math.round((target.scrollTop / room(target)) * room(other));
    if (Math.abs(to - other.scrollTop) < 1) continue;
    led.set(other, to);
    other.scrollTop = to;
  }
}, { capture: true, passive: true });

document.addEventListener("click", ({ target }) => {
  const link = target.closest("[data-link]"), opener = target.closest("[data-prompt]");
  if (link) link.setAttribute("aria-pressed", link.getAttribute("aria-pressed") !== "true");
  if (opener) opener.setAttribute("aria-pressed", document.getElementById("work").classList.toggle("prompted"));
});

// What depends on how much of the texts fits.
function measure() {
  const talk = document.querySelector(".cockpit:has(> #rating) > .conversation"), opener = document.querySelector("[data-prompt]");
  if (!talk || !opener) return;
  document.querySelector("[data-link]").hidden = !panes().length;
  opener.disabled = room(talk) <= 0 && opener.getAttribute("aria-pressed") === "false";
  // What scrolls is reached by Tab, and scrolled by the arrows.
  for (const place of document.querySelectorAll(SCROLLED)) {
    if (room(place) > 0) place.tabIndex = 0;
    else place.removeAttribute("tabindex");
  }
}
document.addEventListener("submit", ({ target }) => { if (target.matches("[data-layout]")) setTimeout(measure); });
for (const change of ["resize", "load"]) addEventListener(change, measure);
// Up or down by a page, while a question has the focus.
export function scrollText(way) {
  const places = [asked?.closest(".sheet")?.querySelector(".response"), ...document.querySelectorAll(".cockpit .response, .cockpit .sheets, .cockpit > .conversation")];
  const place = places.find((one) => one && room(one) > 0 && getComputedStyle(one).overflowY === "auto");
  place?.scrollBy({ top: way * 0.9 * place.clientHeight });
  return Boolean(place);
}

document.addEventListener("selectionchange", () => {
  const selection = getSelection(), node = selection.anchorNode?.parentElement;
  document.querySelector(".cockpit")?.classList.toggle("selecting", !selection.isCollapsed && Boolean(node?.closest(".cockpit :is(.conversation, .response)")));
});

// Where one response is shown at a time, a finger leads to the next one, as its letter does.
let touched = null;
document.addEventListener("touchstart", ({ target, touches }) => {
  touched = touches.length === 1 && target.closest(".cockpit .response") && !target.closest("pre, table, .math") ? touches[0] : null;
}, { passive: true });
document.addEventListener("touchend", ({ changedTouches }) => {
  if (!touched || !document.querySelector(".cockpit .sheet.away") || !getSelection().isCollapsed) return;
  const [{ clientX, clientY }] = changedTouches, along = clientX - touched.clientX, down = clientY - touched.clientY;
  if (Math.abs(along) < 60 || Math.abs(along) < 2 * Math.abs(down)) return;
  const links = [...strip().querySelectorAll("a")], at = links.findIndex((link) => link.matches("[aria-current]"));
  links[at + (along < 0 ? 1 : -1)]?.click();
}, { passive: true });

// A conversation that is longer than its place begins at its last turn.
function showLastTurn() {
  const turns = document.querySelectorAll(".cockpit > .conversation > .turn"), last = turns[turns.length - 1];
  if (last) last.parentElement.scrollTop = last.offsetTop - last.parentElement.offsetTop;
}

// The first question of a place that has no answer yet.
function firstOf(place) {
  const all = every().filter((one) => place.contains(one) && isAsked(one));
  return all.find((one) => one.matches("[data-question], .segments") && !isComplete(one)) ?? all[0];
}

function begin() {
  // Before this script has run, the first scale is shown.
  for (const one of document.querySelectorAll("#rating .current")) one.classList.remove("current");
  asked = pointed = null;
  if (!cockpit()) return;
  build();
  ask(every().find((one) => one.matches(".missing") || one.querySelector(".refused")) ?? firstOf(document.getElementById("rating")));
  measure();
  showLastTurn();
}
document.addEventListener("htmx:afterSettle", ({ target }) => { if (target.id === "work") begin(); });
begin();
