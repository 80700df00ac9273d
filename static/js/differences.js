// Shows where two responses differ: what they have in common is dimmed, and a key goes from difference to difference.
const work = document.getElementById("work");
const button = document.querySelector("[data-differences]"), next = document.querySelector("[data-next-difference]");
const WORD = /[\p{L}\p{N}]/u; // other signs are shown, and not stopped at
let on = false, last = null;

function show() {
  const shown = on && !button.disabled;
  work.classList.toggle("differing", shown);
  button.setAttribute("aria-pressed", shown);
  next.disabled = !shown;
}

// In the order in which they are read: side by side, a line of both responses after the other.
function inOrder() {
  const seen = [...work.querySelectorAll(".differs")].filter((one) => one.checkVisibility() && WORD.test(one.textContent));
  const places = new Map(seen.map((one) => [one, one.getBoundingClientRect()]));
  return seen.sort((one, other) => places.get(one).top - places.get(other).top || places.get(one).left - places.get(other).left);
}

button.addEventListener("click", () => { on = !on; show(); });
next.addEventListener("click", () => {
  const all = inOrder(), following = all[(all.indexOf(last) + 1) % all.length];
  last?.classList.remove("at");
  following?.classList.add("at");
  // To the upper edge, as reviewers have scales at the lower one.
  following?.scrollIntoView({ block: "start" });
  last = following ?? null;
});

function begin() {
  last = null;
  button.disabled = !work.querySelector(".differs");
  show();
}

document.addEventListener("htmx:afterSettle", begin);
begin();
