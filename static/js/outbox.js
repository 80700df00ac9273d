// Sends what a person has done in its order, each until it has arrived. The server takes the same thing twice for once.
import { freshToken } from "./csrf.js";
import { alone, change, outbox, remove } from "./kept.js";

const PATIENCE = 15_000;
const FINAL = [400, 409, 413, 422];
export const GONE = "gone", AWAY = "away", STRANGER = "stranger", SENT = "sent";

export async function call(url, fields) {
  const body = new URLSearchParams(fields), headers = { "X-CSRFToken": freshToken(), Accept: "application/json" };
  return fetch(url, { method: "POST", body, headers, redirect: "manual", signal: AbortSignal.timeout(PATIENCE) }).catch(() => null);
}

// A redirect leads to the login page; a form of before a login has another's token.
export function outcome(answer) {
  if (!answer) return AWAY;
  if (answer.type === "opaqueredirect" || answer.status === 401 || answer.status === 403) return STRANGER;
  if (answer.ok || FINAL.includes(answer.status)) return SENT;
  return answer.status === 404 ? GONE : AWAY;
}

async function sendOne(item) {
  const answer = await call(item.url, item.fields), result = outcome(answer);
  const isPage = answer?.headers.get("Content-Type")?.startsWith("text/html");
  // A proxy before the server may refuse in its own words.
  if (result === SENT && !answer.ok && isPage && answer.status !== 422) return AWAY;
  if (result === SENT) {
    const text = await answer.text().catch(() => null);
    if (text === null) return AWAY;
    await remove(item.key);
    const detail = { item, status: answer.status, ...(isPage ? { page: text } : JSON.parse(text)) };
    document.dispatchEvent(new CustomEvent("outbox:answered", { detail }));
  } else if (result === GONE) await change({ ...item, stuck: Date.now() });
  else if (!item.tried) await change({ ...item, tried: true });
  return result;
}

// Returns how it ended: all is sent, the server is away, or somebody is logged out.
export async function sendAll(user) {
  return alone(user, async () => {
    for (const item of (await outbox()).filter(({ stuck }) => !stuck)) {
      const result = await sendOne(item);
      if (result === AWAY || result === STRANGER) return result;
    }
    return SENT;
  });
}

// Takes back what was done last with the task, unless the server has it; returns it. Of what was tried nobody knows
// whether it has arrived: a rating may be sent again, and the rest is undone by a step of its own.
export async function takeBack(user, id) {
  return alone(user, async () => {
    const item = (await outbox()).filter((one) => one.id === id).pop() ?? null;
    if (!item || (item.tried && item.kind !== "submit")) return null;
    await remove(item.key);
    return item;
  });
}
