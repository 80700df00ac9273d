// Saves each choice. What has not arrived stays on this machine, is sent again until it has, and the line says so.
const WAIT = 400, RETRY = 4000, PATIENCE = 10_000, BEACON = 60_000;
let timer = null, sending = false, submitting = false, unsubmitted = false;
let skew = 0, base = 0; // the server's clock less ours; when the server last stored the draft

const formOf = () => document.querySelector("form[data-draft]");

function say(template) {
  const line = document.getElementById("saved");
  const time = new Date().toLocaleTimeString(document.documentElement.lang);
  line.textContent = line.dataset[template].replace("{time}", time);
  line.classList.toggle("unsent", !["saved", "back"].includes(template));
}

function keep(form, names) {
  const data = new FormData(form), at = Date.now() + skew, choices = kept.read(form);
  for (const name of names) choices[name] = { values: data.getAll(name), at, base };
  kept.write(form, choices);
}

function sendSoon(wait) {
  clearTimeout(timer);
  timer = setTimeout(() => send(formOf()), wait);
}

function requestOf(form, choices) {
  const body = new URLSearchParams(new FormData(form));
  for (const [name, { values }] of Object.entries(choices)) {
    body.append("changed", name);
    body.delete(name); // what was kept counts: another tab may have chosen it
    for (const value of values) body.append(name, value);
  }
  body.delete("csrfmiddlewaretoken"); // the header has a fresh one
  const keepalive = body.toString().length < BEACON; // it then outlives the page
  const impatience = new AbortController();
  setTimeout(() => impatience.abort(), PATIENCE);
  const headers = { "X-CSRFToken": freshToken() };
  return { method: "POST", body, headers, keepalive, redirect: "manual", signal: impatience.signal };
}

async function send(form) {
  const sent = form ? kept.read(form) : {};
  if (sending || submitting || !Object.keys(sent).length) return;
  sending = true;
  const answer = await fetch(form.dataset.draft, requestOf(form, sent)).catch(() => null);
  sending = false;
  if (form !== formOf()) return;
  if (!answer?.ok) return void missed(answer);
  base = Date.parse((await answer.json()).saved_at);
  const left = Object.entries(kept.read(form)).filter(([name, { at }]) => at !== sent[name]?.at);
  kept.write(form, Object.fromEntries(left));
  say(unsubmitted ? "back" : "saved");
  unsubmitted = false;
  if (left.length) sendSoon(WAIT);
}

// What the server refuses as it is (too large, not storable, closed) it refuses again: only another choice sends anew.
const REFUSED = [400, 409, 413, 422];

function missed(answer) {
  if (answer && REFUSED.includes(answer.status)) return void say("refused");
  const stranger = answer && (answer.type === "opaqueredirect" || answer.status === 403 || answer.status === 404);
  if (stranger) say("stranger");
  else if (!unsubmitted) say(kept.inMemory() ? "unkept" : "offline");
  sendSoon(RETRY);
}

document.addEventListener("input", ({ target }) => {
  if (!target.name || !target.form || target.form !== formOf()) return;
  keep(target.form, [target.name]);
  sendSoon(WAIT);
});
document.addEventListener("visibilitychange", () => { if (document.hidden) send(formOf()); });
window.addEventListener("online", () => send(formOf()));
window.addEventListener("beforeunload", (event) => { if (kept.inMemory() && !submitting) event.preventDefault(); });
