// Shows each text as it was written, in place of its rendering, without leaving the page.
const rawSwitch = document.querySelector("a[data-raw]");
const work = document.getElementById("work");

function showSources() {
  for (const template of work.querySelectorAll("template[data-source]")) {
    const source = Object.assign(document.createElement("pre"), { className: "source", dir: "auto" });
    source.textContent = template.content.textContent;
    template.replaceWith(source);
  }
}

if (rawSwitch) {
  rawSwitch.setAttribute("role", "button");
  rawSwitch.setAttribute("aria-pressed", false);
  rawSwitch.addEventListener("click", (event) => {
    event.preventDefault();
    rawSwitch.setAttribute("aria-pressed", work.classList.toggle("raw"));
    if (work.classList.contains("raw")) showSources();
  });
  // The next task comes with its sources in templates again.
  document.addEventListener("htmx:afterSettle", () => { if (work.classList.contains("raw")) showSources(); });
}
