// A box at the head of a list that ticks all of its boxes, or none.
for (const all of document.querySelectorAll("[data-chooses]")) {
  const boxes = () => [...document.querySelectorAll(`[name="${all.dataset.chooses}"]`)];
  all.closest("[hidden]")?.removeAttribute("hidden");
  all.addEventListener("change", () => { for (const box of boxes()) box.checked = all.checked; });
  document.addEventListener("change", (event) => {
    if (event.target.name === all.dataset.chooses) all.checked = boxes().every((box) => box.checked);
  });
}
