// What a local shift keeps in this browser, for one person: the next tasks, and what has not reached the server yet.
import { openDB } from "../vendor/idb-8.0.4/index.js";

const PREFIX = "shift-", FORGOTTEN = 3_600_000;
let opened = null;

// `ready` has a task each, by its assignment; what has been shown leaves its number, so that no tab shows it again.
// `outbox` has what is sent next, in its order.
export function open(user) {
  opened ??= openDB(PREFIX + user, 1, {
    upgrade(db) {
      db.createObjectStore("ready", { keyPath: "id" });
      db.createObjectStore("outbox", { keyPath: "key", autoIncrement: true });
    },
  });
  return opened;
}

const waitingTasks = (rows, slug) => rows.filter((row) => row.slug === slug && row.html).sort((one, other) => one.place - other.place);
export const ready = async (slug) => waitingTasks(await (await opened).getAll("ready"), slug);

// Takes the first task that waits in the project. Two tabs never take the same one.
export async function take(slug) {
  const deal = (await opened).transaction("ready", "readwrite");
  const [task = null] = waitingTasks(await deal.store.getAll(), slug);
  if (task) await deal.store.put({ id: task.id, slug, at: Date.now() });
  await deal.done;
  return task;
}

// Puts what the server says is held in place of what was, but for tasks that some tab has shown.
export async function replace(slug, order, tasks) {
  const deal = (await opened).transaction("ready", "readwrite"), now = Date.now();
  const had = new Map((await deal.store.getAll()).map((row) => [row.id, row]));
  for (const { id, slug: of, html, at, back } of had.values()) {
    if (html ? of === slug && !back && !order.includes(id) : at < now - FORGOTTEN) await deal.store.delete(id);
  }
  for (const [place, id] of order.entries()) {
    const { mark, html } = tasks[id], before = had.get(id);
    if (before && !before.html) continue;
    await deal.store.put(html ? { id, slug, place, mark, html, at: now } : { ...before, place });
  }
  await deal.done;
}

// Shown by this tab, or left by it for good.
export const showing = async (id, slug, isLeft = false) => (await opened).put("ready", { id, slug, isLeft, at: Date.now() });
export const wasLeft = async (id) => Boolean((await (await opened).get("ready", id))?.isLeft);
// A task that comes back is shown before all others.
export const comesBack = async (task) => (await opened).put("ready", { ...task, place: -Date.now(), back: true });

export const post = async (item) => (await opened).add("outbox", item);
export const outbox = async () => (await opened).getAll("outbox");
export const change = async (item) => (await opened).put("outbox", item);
export const remove = async (key) => (await opened).delete("outbox", key);

// What one tab sends no other sends, nor takes back meanwhile.
export const alone = (user, work) => navigator.locks.request(PREFIX + user, work);

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

// The page as it came, the files it is made of and the guidelines: what a worker shows while the server is away.
export async function keepPages(user, page, others) {
  const cache = await caches.open(PREFIX + user), files = performance.getEntriesByType("resource").map(({ name }) => name);
  const wanted = files.filter((name) => name.startsWith(location.origin) && /\.(m?js|css|woff2|svg)(\?|$)/.test(name));
  await cache.put(location.pathname, page);
  for (const name of wanted) if (!(await cache.match(name))) await cache.add(name).catch(() => {});
  for (const [key, request] of Object.entries(others)) {
    const answer = await fetch(request).catch(() => null);
    if (answer?.ok && !answer.redirected) await cache.put(key, answer);
  }
}
