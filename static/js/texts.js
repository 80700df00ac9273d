// The texts over the dock: they scroll in their places, side by side together; a finger leads from response to response.
import { NARROW } from "./questions.js";
import { strip } from "./strip.js";

export const SCROLLED = ".cockpit :is(.conversation, .sheets, .response, .word, section.message)";
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
export function measure() {
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
export function scrollText(question, way) {
  const places = [question?.closest(".sheet")?.querySelector(".response"), ...document.querySelectorAll(".cockpit .response, .cockpit .sheets, .cockpit > .conversation")];
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
  if (!touched || !NARROW.matches || !getSelection().isCollapsed) return;
  const [{ clientX, clientY }] = changedTouches, along = clientX - touched.clientX, down = clientY - touched.clientY;
  if (Math.abs(along) < 60 || Math.abs(along) < 2 * Math.abs(down)) return;
  const links = [...strip().querySelectorAll("a")], at = links.findIndex((link) => link.matches("[aria-current]"));
  links[at + (along < 0 ? 1 : -1)]?.click();
}, { passive: true });

// A conversation that is longer than its place begins at its last turn.
export function showLastTurn() {
  const turns = document.querySelectorAll(".cockpit > .conversation > .turn"), last = turns[turns.length - 1];
  if (last) last.parentElement.scrollTop = last.offsetTop - last.parentElement.offsetTop;
}
