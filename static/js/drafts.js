// Keeps a half-filled form. Each choice is saved on the server; what has not arrived stays in this browser, is sent
// again until it has, and is put back into the form; the line #saved says which. A form that this script has filled
// gets the event "drafts:filled".
import { folded, isCell, nameOf } from "./cells.js";
import { freshToken } from "./csrf.js";

const WAIT = 400, RETRY = 4000, PATIENCE = 10_000, BEACON = 60_000;
let timer = null, sending = false, submitting = false, unsubmitted = false, leaving = false;
let skew = 0, base = 0; // the server's clock less ours; when the server last stored the draft

const formOf = () => document.querySelector("form[data-draft]"), stamp = (form) => form.querySelector("[data-since]").dataset;

// Kept in this browser: a record per person and task, {name: {values, at, base}}. Where the browser keeps nothing
// (full, or forbidden) it lives as long as the page.
const memory = new Map(), PREFIX = "draft:", KEEP = 30 * 86_400_000;
const keyOf = (form) => `${PREFIX}${stamp(form).user}:${form.dataset.draft}`;

function stored(key) {
  try { return JSON.parse(localStorage.getItem(key)) ?? {}; } catch { return {}; }
}

function read(form) {
  return { ...stored(keyOf(form)), ...memory.get(keyOf(form)) };
}

function write(form, choices) {
  const key = keyOf(form);
  memory.delete(key);
  try {
    if (Object.keys(choices).length) localStorage.setItem(key, JSON.stringify(choices));
    else localStorage.removeItem(key);
  } catch {
    if (Object.keys(choices).length) memory.set(key, choices);
  }
}

// Choices that were never sent wait until their task or person comes back, but not for ever.
function forgetOld() {
  try {
    for (const key of Object.keys(localStorage).filter((name) => name.startsWith(PREFIX))) {
      const newest = Math.max(0, ...Object.values(stored(key)).map(({ at }) => at ?? 0));
      if (newest < Date.now() - KEEP) localStorage.removeItem(key);
    }
  } catch { /* nothing is kept here at all */ }
}

// The fields of the form by their names.
function fieldsOf(form) {
  const fields = new Map();
  for (const field of form.querySelectorAll("input, select, textarea")) {
    const name = nameOf(field);
    if (name && name !== "csrfmiddlewaretoken") fields.set(name, [...(fields.get(name) ?? []), field]);
  }
  return fields;
}

const isBox = ({ type }) => ["radio", "checkbox"].includes(type);
const valuesOf = (fields) => fields.filter((field) => !isBox(field) || field.checked).map(({ value }) => value);

// Keeps what the groups of fields, each of one name, say now.
function keep(form, groups) {
  const at = Date.now() + skew, choices = read(form);
  for (const fields of groups) choices[nameOf(fields[0])] = { values: valuesOf(fields), at, base };
  write(form, choices);
}

// What somebody chose before this script ran.
function keepEarly(form) {
  const isChanged = (field) => isBox(field) ? field.checked !== field.defaultChecked : (field.defaultValue ?? field.value) !== field.value;
  keep(form, [...fieldsOf(form).values()].filter((fields) => fields.some(isChanged)));
}

// Sent to the server, or on its way: in a local shift that is nothing out of the ordinary.
const SHORT = ["saved", "sent", "queued"], offline = () => ("keeps" in document.getElementById("work").dataset ? "queued" : "offline");

function say(template, at = new Date(), detail = "") {
  const line = document.getElementById("saved"), language = document.documentElement.lang;
  const today = at.toDateString() === new Date().toDateString();
  const time = today ? at.toLocaleTimeString(language) : at.toLocaleString(language);
  line.textContent = line.dataset[template].replace("{time}", time).replace("{detail}", () => detail);
  line.className = template === "queued" ? "queued" : SHORT.includes(template) ? "" : "unsent"; // a sentence has its own place
}

function sendSoon(wait) {
  clearTimeout(timer);
  timer = setTimeout(() => send(formOf()), wait);
}

// Only what has changed is sent: the server has the rest, and a task may have thousands of answers.
function requestOf(form, choices) {
  const body = new URLSearchParams(), names = Object.keys(choices);
  for (const name of names.filter((name) => !isCell(name))) {
    body.append("changed", name);
    for (const value of choices[name].values) body.append(name, value);
  }
  for (const [name, value] of folded(names.filter(isCell).map((name) => [name, choices[name].values[0]]))) {
    body.append("changed", name);
    body.append(name, value);
  }
  if (form.elements.active_seconds && !choices.active_seconds) body.append("active_seconds", form.elements.active_seconds.value);
  // Such a request outlives the page; browsers refuse one of more than 64 KiB.
  const keepalive = body.toString().length < BEACON;
  const impatience = new AbortController();
  setTimeout(() => impatience.abort(), PATIENCE);
  const headers = { "X-CSRFToken": freshToken() };
  return { method: "POST", body, headers, keepalive, redirect: "manual", signal: impatience.signal };
}

async function send(form) {
  const sent = form ? read(form) : {};
  if (sending || submitting || !Object.keys(sent).length) return;
  sending = true;
  const answer = await fetch(form.dataset.draft, requestOf(form, sent)).catch(() => null);
  const stored = answer?.ok ? await answer.json().catch(() => null) : null;
  sending = false;
  if (form !== formOf()) return; // the next task has come meanwhile
  if (!stored) return void missed(answer);
  document.dispatchEvent(new CustomEvent("server:knows"));
  base = Date.parse(stored.saved_at);
  // A choice that was changed while the request was under way is sent next.
  const left = Object.entries(read(form)).filter(([name, { at }]) => at !== sent[name]?.at);
  // The page that comes next may have been drawn before this answer: only what is still kept here corrects it.
  if (!leaving) write(form, Object.fromEntries(left));
  say(unsubmitted ? "back" : "saved");
  unsubmitted = false;
  if (left.length) sendSoon(WAIT);
}

// What the server refuses as it is (too large, not storable, closed) is not sent until the person changes something.
const REFUSED = [400, 409, 413, 422];

// What the server does not explain is no fault of the form.
async function refuse(answer) {
  const said = await answer.json().catch(() => null);
  say(said?.detail ? "refused" : "fault", new Date(), said?.detail);
}

function missed(answer) {
  if (answer && REFUSED.includes(answer.status)) return void refuse(answer);
  const stranger = answer && (answer.type === "opaqueredirect" || answer.status === 403 || answer.status === 404);
  if (stranger) document.dispatchEvent(new CustomEvent("leaving:failed", { detail: "stranger" }));
  else if (!unsubmitted) say(memory.size > 0 ? "unkept" : offline());
  sendSoon(RETRY);
}

function keepSoon(form, groups) {
  if (!form || form !== formOf()) return;
  keep(form, groups);
  sendSoon(WAIT);
}

document.addEventListener("input", ({ target }) => {
  const name = nameOf(target);
  if (!name || !target.form) return;
  const same = isBox(target) ? [...target.form.querySelectorAll(`[name="${CSS.escape(name)}"]`)] : [target];
  keepSoon(target.form, [same]);
});
document.addEventListener("cells:put", ({ target, detail }) => keepSoon(target.form, detail.map((cell) => [cell])));
document.addEventListener("visibilitychange", () => { if (document.hidden) send(formOf()); });
for (const back of ["online", "logged-in"]) addEventListener(back, () => send(formOf()));
addEventListener("beforeunload", () => {
  leaving = true;
  setTimeout(() => { leaving = false; sendSoon(0); }, PATIENCE); // the person stayed, or something was downloaded
});
addEventListener("beforeunload", (event) => { if (memory.size > 0 && !submitting) event.preventDefault(); });

// Put back into the form, and kept until a submission has been stored.
function fill(form, choices, fields = fieldsOf(form)) {
  for (const [name, { values }] of choices) {
    for (const field of fields.get(name) ?? []) {
      if (isBox(field)) field.checked = values.includes(field.value);
      else field.value = values[0] ?? "";
    }
  }
  form.dispatchEvent(new Event("drafts:filled", { bubbles: true }));
}

// A task that has left may come back as it was, until the server has it.
document.addEventListener("shift:left", ({ target }) => {
  clearTimeout(timer);
  submitting = unsubmitted = false;
  keep(target, [...fieldsOf(target).values()].filter((fields) => valuesOf(fields).some((value) => value !== "")));
});
document.addEventListener("shift:stored", ({ detail: { kind, url, user } }) => {
  const draft = url.replace(/[^/]+\/$/, "draft/"), key = `${PREFIX}${user}:${draft}`;
  if (kind === "undo" || formOf()?.dataset.draft === draft) return;
  memory.delete(key);
  localStorage.removeItem(key);
});
document.addEventListener("outbox:empty", () => { if (formOf() && !Object.keys(read(formOf())).length) say("sent"); });

// A choice yields where the server has stored another since, made later on another machine.
function restore(before = () => {}) {
  const form = formOf();
  submitting = false;
  if (!form) return;
  const { now, since } = stamp(form);
  skew = 1000 * Number(now) - Date.now();
  base = 1000 * Number(since);
  before(form);
  // One millisecond more: `since` has microseconds, and a base from an answer of the server has not.
  const entries = Object.entries(read(form)), fields = fieldsOf(form);
  const isAnswered = (name) => valuesOf(fields.get(name) ?? []).some((value) => value !== "");
  const left = entries.filter(([name, made]) => made.base + 1 >= base || made.at > base || !isAnswered(name));
  fill(form, left, fields);
  write(form, Object.fromEntries(left));
  if (base && !left.length) say("saved", new Date(base - skew));
  send(form);
}

// The same task in two tabs shows the same choices, so that neither sends an older state.
addEventListener("storage", ({ key, newValue }) => {
  const form = formOf();
  if (!form || key !== keyOf(form)) return;
  if (!newValue) return void say("saved");
  fill(form, Object.entries(JSON.parse(newValue)));
});

// No draft may overtake the submission it belongs to.
document.addEventListener("submit", (event) => { submitting ||= event.target === formOf(); }, { capture: true });

document.addEventListener("htmx:beforeSwap", ({ target, detail }) => {
  if (target.id !== "work" || detail.xhr.status >= 300) return;
  if (formOf()) write(formOf(), {});
  unsubmitted = false;
});

for (const failure of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
  document.addEventListener(failure, ({ target, detail }) => {
    const form = formOf();
    if (form && target !== form && target.closest("#work")) say("undone"); // a part of the form, such as its cuts
    if (target !== form) return;
    [submitting, unsubmitted] = [false, true];
    keep(form, [...fieldsOf(form).values()].filter((fields) => valuesOf(fields).some((value) => value !== "")));
    say(detail.xhr.status === 403 || detail.xhr.status === 404 ? "stranger" : "unsubmitted");
    sendSoon(RETRY);
  });
}

document.addEventListener("leaving:failed", ({ detail }) => {
  submitting = false;
  if (document.getElementById("saved")) say(detail);
  sendSoon(RETRY);
});
document.addEventListener("htmx:afterSettle", ({ target }) => { if (target.id === "work") restore(); });
// The browser may bring a page back as it was left: with an old form, and with `submitting` still set.
addEventListener("pageshow", ({ persisted }) => { if (persisted) restore(); });
forgetOld();
restore(keepEarly);
