// The letters in the strip: in a narrow window one response is shown at a time, in a wide one they lead to a response.
export function reveal(sheet) {
  if (!document.querySelector(".strip")) return; // a page without the letters shows every response
  for (const other of document.querySelectorAll("#rating .sheet")) {
    other.classList.toggle("away", other !== sheet);
    const letter = document.querySelector(`.strip a[href="#${other.id}"]`);
    if (other === sheet) letter?.setAttribute("aria-current", "true");
    else letter?.removeAttribute("aria-current");
  }
}

// A link to a response or to one of its scales: what it leads to is shown first.
document.addEventListener("click", (event) => {
  const link = event.target.closest("#rating a[href^='#']");
  const target = link && document.getElementById(link.hash.slice(1));
  const sheet = target?.closest(".sheet");
  if (!sheet) return;
  event.preventDefault();
  reveal(sheet);
  target.scrollIntoView({ block: "start" });
  (target.querySelector("[type=radio]") && target !== sheet ? target : link).focus({ preventScroll: true });
});
