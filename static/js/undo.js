// The button that takes a skip back goes when its seconds are over.
function begin() {
  const undo = document.querySelector("form[data-seconds]:not([data-ends])");
  if (!undo) return;
  // By the clock: a tab in the background gets fewer ticks than there are seconds.
  const ends = undo.dataset.ends = Date.now() + 1000 * Number(undo.dataset.seconds);
  const ticking = setInterval(() => {
    const left = Math.ceil((ends - Date.now()) / 1000);
    if (left > 0 && undo.isConnected) return void (undo.querySelector("[data-left]").textContent = `${left} s`);
    clearInterval(ticking);
    undo.remove();
  }, 250);
}
document.addEventListener("htmx:afterSettle", ({ target }) => { if (target.id === "work") begin(); });
begin();
