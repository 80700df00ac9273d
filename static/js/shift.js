// A local shift: the next task stands there at once, as this browser keeps it ready. What is done leaves by the outbox,
// also while the network or the server is away.
import { freshToken } from "./csrf.js";
import { atHand, comesBack, emptied, forgetOthers, forgetReady, isLeft, keepPages, leftSince, open, outbox, post, ready, replace, shows, take } from "./kept.js";
import { AWAY, call, outcome, SENT, sendAll, STRANGER, takeBack, unsentItems, unstick } from "./outbox.js";
import { every, firstOf, isAsked, isComplete } from "./questions.js";

const RETRY = 4000, RENEW = 60_000, PASSES = ["skip", "report"];
const work = document.getElementById("work"), { ahead, letGo, slug, user, policy, guidelines } = work.dataset;
// Only where the browser can keep pages apart by person: not over plain http, but for this machine's own.
const able = Boolean(user) && isSecureContext && "locks" in navigator && "serviceWorker" in navigator && "indexedDB" in window;
const wasKept = "kept" in document.documentElement.dataset, token = able && crypto.randomUUID();

const numberOf = (form) => Number(form?.action.match(/assignments\/(\d+)\//)?.[1]);
const rating = () => document.getElementById("rating");

function pristine() {
  const copy = work.cloneNode(true);
  for (const one of copy.querySelectorAll("#messages, .undo")) one.remove();
  return copy.innerHTML;
}

const page = able && !wasKept && ahead ? emptied(policy) : null;
let current = able && ahead && rating() ? { id: numberOf(rating()), slug, html: pristine(), at: Date.now() } : null;
let last = null, rated = null; // what was done last, and the last rating
let left = 0, unsent = new Set(), isAway = false, isSent = false, works = false, isOurs = false, isOver = false, timer = null;

const say = (detail) => document.dispatchEvent(new CustomEvent("leaving:failed", { detail }));

function note(textContent, isWrong) {
  const className = `message ${isWrong ? "error" : "info"}`;
  document.getElementById("messages")?.append(Object.assign(document.createElement("p"), { className, textContent }));
}

function put(html) {
  isOurs = true;
  htmx.swap("#work", `<div id="messages" role="status" aria-live="polite"></div>${html}`, { swapStyle: "innerHTML", swapDelay: 0, settleDelay: 0 });
  isOurs = false;
}

// Shows a task as the page would: its clock has gone on since it was drawn.
async function show(task, { undo = "", again = false } = {}) {
  const drawn = document.createElement("template");
  drawn.innerHTML = undo + task.html;
  const stamp = drawn.content.querySelector("[data-since]"), previous = drawn.content.querySelector(".previous");
  if (stamp) stamp.dataset.now = Number(stamp.dataset.now) + (Date.now() - task.at) / 1000;
  if (previous && rated && rated.id !== task.id) {
    previous.href = `${rated.url.replace("/submit/", "/revise/")}?next=${encodeURIComponent(location.pathname)}`;
    previous.hidden = false;
  }
  [current, isOver] = [{ id: task.id, slug, html: task.html, at: task.at, again }, false];
  put(drawn.innerHTML);
  await shows(current);
  await count();
}

async function showNext(undo = "", again = false) {
  const task = await take(slug, { late: isAway || !navigator.onLine, again });
  if (task) return show(task, { undo });
  [current, isOver] = [null, true];
  put(undo + document.getElementById("shift-over").innerHTML);
  return count();
}

async function count() {
  left = await atHand(slug);
  unsent = new Set((await unsentItems()).map(({ id }) => id));
}

// What may go on without an answer: a task waits, or nobody answers anyhow.
const goesAlone = () => left > 0 || isAway || !navigator.onLine;
const isWhole = () => every().filter((one) => isAsked(one) && one.matches("[data-question], .segments")).every(isComplete);
const undoOf = (kind) => document.getElementById(`undo-${kind}`)?.innerHTML.replaceAll("/0/", `/${last.id}/`) ?? "";

async function leave(form, kind, fields) {
  await count();
  if (!goesAlone()) return form.requestSubmit(); // what was ready has been given back meanwhile
  const { id, html, at, again } = current;
  if (again) fields.push(["again", "1"]);
  last = { user, slug, id, kind, url: new URL(form.action).pathname, fields, html, at, again };
  if (kind === "submit") rated = last;
  await post(last).then(() => isLeft(id, slug));
  rating().dispatchEvent(new CustomEvent("shift:left", { bubbles: true }));
  await showNext(PASSES.includes(kind) ? undoOf(kind) : "");
  sync();
}

async function giveWay(item) {
  const again = Boolean(item.again || (item.tried && item.kind === "submit"));
  last = null;
  if (current) await comesBack(current);
  await show(item, { again });
  sync();
}

async function leadTo(question) {
  document.getElementById("messages").replaceChildren();
  note(work.dataset.missing, true);
  question.dispatchEvent(new CustomEvent("question:chosen", { bubbles: true }));
}

// An undo that the server need not hear of is a step back; else it is one more step.
async function undo(form) {
  const item = last, url = new URL(form.action).pathname;
  if (!(await takeBack(user, item.id))) await post({ ...item, kind: "undo", url, fields: [], pressed: Date.now() });
  await giveWay(item);
}

// The event is taken before anything else hears of it, so that nothing is sent twice: one step after the other, each
// only while what it is about is still shown.
let steps = Promise.resolve();
function inTurn(event, step) {
  const { target } = event;
  event.preventDefault();
  event.stopImmediatePropagation();
  steps = steps.then(() => (target.isConnected ? step() : null)).catch(() => { works = false; delete work.dataset.keeps; say("undone"); });
}

document.addEventListener("submit", (event) => {
  const form = event.target, kind = form.id === "rating" ? "submit" : PASSES.find((id) => form.closest(`#work #${id}`));
  if (form.action.endsWith("/logout/") && works) { works = false; forgetReady(); }
  if (!works || !ahead) return;
  if (form.matches("#work .undo") && last && numberOf(form) === last.id) return inTurn(event, () => undo(form));
  if (!kind || !current || (kind !== "submit" && !new FormData(form).get(kind === "skip" ? "reason" : "category"))) return;
  const isOpen = kind === "submit" && !isWhole();
  if (isOpen && (isAway || !navigator.onLine)) inTurn(event, () => leadTo(firstOf(form)));
  else if (isOpen) return; // the server says what is missing
  else if (goesAlone()) inTurn(event, () => leave(form, kind, [...new FormData(form)].filter(([name]) => name !== "csrfmiddlewaretoken")));
  else if (unsent.size) inTurn(event, async () => { await sync(); form.requestSubmit(); });
}, { capture: true });

document.addEventListener("click", (event) => {
  const link = event.target.closest(".previous");
  if (!link || !works || !rated || rated !== last || !unsent.has(last.id)) return;
  inTurn(event, async () => {
    const taken = await takeBack(user, last.id);
    await count();
    await (taken ? giveWay(taken) : link.click());
  });
}, { capture: true });

// Everything is sent, and the next tasks are fetched, one after the other.
let syncing = Promise.resolve();
export const sync = () => (syncing = syncing.then(step).catch(() => { timer = setTimeout(sync, RETRY); }));

async function step() {
  clearTimeout(timer);
  let result = await sendAll(user);
  if (result === SENT && ahead && works) result = await stockUp();
  await count();
  isAway = result !== SENT;
  if (!isAway) document.dispatchEvent(new CustomEvent("server:knows"));
  if (result === STRANGER) say("stranger");
  else if (unsent.size && isAway) say("queued");
  else if (!unsent.size && isSent) document.dispatchEvent(new CustomEvent("outbox:empty"));
  isSent = false;
  if (isAway) timer = setTimeout(sync, RETRY);
  else if (isOver && works) await (left ? showNext() : location.reload());
}

async function stockUp() {
  const shown = current?.id, has = (await ready(slug)).map(({ id, mark }) => ["has", `${id}:${mark}`]);
  const answer = await call(ahead, [["shift", token], ["shown", shown ?? ""], ...has]), result = outcome(answer);
  const held = answer?.ok ? await answer.json().catch(() => null) : null;
  if (!held) return result === SENT ? AWAY : result;
  if (String(held.user) !== user) {
    location.reload();
    return AWAY;
  }
  const done = new Set((await outbox()).map(({ id }) => id)).add(current?.id);
  if (works) await replace(slug, held.order.filter((id) => !done.has(id)), held.tasks);
  if (held.done && current?.id === shown && !current.again && !document.querySelector("#work .htmx-request")) await showNext().then(() => note(held.done));
  const line = document.querySelector("#work .left");
  if (line && held.left) line.textContent = new DOMParser().parseFromString(held.left, "text/html").querySelector(".left").textContent;
  return SENT;
}

// What has faults, or cannot be let go, comes back after the task at hand; what was refused is said.
document.addEventListener("outbox:answered", async ({ detail: { item, status, page: shown, said = [], detail } }) => {
  isSent = true;
  if (item.kind !== "undo" && item.id !== current?.id) isLeft(item.id, item.slug);
  const html = shown ? new DOMParser().parseFromString(shown, "text/html").getElementById("work").innerHTML : item.html;
  if (status === 422 || (detail && PASSES.includes(item.kind))) {
    await comesBack({ id: item.id, slug: item.slug, html, at: shown ? Date.now() : item.at });
    if (last?.id === item.id) last = null;
    await count();
  } else document.dispatchEvent(new CustomEvent("shift:stored", { detail: item }));
  for (const text of detail ? [detail] : said) note(text, Boolean(detail));
});
document.addEventListener("outbox:set-aside", () => note(work.dataset.gone, true));

// The server has answered with a task itself: the next one, or this one as it is now, but none that was left meanwhile.
document.addEventListener("htmx:afterSettle", async ({ target }) => {
  if (target !== work || isOurs || !works || !ahead) return;
  const id = numberOf(rating());
  if (current && current.id !== id) await isLeft(current.id, slug);
  current = id ? { id, slug, html: pristine(), at: Date.now(), again: current?.id === id && current.again } : null;
  if (last?.id !== id) last = rated = null;
  if (current) await shows(current);
  sync();
});
document.addEventListener("htmx:beforeSwap", (event) => {
  const about = Number(event.detail.pathInfo?.requestPath.match(/assignments\/(\d+)\//)?.[1]);
  if (event.target !== work || !works || !ahead || !about || about === current?.id) return;
  event.detail.shouldSwap = false;
  event.stopImmediatePropagation();
}, { capture: true });
for (const failure of ["htmx:sendError", "htmx:timeout"]) {
  document.addEventListener(failure, ({ target }) => {
    isAway = true;
    if (target === rating() && current) current.again = true; // it may have arrived
  });
}

// Who closes the page gives back what was not shown; a page that is loaded again takes it up.
addEventListener("pagehide", ({ persisted }) => {
  if (!works || !ahead || persisted) return;
  const body = new URLSearchParams([["shift", token], ...[...unsent, current?.id ?? 0].map((id) => ["but", id])]);
  fetch(letGo, { method: "POST", keepalive: true, body, headers: { "X-CSRFToken": freshToken() } }).catch(() => {});
});

// Once everything that the page is made of has come.
function keep() {
  const { katex, style } = document.querySelector("[data-katex]").dataset, others = { headers: { "HX-Request": "true" } };
  keepPages(user, page, { [`${guidelines}?fragment`]: new Request(guidelines, others) }, [katex, style]).catch(() => {});
}

async function begin() {
  await open(user);
  await forgetOthers(user);
  await unstick();
  if (ahead) await navigator.serviceWorker.register(work.dataset.worker);
  if (page) setTimeout(keep, document.readyState === "complete" ? 0 : RETRY);
  works = true;
  if (ahead) work.dataset.keeps = "";
  await count();
  if (wasKept || unsent.has(current?.id) || (await leftSince(current?.id))) await showNext("", true);
  else if (current) await shows(current);
  await sync();
}
if (able) steps = begin().catch(() => { works = false; });

// Whoever does nothing renews nothing.
let lastInput = Date.now();
for (const name of ["pointerdown", "keydown", "wheel"]) addEventListener(name, () => { lastInput = Date.now(); }, { passive: true, capture: true });
setInterval(() => { if (works && !document.hidden && Date.now() - lastInput < RENEW) sync(); }, RENEW);
for (const back of ["online", "logged-in", "visibilitychange"]) addEventListener(back, () => { if (works && !document.hidden) sync(); }, { capture: true });
// What leads away waits until everything is sent, as far as that can be.
export const settled = () => (works && unsent.size ? Promise.race([sync(), new Promise((over) => setTimeout(over, RETRY))]) : null);
