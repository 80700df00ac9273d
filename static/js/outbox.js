// Sends what a person has done in its order, each until it has arrived. The server takes the same thing twice for once.
import { freshToken } from "./csrf.js";
import { alone, change, outbox, remove } from "./kept.js";

const PATIENCE = 15_000, TRIES = 5, FINAL = [400, 409, 413, 422];
export const AWAY = "away", STRANGER = "stranger", SENT = "sent";
const GONE = "gone";
let running = null; // the request under way

export async function call(url, fields) {
  running = new AbortController();
  const body = new URLSearchParams(fields), headers = { "X-CSRFToken": freshToken(), Accept: "application/json" };
  const signal = AbortSignal.any([running.signal, AbortSignal.timeout(PATIENCE)]);
  return fetch(url, { method: "POST", body, headers, redirect: "manual", signal }).catch(() => null);
}

// A redirect leads to the login page; a form of before a login has another's token; 401 is another person's.
export function outcome(answer) {
  if (!answer) return AWAY;
  if (answer.type === "opaqueredirect" || answer.status === 401 || answer.status === 403) return STRANGER;
  if (answer.ok || FINAL.includes(answer.status)) return SENT;
  return answer.status === 404 ? GONE : AWAY;
}

// The answer as data: {said}, {detail}, or the {page} of a form with faults. A proxy's own words are none.
async function read(answer) {
  const text = await answer.text().catch(() => null), isPage = answer.headers.get("Content-Type")?.startsWith("text/html");
  if (text === null || isPage) return text !== null && answer.status === 422 ? { page: text } : null;
  try { return JSON.parse(text); } catch { return null; }
}

async function sendOne(item) {
  const ago = item.kind === "undo" ? [["ago", Math.round((Date.now() - item.pressed) / 1000)]] : [];
  const answer = await call(item.url, [...item.fields, ["user", item.user], ...ago]), result = outcome(answer);
  const data = result === SENT ? await read(answer) : null;
  if (answer?.status === 401) location.reload();
  if (data) {
    await remove(item.key);
    document.dispatchEvent(new CustomEvent("outbox:answered", { detail: { item, status: answer.status, ...data } }));
    return SENT;
  }
  if (result === STRANGER) return STRANGER;
  // One that fails again and again keeps nothing else from going; it is tried anew when the page is loaded again.
  const fails = (item.fails ?? 0) + (answer ? 1 : 0), isStuck = result === GONE || fails >= TRIES;
  await change({ ...item, tried: true, fails, stuck: isStuck });
  if (isStuck) document.dispatchEvent(new CustomEvent("outbox:set-aside"));
  return isStuck ? GONE : AWAY;
}

export const unstick = async () => Promise.all((await outbox()).filter(({ stuck }) => stuck).map((item) => change({ ...item, stuck: false, fails: 0 })));
export const unsentItems = async () => (await outbox()).filter(({ stuck }) => !stuck);

// Returns how it ended: all is sent, the server is away, or somebody is logged out.
export async function sendAll(user) {
  return alone(user, async () => {
    for (const item of await unsentItems()) {
      const result = await sendOne(item);
      if (result === AWAY || result === STRANGER) return result;
    }
    return SENT;
  });
}

// Takes back what was done last with the task, unless the server has it; returns it. Of what was tried nobody knows
// whether it has arrived: a rating may be sent again, and the rest is undone by a step of its own.
export async function takeBack(user, id) {
  running?.abort();
  return alone(user, async () => {
    const item = (await outbox()).filter((one) => one.id === id).pop() ?? null;
    if (!item || (item.tried && item.kind !== "submit")) return null;
    await remove(item.key);
    return item;
  });
}
