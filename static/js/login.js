// Who was logged out meanwhile logs in again over the task, which stays as it is.
const dialog = document.getElementById("login"), place = dialog?.querySelector("[data-login]");

// The login page's own form, so that whatever it asks is asked here.
function put(html) {
  const form = new DOMParser().parseFromString(html, "text/html").querySelector("form:has([name=password])");
  if (!form) return false;
  place.replaceChildren(document.adoptNode(form));
  dialog.querySelector("[role=alert]").textContent = "";
  form.querySelector("[name=username]").focus();
  return true;
}

let isAsking = false;
async function ask() {
  if (!dialog || dialog.open || isAsking) return;
  isAsking = true;
  const answer = await fetch(dialog.dataset.address, { headers: { Accept: "text/html" }, redirect: "manual" }).catch(() => null);
  isAsking = false;
  if (answer?.ok && put(await answer.text())) dialog.showModal();
}

dialog?.addEventListener("submit", async (event) => {
  if (event.target.method === "dialog") return;
  event.preventDefault();
  event.stopImmediatePropagation();
  const body = new URLSearchParams(new FormData(event.target));
  const answer = await fetch(dialog.dataset.address, { method: "POST", body, redirect: "manual" }).catch(() => null);
  if (answer?.type === "opaqueredirect") {
    place.replaceChildren();
    dialog.close();
    document.dispatchEvent(new CustomEvent("logged-in", { bubbles: true }));
  } else if (!answer || !put(await answer.text())) dialog.querySelector("[role=alert]").textContent = dialog.dataset.failed;
}, { capture: true });

// Who has logged in elsewhere, in another tab, need not do so here.
document.addEventListener("server:knows", () => { if (dialog?.open) dialog.close(); });

// Once closed, it comes again with the next step of the person only.
let dismissed = false, unheard = null; // a form that nobody took
dialog?.addEventListener("close", () => {
  dismissed = true;
  if (place.hasChildNodes()) unheard = null;
});
for (const step of ["submit", "click"]) document.addEventListener(step, ({ target }) => { if (!dialog?.contains(target)) dismissed = false; }, { capture: true });
document.addEventListener("leaving:failed", ({ detail }) => { if (detail === "stranger" && !dismissed) ask(); });
document.addEventListener("htmx:beforeOnLoad", (event) => {
  if (!event.detail.xhr.getResponseHeader("HX-Redirect")?.includes(dialog?.dataset.path ?? " ")) return;
  event.preventDefault();
  if (event.target.id === "rating") unheard = event.target;
  document.dispatchEvent(new CustomEvent("leaving:failed", { detail: "stranger" }));
});
// What could not be submitted is submitted then.
document.addEventListener("logged-in", () => {
  if (unheard?.isConnected) unheard.requestSubmit();
  unheard = null;
});
