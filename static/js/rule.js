// Guidelines that are opened while a question is in focus begin where they are about its attribute.
import { freshToken } from "./csrf.js";
import { current } from "./keys.js";

const text = document.getElementById("guidelines-text");
const NAMES = "h1, h2, h3, h4, h5, h6, strong, dt, th";
let asked = "", attribute = "";

const plain = (words) => words.trim().toLowerCase();
// The dock says which aspect the segment in focus is rated on.
const title = (group) => group?.matches(".segments") ? document.querySelector(".dock .aspect:not([hidden]) strong") : group?.querySelector("legend")?.firstChild;
const names = (element) => plain(element.textContent) === asked || plain(element.textContent).startsWith(`${asked}:`);

// The key of the attribute or aspect in question; none for questions about the task.
function keyOf(group) {
  if (group?.matches(".segments")) return document.querySelector(".dock .aspect:not([hidden])")?.dataset.aspect ?? "";
  return group?.matches(".likert") ? group.querySelector("[type=radio]").name.replace(/-\d+$/, "") : "";
}

function show() {
  for (const element of text.querySelectorAll(".asked")) element.classList.remove("asked");
  const rule = asked && [...text.querySelectorAll(NAMES)].find(names);
  if (!rule) return;
  rule.classList.add("asked");
  rule.scrollIntoView({ block: "start" });
}

document.addEventListener("click", ({ target }) => {
  if (!target.closest("[data-opens=guidelines]")) return;
  asked = plain(title(current())?.textContent ?? "");
  attribute = keyOf(current());
  document.querySelector("[data-notes-gap]").hidden = !document.querySelector("#rating[data-silent]");
  document.querySelector("[data-gap-said]").textContent = "";
}, { capture: true });
// Once the panel is open: what is not shown cannot be scrolled.
document.addEventListener("click", ({ target }) => { if (target.closest("[data-opens=guidelines]")) show(); });
document.addEventListener("htmx:afterSettle", ({ target }) => { if (target === text) show(); });

// Reviewers are told of a question that the guidelines do not answer; the rating goes on.
document.addEventListener("click", async ({ target }) => {
  const button = target.closest("[data-notes-gap]"), said = document.querySelector("[data-gap-said]");
  if (!button) return;
  const headers = { "X-CSRFToken": freshToken() }, body = new URLSearchParams({ attribute });
  try {
    const answer = await fetch(document.getElementById("rating").dataset.silent, { method: "POST", headers, body, redirect: "manual" });
    const isText = answer.headers.get("Content-Type")?.startsWith("text/plain");
    said.textContent = isText ? await answer.text() : button.dataset.failed;
  } catch { said.textContent = button.dataset.failed; }
});
