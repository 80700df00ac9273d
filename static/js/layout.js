// Where the responses stand: a switch puts them below or beside each other, and the server remembers it.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("[data-layout]")) return;
  event.preventDefault();
  const button = form.querySelector("button"), chosen = button.value;
  // The server only has to remember the choice, also of somebody who leaves the page at once. Its redirect would load a
  // page, and this one changes by itself.
  const call = { method: "POST", body: new FormData(form, button), redirect: "manual", keepalive: true };
  fetch(form.action, call).catch(() => {});
  const beside = chosen === "beside";
  document.getElementById("work").classList.toggle("beside", beside);
  button.value = beside ? "below" : "beside";
  button.setAttribute("aria-pressed", beside);
});
