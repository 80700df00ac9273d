// Titles a row of a form, and names its buttons, by what is typed as its name: `data-title` holds what it is called
// while it has none.
document.addEventListener("input", (event) => {
  const row = event.target.closest("[data-names-row]")?.closest("[data-row]");
  for (const title of row?.querySelectorAll("[data-title]") ?? []) title.textContent = event.target.value.trim() || title.dataset.title;
});
