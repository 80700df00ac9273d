// Opens a link's page in a dialog on this page: htmx loads what is to be read, and Escape closes it.
document.addEventListener("click", (event) => {
  // With Ctrl or Cmd a link opens in a tab of its own, as links do.
  const opener = event.target.closest("[data-opens]");
  if (opener && !event.ctrlKey && !event.metaKey) document.getElementById(opener.dataset.opens).showModal();
});

for (const failure of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
  document.addEventListener(failure, ({ target }) => {
    if (!target.dataset?.opens) return;
    const place = document.querySelector(target.getAttribute("hx-target"));
    // What was loaded before is better than a message in its place.
    if (!place.dataset.loaded) place.textContent = place.dataset.failed;
  });
}
document.addEventListener("htmx:afterSettle", ({ target }) => {
  if (target.dataset.failed) target.dataset.loaded = "yes";
});
