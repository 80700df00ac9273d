// Puts choices that never arrived back into the form, and keeps them until a submission has been stored.
function fill(form, name, values) {
  for (const field of form.querySelectorAll(`[name="${CSS.escape(name)}"]`)) {
    if (field.type === "radio" || field.type === "checkbox") field.checked = values.includes(field.value);
    else field.value = values[0] ?? "";
  }
}

const answered = (form, name) => new FormData(form).getAll(name).some((value) => value !== "");

// A choice yields where the server has stored another since, made later on another machine.
function restore() {
  const form = formOf();
  submitting = false;
  if (!form) return;
  const { now, since } = kept.stamp(form);
  skew = 1000 * Number(now) - Date.now();
  base = 1000 * Number(since);
  const entries = Object.entries(kept.read(form));
  const left = entries.filter(([name, made]) => made.base + 1 >= base || made.at > base || !answered(form, name));
  for (const [name, { values }] of left) fill(form, name, values);
  kept.write(form, Object.fromEntries(left));
  send(form);
}

// The same task in two tabs shows the same choices, so that neither sends an older state.
window.addEventListener("storage", ({ key, newValue }) => {
  const form = formOf();
  if (!form || key !== kept.keyOf(form)) return;
  if (!newValue) return void say("saved");
  for (const [name, { values }] of Object.entries(JSON.parse(newValue))) fill(form, name, values);
});

// No draft may overtake the submission it belongs to.
document.addEventListener("submit", (event) => { submitting ||= event.target === formOf(); }, { capture: true });

document.addEventListener("htmx:beforeSwap", ({ target, detail }) => {
  if (target.id !== "work" || detail.xhr.status >= 300) return;
  if (formOf()) kept.write(formOf(), {});
  unsubmitted = false;
  document.getElementById("saved").textContent = "";
});

for (const failure of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
  document.addEventListener(failure, ({ target, detail }) => {
    const form = formOf();
    if (target !== form) return;
    submitting = false;
    unsubmitted = true;
    keep(form, new Set([...new FormData(form).keys()].filter((name) => name !== "csrfmiddlewaretoken")));
    say(detail.xhr.status === 403 || detail.xhr.status === 404 ? "stranger" : "unsubmitted");
    sendSoon(RETRY);
  });
}

document.addEventListener("htmx:afterSettle", ({ target }) => { if (target.id === "work") restore(); });
window.addEventListener("pageshow", ({ persisted }) => { if (persisted) restore(); });
kept.forgetOld();
restore();
