// Where the responses stand: a switch puts them below or beside each other, and the server remembers it. Their scales
// stay in view while a long response scrolls, where enough of the window is left to read in.
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
  stick();
});

const READ = 0.45; // the part of the window that the scales must leave, below a response

function stick() {
  const work = document.getElementById("work"), first = work.querySelector("#rating .scales");
  if (!first) return;
  const edges = [".bar", ".foot"].map((edge) => document.querySelector(edge)?.offsetHeight ?? 0);
  const room = innerHeight - edges[0] - edges[1] - 16;
  const tallest = Math.max(...[...work.querySelectorAll("#rating .scales")].map((scales) => scales.offsetHeight));
  work.classList.toggle("sticks", tallest <= room * (work.classList.contains("beside") ? 1 - READ : 1));
}

addEventListener("resize", stick);
document.addEventListener("htmx:afterSettle", stick);
stick();
