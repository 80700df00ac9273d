// Folds that somebody has opened stay open when htmx brings a newer version of the part of the page they stand in.
let open = [];

document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  open = [...detail.target.querySelectorAll("details[id][open]")].map(({ id }) => id);
});
document.addEventListener("htmx:afterSwap", () => {
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
});
