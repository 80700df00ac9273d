// Words of a response on which a score is based: they are selected and given to an attribute by its letter or its button,
// and a digit then rates it. Each response keeps its list in a hidden field; the words stay highlighted in the text.
import { typing } from "./typing.js";

const lit = window.Highlight && new Highlight();
if (lit) CSS.highlights.set("evidence", lit);

const elementOf = (node) => (node?.closest ? node : node?.parentElement);
const textAround = (node) => elementOf(node)?.closest("#rating .response :is(.prose, .source)");
const places = () => [...document.querySelectorAll("#rating [data-evidence]")];
const fieldOf = (place) => place.querySelector("input[type=hidden]");
const isClosed = (place) => fieldOf(place).matches(":disabled, :disabled *");

function read(place) {
  try { return JSON.parse(fieldOf(place).value || "[]"); } catch { return []; }
}

function write(place, items) {
  fieldOf(place).value = items.length ? JSON.stringify(items) : "";
  fieldOf(place).dispatchEvent(new Event("input", { bubbles: true }));
}

// Where words stand -----------------------------------------------------------------------------------------
// Only letters are compared, as the server does (quoted_words.py): the source has other blanks, marks and addresses.

const LETTER = /[\p{L}\p{N}\p{M}]/u;
const UNREAD = "button, .katex-mathml, script";

// The letters of a response's shown texts in order: [node, start, end, letter].
function lettersOf(sheet) {
  const found = [];
  for (const text of sheet.querySelectorAll(".response :is(.prose, .source)")) {
    if (!text.checkVisibility()) continue;
    const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (elementOf(node).closest(UNREAD)) continue;
      let at = 0;
      for (const letter of node.data) {
        if (LETTER.test(letter)) found.push([node, at, at + letter.length, letter]);
        at += letter.length;
      }
    }
  }
  return found;
}

const joined = (letters) => letters.map(([, , , letter]) => letter);

// Where the words begin among the letters.
function standing(all, words) {
  const found = [];
  for (let at = 0; words.length && at <= all.length - words.length; at += 1) {
    if (all[at] === words[0] && words.every((letter, on) => all[at + on] === letter)) found.push(at);
  }
  return found;
}

function selected() {
  const selection = getSelection(), text = selection.isCollapsed ? null : textAround(selection.anchorNode) ?? textAround(selection.focusNode);
  const sheet = text?.closest(".sheet"), place = sheet?.querySelector("[data-evidence]");
  return place && !isClosed(place) ? { sheet, place, range: selection.getRangeAt(0) } : null;
}

// The words are known by their letters, by which of several such places they are, by the letters around them, and by how
// far into the text they stand.
const AROUND = 20;
const around = (all, first, end) => ({ before: all.slice(Math.max(first - AROUND, 0), first).join(""), after: all.slice(end, end + AROUND).join("") });

function known({ sheet, range }) {
  const letters = lettersOf(sheet), all = joined(letters);
  const chosen = letters.map(([node, start], at) => (range.isPointInRange(node, start) ? at : -1)).filter((at) => at >= 0);
  // What ends before a letter is at a point of the range, though the letter is not.
  const last = letters[chosen.at(-1)];
  if (last && range.comparePoint(last[0], last[2]) > 0) chosen.pop();
  const words = chosen.map((at) => all[at]), found = standing(all, words);
  const quote = getSelection().toString().replace(/\s+/g, " ").trim();
  if (!words.length) return null;
  const first = chosen[0];
  return { quote, nth: found.indexOf(first), of: found.length, share: first / all.length, ...around(all, first, first + words.length) };
}

function alike(one, other) {
  let count = 0;
  while (count < Math.min(one.length, other.length) && one[count] === other[count]) count += 1;
  return count;
}

function rangeOf(letters, { quote, nth, of, share, before, after }) {
  const all = joined(letters), words = [...quote].filter((letter) => LETTER.test(letter)), found = standing(all, words);
  if (!found.length) return null;
  const turned = (text) => [...text].reverse().join(""), far = (at) => Math.abs(at / all.length - Number(share ?? 0));
  const neighbours = (at) => {
    const its = around(all, at, at + words.length);
    return alike(turned(its.before), turned(before ?? "")) + alike(its.after, after ?? "");
  };
  const isNearer = (at, best) => neighbours(at) - neighbours(best) || far(best) - far(at);
  const first = found.length === Number(of) ? found[Number(nth)] : found.reduce((best, at) => (isNearer(at, best) > 0 ? at : best));
  const range = document.createRange(), last = letters[first + words.length - 1];
  range.setStart(letters[first][0], letters[first][1]);
  range.setEnd(last[0], last[2]);
  return range;
}

function light() {
  lit?.clear();
  for (const sheet of lit ? document.querySelectorAll("#rating .sheet") : []) {
    const place = sheet.querySelector("[data-evidence]");
    const quotes = [...(place ? read(place) : []), ...[...sheet.querySelectorAll("[data-quote]")].map(({ dataset }) => dataset)];
    const letters = quotes.length ? lettersOf(sheet) : [];
    for (const range of quotes.map((one) => rangeOf(letters, one))) if (range) lit.add(range);
  }
}

// The list below the text -----------------------------------------------------------------------------------

const made = (tag, values) => Object.assign(document.createElement(tag), values);

function line(place, items, at) {
  const item = items[at], { note: label, remove, names } = place.querySelector("ul").dataset, li = document.createElement("li");
  const name = names.split("\n").find((one) => one.startsWith(`${item.attribute}=`))?.slice(item.attribute.length + 1) ?? item.attribute;
  li.append(made("b", { textContent: name }), " ", made("q", { dir: "auto", textContent: item.quote }), " ");
  if (isClosed(place)) {
    li.append(made("span", { dir: "auto", textContent: item.note ?? "" }));
    return li;
  }
  const note = made("input", { value: item.note ?? "", placeholder: label, ariaLabel: `${label}: ${name}`, maxLength: 5000, autocomplete: "off" });
  const button = made("button", { type: "button", className: "tool", textContent: "\u00d7", ariaLabel: `${remove}: ${name}, ${item.quote}` });
  note.addEventListener("input", (event) => {
    event.stopPropagation(); // the hidden field tells what has changed
    items[at] = { ...items[at], note: note.value };
    write(place, items);
  });
  note.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.ctrlKey) event.preventDefault(); });
  button.addEventListener("click", () => {
    write(place, items.toSpliced(at, 1));
    show(place);
    light();
  });
  li.append(note, " ", button);
  return li;
}

function show(place) {
  const items = read(place);
  place.querySelector("ul").replaceChildren(...items.map((_, at) => line(place, items, at)));
}

function support(attribute) {
  const words = selected(), item = words && known(words);
  if (!item) return false;
  write(words.place, [...read(words.place), { attribute, ...item, note: "" }]);
  show(words.place);
  light();
  getSelection().removeAllRanges();
  const scale = [...words.sheet.querySelectorAll(".likert")].find((one) => one.querySelector("[type=radio]").name.startsWith(`${attribute}-`));
  scale?.dispatchEvent(new CustomEvent("question:chosen", { bubbles: true }));
  return true;
}

document.addEventListener("selectionchange", () => {
  document.querySelector(".cockpit")?.classList.toggle("quoting", Boolean(selected()));
});
// A press on the button must not take the selection away.
document.addEventListener("pointerdown", (event) => { if (event.target.closest("[data-supports]")) event.preventDefault(); });
document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-supports]");
  if (button) support(button.dataset.supports);
  else if (target.closest("[data-raw]")) setTimeout(light);
});
// Before the letters mean anything else on this page; those of a ranking are its own.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || event.key.length > 1 || typing(event.target)) return;
  if (!document.querySelector(".cockpit.quoting") || document.querySelector("dialog[open], .ranking.current")) return;
  const button = document.querySelector(`[data-supports][data-letter="${CSS.escape(event.key.toLowerCase())}"]`);
  if (!button || !support(button.dataset.supports)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}, { capture: true });

function begin() {
  places().forEach(show);
  light();
}
for (const change of ["drafts:filled", "htmx:afterSettle"]) document.addEventListener(change, begin);
begin();
