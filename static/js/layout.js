// Switches between responses below and beside each other at once; the server remembers it.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("[data-layout]")) return;
  event.preventDefault();
  const button = form.querySelector("button"), chosen = button.value;
  fetch(form.action, { method: "POST", body: new FormData(form, button), redirect: "manual" }).catch(() => {});
  const beside = chosen === "beside";
  document.getElementById("work").classList.toggle("beside", beside);
  button.value = beside ? "below" : "beside";
  button.setAttribute("aria-pressed", beside);
});
