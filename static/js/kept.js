// What a local shift keeps in this browser, for one person: the next tasks, and what has not reached the server yet.
import { openDB } from "../vendor/idb-8.0.4/index.js";

const PREFIX = "shift-", FORGOTTEN = 86_400_000;
let opened = null, tab = "";

// `ready` has a task each, by its assignment. One that is shown has its `tab`; one that was left has its number alone, so
// that nothing shows it again. `outbox` has what is sent next, in its order.
export function open(user) {
  tab = sessionStorage.getItem("tab") ?? crypto.randomUUID();
  sessionStorage.setItem("tab", tab);
  opened ??= openDB(PREFIX + user, 1, {
    upgrade(db) {
      db.createObjectStore("ready", { keyPath: "id" });
      db.createObjectStore("outbox", { keyPath: "key", autoIncrement: true });
    },
  });
  return opened;
}

const isOver = ({ ends }) => ends < Date.now();
const byPlace = (one, other) => isOver(one) - isOver(other) || one.place - other.place;
const waiting = (rows, slug) => rows.filter((row) => row.slug === slug && row.html && !row.tab).sort(byPlace);
export const ready = async (slug) => waiting(await (await opened).getAll("ready"), slug);
export const atHand = async (slug) => (await ready(slug)).filter((row) => !isOver(row)).length;

// Takes the first task that waits in the project, one that may have gone to others only if nobody can be asked. Two tabs
// never take the same one; one that is loaded again goes on with its own.
export async function take(slug, { late, again = false }) {
  const deal = (await opened).transaction("ready", "readwrite"), rows = await deal.store.getAll();
  const own = again ? rows.filter((row) => row.slug === slug && row.html && row.tab === tab) : [];
  const [task = null] = own.length ? own : waiting(rows, slug).filter((row) => late || !isOver(row));
  if (task) await deal.store.put({ ...task, tab });
  await deal.done;
  return task;
}

// Puts what the server says is held in place of what was, but for tasks that some tab has shown.
export async function replace(slug, order, tasks) {
  const deal = (await opened).transaction("ready", "readwrite"), now = Date.now();
  const had = new Map((await deal.store.getAll()).map((row) => [row.id, row]));
  for (const row of had.values()) {
    const { id, at, back } = row, isReady = waiting([row], slug).length > 0;
    if (isReady ? !back && !order.includes(id) : at < now - FORGOTTEN) await deal.store.delete(id);
  }
  for (const [place, id] of order.entries()) {
    const { seconds, ...task } = tasks[id], before = had.get(id), ends = now + 1000 * seconds;
    if (before && !waiting([before], slug).length) continue;
    if (task.html) await deal.store.put({ id, slug, place, ends, at: now, ...task });
    else if (before) await deal.store.put({ ...before, place, ends });
  }
  await deal.done;
}

export const shows = async (task) => (await opened).put("ready", { ...task, tab, at: task.at ?? Date.now() });
// Whether it was left, or heard of by the server, after this page had been asked for.
export const leftSince = async (id) => {
  const row = await (await opened).get("ready", id ?? 0);
  return Boolean(row && !row.html && row.at > performance.timeOrigin);
};
export const isLeft = async (id, slug) => (await opened).put("ready", { id, slug, at: Date.now() });
// A task that comes back is shown before all others.
export const comesBack = async ({ tab: _, ...task }) => (await opened).put("ready", { ...task, place: -Date.now(), back: true });

export const post = async (item) => (await opened).add("outbox", item);
export const outbox = async () => (await opened).getAll("outbox");
export const change = async (item) => (await opened).put("outbox", item);
export const remove = async (key) => (await opened).delete("outbox", key);
// What one tab sends no other sends, nor takes back meanwhile.
export const alone = (user, work) => navigator.locks.request(PREFIX + user, work);
export const forgetReady = async () => (await opened).clear("ready");

// The tasks and pages of whoever used this browser before; what they have not sent stays until they come back.
export async function forgetOthers(user) {
  for (const name of await caches.keys()) if (name.startsWith(PREFIX) && name !== PREFIX + user) await caches.delete(name);
  for (const { name } of (await indexedDB.databases?.()) ?? []) {
    if (!name.startsWith(PREFIX) || name === PREFIX + user) continue;
    const db = await openDB(name);
    if (db.objectStoreNames.contains("ready")) await db.clear("ready");
    db.close();
  }
}

// The page without its task: a kept one goes on with what waits.
export function emptied(policy) {
  const copy = document.documentElement.cloneNode(true);
  copy.dataset.kept = "";
  copy.querySelector("#work").replaceChildren();
  const headers = { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy };
  return new Response(`<!doctype html>${copy.outerHTML}`, { headers });
}

// That page, the files that it is made of, and the guidelines: what a worker shows while the server is away.
export async function keepPages(user, page, others, more) {
  const cache = await caches.open(PREFIX + user), files = performance.getEntriesByType("resource").map(({ name }) => name);
  const isOurs = (name) => name.startsWith(location.origin) && /\.(m?js|css|woff2|svg)(\?|$)/.test(name);
  const wanted = new Set([...files, ...more.map((name) => new URL(name, location).href)].filter(isOurs));
  for (const { url } of await cache.keys()) if (isOurs(url) && !wanted.has(url)) await cache.delete(url);
  await cache.put(location.pathname, page);
  for (const name of wanted) if (!(await cache.match(name))) await cache.add(name).catch(() => {});
  for (const [key, request] of Object.entries(others)) {
    const answer = await fetch(request).catch(() => null);
    if (answer?.ok && !answer.redirected) await cache.put(key, answer);
  }
}
