// Marks the selected text as personal: it becomes a line of the skip form, and stays highlighted in the text.
const TEXTS = ".prose, .source";
// Where the browser has no Highlight, the text is marked all the same, and only its colour is missing.
const shown = window.Highlight && new Highlight();
if (shown) CSS.highlights.set("personal", shown);

function selected() {
  const selection = getSelection();
  const inside = [selection.anchorNode, selection.focusNode].every((node) => (node?.closest ? node : node?.parentElement)?.closest(TEXTS));
  // One line each: the server does not mind what white space stands between the words.
  return inside ? { text: selection.toString().replace(/\s+/g, " ").trim(), range: selection.getRangeAt(0).cloneRange() } : { text: "" };
}

function add(area, text) {
  const lines = area.value.split("\n").filter((line) => line.trim());
  area.value = [...lines.filter((line) => line !== text), text].join("\n") + "\n";
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-mark]");
  if (!button) return;
  const { text, range } = selected(), said = button.parentElement.querySelector("[data-said]");
  // A function, as in a replacement string `$&` and the like have a meaning of their own.
  said.textContent = text ? button.dataset.marked.replace("{text}", () => text) : button.dataset.nothing;
  if (!text) return;
  const area = document.getElementById(button.dataset.mark);
  add(area, text);
  area.closest("details").open = true;
  area.form.querySelector("[name=reason][value=pii]").checked = true;
  shown?.add(range);
});
