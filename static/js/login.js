// Who was logged out meanwhile logs in again over the task, which stays as it is.
const dialog = document.getElementById("login"), place = dialog?.querySelector("[data-login]");

// The login page's own form, so that whatever it asks is asked here.
function put(html) {
  const form = new DOMParser().parseFromString(html, "text/html").querySelector("form:has([name=password])");
  if (!form) return false;
  place.replaceChildren(document.adoptNode(form));
  form.querySelector("[name=username]").focus();
  return true;
}

let isAsking = false;
export async function ask() {
  if (!dialog || dialog.open || isAsking) return;
  isAsking = true;
  const answer = await fetch(dialog.dataset.address, { headers: { Accept: "text/html" } }).catch(() => null);
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
    dialog.close();
    place.replaceChildren();
    document.dispatchEvent(new CustomEvent("logged-in"));
  } else if (!answer || !put(await answer.text())) place.querySelector("button")?.focus();
}, { capture: true });

// Once closed, it comes again with the next step of the person only.
let dismissed = false;
dialog?.addEventListener("close", () => { dismissed = true; });
for (const step of ["submit", "click"]) document.addEventListener(step, ({ target }) => { if (!dialog?.contains(target)) dismissed = false; }, { capture: true });
document.addEventListener("leaving:failed", ({ detail }) => { if (detail === "stranger" && !dismissed) ask(); });
document.addEventListener("htmx:beforeOnLoad", (event) => {
  if (!event.detail.xhr.getResponseHeader("HX-Redirect")?.includes(dialog?.dataset.path ?? " ")) return;
  event.preventDefault();
  document.dispatchEvent(new CustomEvent("leaving:failed", { detail: "stranger" }));
});
