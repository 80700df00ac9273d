// The keyboard. Digits rate the group in focus and move on; up and down walk the groups; controls carry their own key.
const groups = () => [...document.querySelectorAll("#rating fieldset")];
const typing = (target) => target.matches("textarea, input:not([type=radio], [type=checkbox])");

function current() {
  const here = document.activeElement?.closest("#rating fieldset");
  return here ?? groups().find((group) => group.querySelector("[type=radio]") && !group.querySelector(":checked"));
}

function focusOn(group) {
  if (!group) return document.querySelector("#rating [data-key=Enter]")?.focus();
  (group.querySelector("[type=radio]:checked") ?? group.querySelector("input"))?.focus({ preventScroll: true });
  group.scrollIntoView({ block: "nearest" });
}

function rate(digit) {
  const open = document.querySelector("details[open] fieldset");
  const group = open ?? current();
  const radio = group?.querySelectorAll("[type=radio]")[digit - 1];
  if (!radio) return false;
  radio.click();
  if (open) radio.focus();
  else focusOn(groups()[groups().indexOf(group) + 1]);
  return true;
}

function walk(step) {
  const list = groups(), at = list.indexOf(current());
  focusOn(list[Math.min(Math.max(at + step, 0), list.length - 1)]);
  return true;
}

function press(key) {
  const control = [...document.querySelectorAll("[data-key]")].find((each) => each.dataset.key === key);
  if (!control) return false;
  control.click();
  control.parentElement.querySelector("details[open] [type=radio]")?.focus();
  return true;
}

function help() {
  const dialog = document.getElementById("help");
  const list = dialog.querySelector("[data-keys]");
  list.replaceChildren(...[...document.querySelectorAll("[data-key]")].flatMap((control) => {
    const [term, text] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = control.dataset.key === "?" ? "?" : control.dataset.key.toUpperCase();
    text.textContent = control.dataset.label ?? control.textContent.trim();
    return [term, text];
  }));
  dialog.open ? dialog.close() : dialog.showModal();
}

document.addEventListener("keydown", (event) => {
  if (event.altKey || event.metaKey || event.isComposing) return;
  const { key, target } = event;
  if (key === "Enter" && event.ctrlKey) return void (press("Enter") && event.preventDefault());
  if (event.ctrlKey || typing(target)) return;
  const digit = /^[1-7]$/.test(key) && rate(Number(key));
  const arrow = !digit && (key === "ArrowDown" ? walk(1) : key === "ArrowUp" ? walk(-1) : false);
  const button = target.closest("button, a, summary") && key === "Enter";
  if (digit || arrow || (!button && press(key.length === 1 ? key.toLowerCase() : key))) event.preventDefault();
});
document.addEventListener("click", (event) => { if (event.target.closest("[data-help]")) help(); });
