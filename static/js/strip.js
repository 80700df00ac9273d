// The strip: a chip with the answer of each question, response by response. The chips lead to their questions.
import { answerOf, cockpit, every, inDock, isAsked, letterOf, nameOf } from "./questions.js";

export const strip = () => document.querySelector(".cockpit [data-strip]");
const chips = new Map(); // the question of each chip

export const questionOf = (chip) => chips.get(chip);

// Shows which question is asked.
export function mark(asked) {
  for (const [chip, question] of chips) {
    if (question === asked) chip.setAttribute("aria-current", "true");
    else chip.removeAttribute("aria-current");
    if (question === asked) chip.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}

function write(chip) {
  const question = chips.get(chip), answer = answerOf(question), { said, differ } = question.dataset, texts = strip().dataset;
  chip.hidden = !isAsked(question);
  chip.textContent = answer || "\u00b7";
  if (said !== undefined) chip.append(Object.assign(document.createElement("small"), { textContent: said || "\u2013" }));
  chip.classList.toggle("open", !answer);
  chip.classList.toggle("lacking", question.matches(".missing") || Boolean(question.querySelector(".refused")));
  chip.classList.toggle("differs", differ !== undefined);
  chip.setAttribute("aria-label", [answer ? `${nameOf(question)}: ${answer}` : nameOf(question),
    ...(said ? [texts.said.replace("{levels}", said)] : []), ...(differ !== undefined ? [texts.differ] : [])].join(", "));
  chip.title = nameOf(question);
}

function letterLink(letter) {
  const link = Object.assign(document.createElement("a"), { href: `#response-${letter}`, textContent: letter });
  link.setAttribute("aria-label", strip().dataset.letter.replace("{letter}", letter));
  return link;
}

export function build() {
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
