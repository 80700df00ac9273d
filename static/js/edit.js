// A version that was begun is open when the form comes back.
document.addEventListener("drafts:filled", ({ target }) => {
  for (const edit of target.querySelectorAll("details.edit")) edit.open ||= [...edit.querySelectorAll("textarea")].some(({ value }) => value.trim());
});

// Starts a better version of a response from its own text, which the person then changes.
document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-start-from]");
  if (!button) return;
  const field = document.getElementById(button.dataset.startFrom);
  const source = button.closest(".sheet").querySelector(".response [data-source], .response .source");
  if (field.value.trim() === "") {
    field.value = (source.content ?? source).textContent.replace(/^\n/, "");
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
  field.focus();
  field.setSelectionRange(0, 0);
});
