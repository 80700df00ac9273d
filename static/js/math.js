// Sets LaTeX. KaTeX is fetched only for a task that has some; where it fails, the source stays readable.
const source = document.querySelector("script[data-katex]").dataset;
let katexReady = null;

function loadKatex() {
  katexReady ??= new Promise((resolve, reject) => {
    const style = Object.assign(document.createElement("link"), { rel: "stylesheet", href: source.style });
    const script = Object.assign(document.createElement("script"), { src: source.katex, onload: resolve, onerror: reject });
    document.head.append(style, script);
  });
  return katexReady;
}

function setMath() {
  const found = [...document.querySelectorAll(".math:not([data-set])")];
  if (!found.length) return;
  loadKatex().then(() => {
    for (const place of found) {
      // The limits are for hostile input: a size may cover the page, and a macro may expand without end.
      const options = { displayMode: place.tagName === "DIV", throwOnError: true, maxSize: 50, maxExpand: 500 };
      const latex = (place.dataset.set = place.textContent);
      // A broken formula stays as it was written: what KaTeX shows in its place has a style that the page forbids.
      try {
        katex.render(latex, place, options);
      } catch {
        place.textContent = latex;
      }
    }
  }, () => {});
}

setMath();
document.addEventListener("htmx:afterSettle", setMath);
