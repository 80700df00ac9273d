// Saves each choice. While the server is away the choices stay on this machine and are sent when it is back.
const WAIT = 400, RETRY = 4000;
let timer = null, sending = null;

const formOf = () => document.querySelector("form[data-draft]");
const keyOf = (form) => `draft:${form.dataset.draft}`;
const entries = (form) => [...new FormData(form)].filter(([name]) => name !== "csrfmiddlewaretoken");

function say(form, template) {
  const place = document.getElementById("saved");
  place.textContent = form.dataset[template].replace("{time}", new Date().toLocaleTimeString(document.documentElement.lang));
}

async function send(form) {
  if (!form || sending || !localStorage.getItem(keyOf(form))) return;
  const kept = localStorage.getItem(keyOf(form));
  const body = new URLSearchParams(JSON.parse(kept));
  const headers = { "X-CSRFToken": form.elements.csrfmiddlewaretoken.value };
  sending = fetch(form.dataset.draft, { method: "POST", body, headers, redirect: "manual" });
  try {
    const answer = await sending;
    if (!answer.ok) throw new Error(answer.status);
    if (localStorage.getItem(keyOf(form)) === kept) localStorage.removeItem(keyOf(form));
    say(form, "saved");
  } catch {
    say(form, "offline");
    timer ??= setTimeout(retry, RETRY);
  } finally {
    sending = null;
  }
  if (form.isConnected && localStorage.getItem(keyOf(form)) !== kept) retry();
}

function retry() {
  clearTimeout(timer);
  timer = null;
  send(formOf());
}

function keep(event) {
  const form = event.target.closest?.("form[data-draft]");
  if (!form) return;
  localStorage.setItem(keyOf(form), JSON.stringify(entries(form)));
  clearTimeout(timer);
  timer = setTimeout(retry, WAIT);
}

function restore() {
  const form = formOf();
  const kept = form && localStorage.getItem(keyOf(form));
  if (!kept) return;
  for (const [name, value] of JSON.parse(kept)) {
    for (const field of form.querySelectorAll(`[name="${CSS.escape(name)}"]`)) {
      if (field.type === "radio" || field.type === "checkbox") field.checked ||= field.value === value;
      else field.value = value;
    }
  }
  send(form);
}

// A submission that was stored needs its copy no more; one that did not arrive is still here to be sent again.
document.addEventListener("htmx:beforeSwap", (event) => {
  const form = formOf();
  if (form && event.target.id === "work" && event.detail.xhr.status < 300) localStorage.removeItem(keyOf(form));
});
for (const failure of ["htmx:sendError", "htmx:responseError"]) {
  document.addEventListener(failure, () => formOf() && say(formOf(), "offline"));
}

document.addEventListener("input", keep);
document.addEventListener("htmx:afterSettle", restore);
window.addEventListener("online", retry);
restore();
