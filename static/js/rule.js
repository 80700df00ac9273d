// Guidelines that are opened while a question is in focus begin where they are about its attribute.
import { current } from "./keys.js";

const text = document.getElementById("guidelines-text");
const NAMES = "h1, h2, h3, h4, h5, h6, strong, dt, th";
let asked = "";

const plain = (words) => words.trim().toLowerCase();
// The dock says which aspect the segment in focus is rated on.
const title = (group) => group?.matches(".segments") ? document.querySelector(".dock .aspect:not([hidden]) strong") : group?.querySelector("legend")?.firstChild;
const names = (element) => plain(element.textContent) === asked || plain(element.textContent).startsWith(`${asked}:`);

function show() {
  for (const element of text.querySelectorAll(".asked")) element.classList.remove("asked");
  const rule = asked && [...text.querySelectorAll(NAMES)].find(names);
  if (!rule) return;
  rule.classList.add("asked");
  rule.scrollIntoView({ block: "start" });
}

document.addEventListener("click", ({ target }) => {
  if (target.closest("[data-opens=guidelines]")) asked = plain(title(current())?.textContent ?? "");
}, { capture: true });
// Once the panel is open: what is not shown cannot be scrolled.
document.addEventListener("click", ({ target }) => { if (target.closest("[data-opens=guidelines]")) show(); });
document.addEventListener("htmx:afterSettle", ({ target }) => { if (target === text) show(); });
