// A local shift: the next task stands there at once, as this browser keeps it ready. What is done leaves by the outbox,
// also while the network or the server is away.
import { freshToken } from "./csrf.js";
import { comesBack, forgetOthers, keepPages, open, outbox, post, ready, replace, showing, take, wasLeft } from "./kept.js";
import { call, outcome, SENT, sendAll, STRANGER, takeBack } from "./outbox.js";
import { every, isAsked, isComplete } from "./questions.js";

const RETRY = 4000, RENEW = 60_000;
const work = document.getElementById("work"), { ahead, letGo, slug, user, policy, guidelines } = work.dataset;
// Only where the browser can keep pages apart by person: not over plain http, but for this machine's own.
const able = Boolean(ahead) && isSecureContext && "locks" in navigator && "serviceWorker" in navigator && "indexedDB" in window;
const page = able && new Response(`<!doctype html>${document.documentElement.outerHTML.replace("<html", "<html data-kept")}`, {
  headers: { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy },
});
const token = able && crypto.randomUUID();

const numberOf = (form) => Number(form?.action.match(/assignments\/(\d+)\//)?.[1]);
const rating = () => document.getElementById("rating");
const pristine = () => {
  const copy = work.cloneNode(true);
  for (const one of copy.querySelectorAll("#messages, .undo")) one.remove();
  return copy.innerHTML;
};
let current = able && rating() ? { id: numberOf(rating()), html: pristine(), at: Date.now() } : null;
let last = null; // what was done last, with its task
let left = 0, waiting = 0, isUnanswered = false, isSent = false, busy = false, works = false, isOurs = false, timer = null;

const say = (detail) => document.dispatchEvent(new CustomEvent("leaving:failed", { detail }));

// Shows a task as the page would: its clock has gone on since it was drawn.
function show(task, { undo = "", again = false } = {}) {
  const drawn = document.createElement("template");
  drawn.innerHTML = `<div id="messages" role="status" aria-live="polite"></div>${undo}${task.html}`;
  const stamp = drawn.content.querySelector("[data-since]"), previous = drawn.content.querySelector(".previous");
  if (stamp) stamp.dataset.now = Number(stamp.dataset.now) + (Date.now() - task.at) / 1000;
  if (previous && last?.kind === "submit" && last.id !== task.id) {
    previous.href = `${last.url.replace("/submit/", "/revise/")}?next=${encodeURIComponent(location.pathname)}`;
    previous.hidden = false;
  }
  current = { ...task, again };
  put(drawn.innerHTML);
}

function put(html) {
  isOurs = true;
  htmx.swap("#work", html, { swapStyle: "innerHTML", swapDelay: 0, settleDelay: 0 });
  isOurs = false;
}

// The server has answered with a task itself: with the next one, or with this one as it is now.
document.addEventListener("htmx:afterSettle", async ({ target }) => {
  if (target !== work || isOurs || !works) return;
  const id = numberOf(rating());
  current = id ? { id, html: pristine(), at: Date.now(), again: current?.id === id && current.again } : null;
  if (!id) return;
  if (last?.id !== id) last = null;
  await showing(id, slug);
  sync();
});

function showNothing() {
  current = null;
  const drawn = document.getElementById("shift-over").content.cloneNode(true).firstElementChild;
  put(`<div id="messages" role="status" aria-live="polite"></div>${drawn.outerHTML}`);
}

async function showNext(undo) {
  const task = await take(slug);
  if (task) show(task, { undo });
  else showNothing();
  await count();
}

async function count() {
  [left, waiting] = [(await ready(slug)).length, (await outbox()).length];
}

// What may go on without an answer: a page is ready, or nobody answers anyhow.
const goesAlone = () => works && current && (left > 0 || waiting > 0 || isUnanswered || !navigator.onLine);
const isWhole = () => every().filter((one) => isAsked(one) && one.matches("[data-question], .segments")).every(isComplete);
const KINDS = { skip: "skip", report: "report" };
const undoOf = (kind) => document.getElementById(`undo-${kind}`)?.innerHTML.replaceAll("/0/", `/${last.id}/`) ?? "";

async function leave(form, kind, fields) {
  const item = { slug, id: current.id, kind, url: new URL(form.action).pathname, fields, html: current.html, at: current.at };
  if (current.again) item.fields.push(["again", "1"]);
  item.key = await post(item);
  await showing(item.id, slug, true);
  rating().dispatchEvent(new CustomEvent("shift:left", { bubbles: true }));
  last = item;
  await showNext(KINDS[kind] ? undoOf(kind) : "");
  sync();
}

// An undo that the server need not hear of is a step back; else it is one more step.
async function undo(form) {
  const item = last, { key, ...step } = item;
  if (!(await takeBack(user, item.id))) await post({ ...step, kind: "undo", url: new URL(form.action).pathname, fields: [], tried: false });
  await giveWay(item, false);
}

async function giveWay(item, again) {
  last = null;
  if (current) await comesBack({ ...current, slug });
  await showing(item.id, slug);
  show({ id: item.id, html: item.html, at: item.at }, { again });
  await count();
  sync();
}

// The event is taken before anything else hears of it, so that nothing is sent twice.
function once(event, step) {
  event.preventDefault();
  event.stopImmediatePropagation();
  if (busy) return;
  busy = true;
  step().catch(() => { works = false; say("undone"); }).finally(() => { busy = false; });
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.matches("#work .undo") && last && numberOf(form) === last.id) return once(event, () => undo(form));
  const kind = form.id === "rating" ? "submit" : KINDS[form.closest("#work details")?.id];
  if (!kind || !goesAlone() || (kind === "submit" ? !isWhole() : !new FormData(form).get(kind === "skip" ? "reason" : "category"))) return;
  once(event, () => leave(form, kind, [...new FormData(form)].filter(([name]) => name !== "csrfmiddlewaretoken")));
}, { capture: true });

document.addEventListener("click", (event) => {
  const link = event.target.closest(".previous");
  if (!link || !works || last?.kind !== "submit" || !link.pathname.includes(`/${last.id}/`)) return;
  once(event, async () => {
    const item = last;
    if (await takeBack(user, item.id)) await giveWay(item, Boolean(item.tried));
    else location.assign(link.href);
  });
}, { capture: true });

// Everything is sent, and the next tasks are fetched, one after the other.
let syncing = null;
export const sync = () => { syncing = (syncing ?? Promise.resolve()).then(step, step); return syncing; };

async function step() {
  clearTimeout(timer);
  let result = await sendAll(user);
  if (result === SENT) result = await stockUp();
  await count();
  if (result === STRANGER) say("stranger");
  else if (waiting && result !== SENT) say("offline");
  else if (waiting === 0 && isSent) document.dispatchEvent(new CustomEvent("outbox:empty"));
  isSent = false;
  if (result !== SENT) timer = setTimeout(sync, RETRY);
  else if (!current) location.reload();
}

async function stockUp() {
  const has = (await ready(slug)).map(({ id, mark }) => ["has", `${id}:${mark}`]);
  const answer = await call(ahead, [["shift", token], ["shown", current?.id ?? ""], ...has]), result = outcome(answer);
  const held = answer?.ok ? await answer.json().catch(() => null) : null;
  if (!held) return result === SENT ? "away" : result;
  if (String(held.user) !== user) location.reload();
  const gone = new Set((await outbox()).map(({ id }) => id)).add(current?.id);
  await replace(slug, held.order.filter((id) => !gone.has(id)), held.tasks);
  const line = document.querySelector("#work .left"), drawn = document.createElement("template");
  drawn.innerHTML = held.left;
  if (line && held.left) line.textContent = drawn.content.querySelector(".left").textContent;
  return SENT;
}

// A refusal is said; what has faults comes back after the task at hand, as the server shows it.
document.addEventListener("outbox:answered", async ({ detail: { item, status, page: shown, said, detail } }) => {
  isUnanswered = false;
  isSent = true;
  if (status === 422) {
    const html = new DOMParser().parseFromString(shown, "text/html").getElementById("work").innerHTML;
    await comesBack({ id: item.id, slug: item.slug, html, at: Date.now() });
    if (last?.id === item.id) last = null;
    await count();
  } else document.dispatchEvent(new CustomEvent("shift:stored", { detail: item }));
  const words = detail && !(item.kind === "undo" && item.tried) ? [detail] : (said ?? []).slice(1);
  const place = document.getElementById("messages");
  for (const text of place ? words : []) {
    const line = document.createElement("p");
    line.className = `message ${detail ? "error" : "info"}`;
    line.textContent = text;
    place.append(line);
  }
});

for (const failure of ["htmx:sendError", "htmx:timeout"]) document.addEventListener(failure, () => { isUnanswered = true; });
addEventListener("online", () => { if (works) sync(); });
document.addEventListener("logged-in", () => { if (works) sync(); });

// Who closes the page gives back what was not shown; a page that is loaded again takes it up.
addEventListener("pagehide", ({ persisted }) => {
  if (!works || persisted) return;
  fetch(letGo, { method: "POST", keepalive: true, body: new URLSearchParams({ shift: token }), headers: { "X-CSRFToken": freshToken() } }).catch(() => {});
});

// A page that the server or the browser shows again may have a task that is done already.
async function begin() {
  await open(user);
  await forgetOthers(user);
  works = true;
  const done = new Set((await outbox()).map(({ id }) => id));
  await count();
  const isOld = "kept" in document.documentElement.dataset && current && (await wasLeft(current.id));
  if (isOld || done.has(current?.id)) await showNext();
  else if (current) await showing(current.id, slug);
  const fragment = new Request(guidelines, { headers: { "HX-Request": "true" } });
  const pages = async () => keepPages(user, page, { [`${guidelines}?fragment`]: fragment });
  navigator.serviceWorker.register(work.dataset.worker).then(pages).catch(() => {});
  await sync();
}
// What leads away waits until everything is sent, as far as that can be.
export const settled = () => (works && waiting ? Promise.race([sync(), new Promise((over) => setTimeout(over, RETRY))]) : null);
if (able) begin().catch(() => {});
setInterval(() => { if (works && !document.hidden) sync(); }, RENEW);
