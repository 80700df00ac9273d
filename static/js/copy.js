// A button on each code block that copies it.
const texts = document.querySelector("script[data-copied]").dataset;

function offerCopies() {
  // Marked ones are left alone: this runs again whenever htmx has changed a part of the page.
  for (const block of document.querySelectorAll(".prose pre:not([data-copies])")) {
    block.dataset.copies = "";
    const frame = Object.assign(document.createElement("div"), { className: "code" });
    const button = Object.assign(document.createElement("button"), { type: "button", className: "copy" });
    button.textContent = texts.copy;
    button.setAttribute("aria-live", "polite");
    button.addEventListener("click", () => copy(block, button));
    block.before(frame);
    frame.append(block, button);
  }
}

async function copy(block, button) {
  // Browsers give the clipboard only to pages on https or this machine; selecting works everywhere.
  if (navigator.clipboard) await navigator.clipboard.writeText(block.textContent).catch(() => copySelected(block));
  else copySelected(block);
  button.textContent = texts.copied;
  setTimeout(() => { button.textContent = texts.copy; }, 2000);
}

function copySelected(block) {
  getSelection().selectAllChildren(block);
  document.execCommand("copy");
  getSelection().removeAllRanges();
}

offerCopies();
document.addEventListener("htmx:afterSettle", offerCopies);
