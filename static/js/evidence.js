// Words of a response on which a score is based: they are selected and given to an attribute by its letter or its button,
// and a digit then rates it. Each response keeps its list in a hidden field; the words stay highlighted in the text.
const TEXTS = ".response .prose, .response .source";
const lit = window.Highlight && new Highlight();
if (lit) CSS.highlights.set("evidence", lit);

const sheetOf = (node) => (node?.closest ? node : node?.parentElement)?.closest("#rating .sheet");
const places = () => [...document.querySelectorAll("#rating [data-evidence]")];
const fieldOf = (place) => place.querySelector("input[type=hidden]");

function read(place) {
  try { return JSON.parse(fieldOf(place).value || "[]"); } catch { return []; }
}

function write(place, items) {
  fieldOf(place).value = items.length ? JSON.stringify(items) : "";
  fieldOf(place).dispatchEvent(new Event("input", { bubbles: true }));
}

// Blanks and the marks of markdown are no part of what is compared: the source may have others than the page.
const squeezed = (text) => text.replace(/[\s*_~`]+/g, "");

function selected() {
  const selection = getSelection(), sheet = sheetOf(selection.anchorNode), quote = selection.toString().replace(/\s+/g, " ").trim();
  const text = [...(sheet?.querySelectorAll(TEXTS) ?? [])].find((one) => one.contains(selection.anchorNode) && one.contains(selection.focusNode));
  const place = sheet?.querySelector("[data-evidence]");
  if (!quote || !text || !place || fieldOf(place).matches(":disabled, :disabled *")) return null;
  const before = document.createRange();
  before.setStart(text, 0);
  before.setEnd(selection.getRangeAt(0).startContainer, selection.getRangeAt(0).startOffset);
  return { sheet, place, quote, before: [...squeezed(before.toString())].length };
}

// Where the words stand on the page, for their colour: of several places, the one with about as many letters before it.
function rangeOf(text, quote, before) {
  const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT), letters = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (let at = 0; at < node.length; at += 1) if (squeezed(node.data[at])) letters.push([node, at]);
  }
  const all = letters.map(([node, at]) => node.data[at]).join(""), words = squeezed(quote);
  let start = -1;
  for (let at = words ? all.indexOf(words) : -1; at >= 0; at = all.indexOf(words, at + 1)) {
    if (start < 0 || Math.abs(at - before) < Math.abs(start - before)) start = at;
  }
  if (start < 0) return null;
  const range = document.createRange(), [last, end] = letters[start + words.length - 1];
  range.setStart(...letters[start]);
  range.setEnd(last, end + 1);
  return range;
}

function light() {
  lit?.clear();
  const quotes = [...places().flatMap((place) => read(place).map((item) => [place, item])),
    ...[...document.querySelectorAll("#rating [data-quote]")].map((one) => [one, one.dataset])];
  for (const [place, { quote, before }] of quotes) {
    const text = sheetOf(place)?.querySelector(TEXTS), range = text && rangeOf(text, quote, Number(before ?? 0));
    if (range) lit?.add(range);
  }
}

const made = (tag, values) => Object.assign(document.createElement(tag), values);

function line(place, items, at) {
  const item = items[at], words = place.querySelector("ul").dataset, li = document.createElement("li");
  const name = document.querySelector(`[data-supports="${CSS.escape(item.attribute)}"]`)?.dataset.name ?? item.attribute;
  const note = made("input", { value: item.note ?? "", placeholder: words.note, ariaLabel: `${words.note}: ${name}`, maxLength: 5000, autocomplete: "off" });
  const remove = made("button", { type: "button", className: "tool", textContent: "\u00d7", ariaLabel: `${words.remove}: ${name}, ${item.quote}` });
  note.addEventListener("input", (event) => {
    event.stopPropagation(); // the hidden field tells what has changed
    write(place, items.with(at, { ...item, note: note.value }));
    items[at] = { ...item, note: note.value };
  });
  note.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.ctrlKey) event.preventDefault(); });
  remove.addEventListener("click", () => {
    write(place, items.toSpliced(at, 1));
    show(place);
  });
  li.append(made("b", { textContent: name }), " ", made("q", { dir: "auto", textContent: item.quote }), " ", note, " ", remove);
  return li;
}

function show(place) {
  const items = read(place);
  place.querySelector("ul").replaceChildren(...items.map((_, at) => line(place, items, at)));
  light();
}

function support(attribute) {
  const words = selected();
  if (!words) return false;
  const { sheet, place, quote, before } = words;
  write(place, [...read(place), { attribute, quote, before, note: "" }]);
  show(place);
  getSelection().removeAllRanges();
  const scale = [...sheet.querySelectorAll(".likert")].find((one) => one.querySelector("[type=radio]").name.startsWith(`${attribute}-`));
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
});
// Before the letters mean anything else on this page.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || event.key.length > 1) return;
  if (!document.querySelector(".cockpit.quoting") || document.querySelector("dialog[open]") || event.target.matches("textarea, input:not([type=radio], [type=checkbox], .cell)")) return;
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
