// Sends the file of a form with its progress, and takes a file that is dropped on the form. Without it, the form sends
// the file by itself.
import { freshToken } from "./csrf.js";

const form = document.querySelector("[data-upload]");
const [input, problem, bar, sent] = ["[type=file]", "#upload-error", ".sending", "[data-sent]"].map((name) => form.querySelector(name));
const progress = bar.querySelector("progress");

function refuse(text) {
  problem.textContent = text;
  bar.hidden = true;
  form.querySelector("button").disabled = false;
}

function send() {
  const request = new XMLHttpRequest();
  request.upload.addEventListener("progress", ({ loaded, total }) => {
    const percent = Math.floor((100 * loaded) / total);
    progress.value = percent;
    sent.textContent = percent < 100 ? `${percent} %` : form.dataset.reading;
  });
  request.addEventListener("load", () => {
    if (request.status < 400) location.assign(request.responseURL);
    else refuse(reason(request));
  });
  request.addEventListener("error", () => refuse(form.dataset.cutOff));
  request.open("POST", form.action);
  request.setRequestHeader("X-CSRFToken", freshToken() || form.elements.csrfmiddlewaretoken.value);
  request.send(new FormData(form));
  problem.textContent = "";
  form.querySelector("button").disabled = true;
  bar.hidden = false;
}

// The page that comes back says what is wrong where this one would; the server's own refusals are plain text.
function reason(request) {
  if (!request.getResponseHeader("Content-Type")?.startsWith("text/html")) return request.responseText;
  const page = new DOMParser().parseFromString(request.responseText, "text/html");
  return (page.querySelector("#upload-error, main") ?? page.body).textContent.trim();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (input.files[0]?.size > Number(form.dataset.most)) refuse(form.dataset.tooLarge);
  else send();
});

for (const name of ["dragover", "dragleave", "drop"]) {
  form.addEventListener(name, (event) => {
    event.preventDefault();
    form.classList.toggle("over", name === "dragover");
  });
}
form.addEventListener("drop", (event) => {
  if (!event.dataTransfer.files.length) return;
  input.files = event.dataTransfer.files;
  form.requestSubmit();
});
