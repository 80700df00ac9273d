// One question at a time stands in the dock, under texts that do not move. The strip above it holds the answers so far,
// and is the way to every question. The form keeps its order: what is shown is a matter of style.
import { reveal } from "./letters.js";
import { cockpit, every, firstOf, inDock, isAsked, isComplete, letterOf, nameOf, NARROW } from "./questions.js";
import { build, mark, questionOf } from "./strip.js";
import { measure, showLastTurn } from "./texts.js";

let asked = null, pointed = null;

// Whether the element's question waits in the dock: it is asked although it cannot be seen.
export const waits = (element) => Boolean(cockpit()?.contains(element)) && isAsked(element) && !element.matches(".ranking:not(.live), :disabled, :disabled *");
export const inQuestion = () => (cockpit() && asked?.isConnected && !asked.matches(":disabled *") ? asked : null);

export function ask(element) {
  const question = cockpit() && inDock(element);
  if (!question || question === asked) return;
  asked?.classList.remove("current");
  asked = question;
  asked.classList.add("current");
  const sheet = asked.closest(".sheet");
  if (sheet) reveal(sheet);
  mark(asked);
  asked.dispatchEvent(new CustomEvent("question:asked", { bubbles: true }));
}

// Another response is read from its beginning.
function askAndShow(question) {
  const from = asked?.closest(".sheet");
  ask(question);
  const to = asked?.closest(".sheet");
  if (to && to !== from) to.scrollIntoView({ block: "start" });
}

// The boxes under a scale may follow its level, though the next scale is asked already.
export function noteRated(question) {
  for (const one of document.querySelectorAll("#rating .rated")) one.classList.remove("rated");
  const boxes = cockpit() && question?.querySelector(".checks");
  if (!boxes) return;
  boxes.dataset.of = `${nameOf(question)}:`;
  question.classList.add("rated");
}

document.addEventListener("click", ({ target }) => {
  const question = questionOf(target.closest?.(".chip"));
  if (!question) return;
  noteRated(null);
  question.dispatchEvent(new CustomEvent("question:chosen", { bubbles: true }));
  ask(question); // where nothing in it can be focused
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
  askAndShow(next);
  (next.querySelector("[type=radio]:checked, [data-handle]") ?? next.querySelector(STOPS)).focus();
});

// Whoever rates by pointer goes on to the next question too; arrows within a scale only change the level. The second
// click of a double one would meet the next question.
const DOUBLE_MS = 250;
let passed = -Infinity;
document.addEventListener("click", (event) => {
  const isSecond = event.detail > 1 && event.timeStamp - passed < DOUBLE_MS;
  if (isSecond && event.target.closest("#rating :is(.level, .line)")?.querySelector("[type=radio]")) event.preventDefault();
}, { capture: true });

// On a phone a response goes with its boxes: they are ticked first, and the letters lead on.
function stays(question) {
  const all = every().filter(isAsked), next = all[all.indexOf(question) + 1];
  return NARROW.matches && question.querySelector(".checks") && next?.closest(".sheet") !== question.closest(".sheet");
}

document.addEventListener("pointerdown", ({ target }) => { pointed = target.closest("#rating .current"); });
document.addEventListener("keydown", () => { pointed = null; }, { capture: true });
document.addEventListener("change", ({ target, timeStamp }) => {
  if (target.type !== "radio" || !pointed?.contains(target) || !cockpit()) return;
  passed = timeStamp;
  noteRated(pointed);
  if (!stays(pointed)) pointed.dispatchEvent(new CustomEvent("group:done", { bubbles: true }));
});

function begin() {
  // Before this script has run, the first scale is shown.
  for (const one of document.querySelectorAll("#rating .current")) one.classList.remove("current");
  asked = pointed = null;
  if (!cockpit()) return;
  build();
  askAndShow(every().find((one) => one.matches(".missing") || one.querySelector(".refused")) ?? firstOf(document.getElementById("rating")));
  measure();
  showLastTurn();
}
document.addEventListener("htmx:afterSettle", ({ target }) => { if (target.id === "work") begin(); });
begin();
