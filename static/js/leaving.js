// Whatever leads away from the task (a skip, a report, another page) goes only where the server answers: a browser's
// error page would take what was typed with it. The line #saved says that it did not go.
import { freshToken } from "./csrf.js";
import { settled } from "./shift.js";

const PATIENCE = 5000, live = document.querySelector("script[data-live]").dataset.live;
let allowed = null; // the form that may go now

// Returns why not: "undone" where nobody answers, "stranger" for somebody who is logged out.
async function hindrance() {
  await settled();
  const heartbeat = document.querySelector("form[data-heartbeat]")?.dataset.heartbeat;
  const call = { redirect: "manual", signal: AbortSignal.timeout(PATIENCE) };
  if (heartbeat) Object.assign(call, { method: "POST", headers: { "X-CSRFToken": freshToken() } });
  const answer = await fetch(heartbeat ?? live, call).catch(() => null);
  if (!answer || answer.status >= 500) return "undone";
  return answer.type === "opaqueredirect" || answer.status === 403 ? "stranger" : "";
}

const stay = (why) => document.dispatchEvent(new CustomEvent("leaving:failed", { detail: why }));

document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[href]"), href = link?.getAttribute("href");
  const elsewhere = event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
  if (!link || elsewhere || link.target || href.startsWith("#") || link.hasAttribute("hx-get")) return;
  event.preventDefault();
  // The login page asks who is logged out, and leads on to the link's page.
  if ((await hindrance()) === "undone") stay("undone");
  else location.assign(link.href);
});

document.addEventListener("submit", async (event) => {
  const form = event.target, button = event.submitter;
  if (event.defaultPrevented || form.method === "dialog" || form === allowed) return;
  event.preventDefault();
  const why = await hindrance();
  if (why) return void stay(why);
  allowed = form;
  if (button?.isConnected) form.requestSubmit(button);
  else form.requestSubmit();
});
