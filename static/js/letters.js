// The switch A | B | C: in a narrow window it shows one response at a time, in a wide one it leads to a response.
const NARROW = matchMedia("(max-width: 640px)");
const sheets = () => [...document.querySelectorAll("#rating .sheet")];
const letters = (sheet) => document.querySelectorAll(`:is(.letters, .strip) a[href="#${sheet.id}"]`);

// Whether the sheet waits behind another one.
export const isAway = (sheet) => NARROW.matches && sheet.classList.contains("away");

export function reveal(sheet) {
  if (!document.querySelector(".letters")) return; // a page without the switch shows every response
  for (const other of sheets()) {
    other.classList.toggle("away", other !== sheet);
    for (const letter of letters(other)) {
      if (other === sheet) letter.setAttribute("aria-current", "true");
      else letter.removeAttribute("aria-current");
    }
  }
  sheet.dispatchEvent(new CustomEvent("sheet:revealed", { bubbles: true }));
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

function begin() {
  const all = sheets();
  // After a refused submission the response that lacks an answer comes first.
  if (all.length > 1) reveal(all.find((sheet) => sheet.querySelector(".missing, .refused")) ?? all[0]);
}

document.addEventListener("htmx:afterSettle", ({ target }) => { if (target.id === "work") begin(); });
begin();
