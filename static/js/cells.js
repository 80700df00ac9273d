// The cells of segments leave the page as one field for each response: there may be thousands of them, and a form of
// that many fields is slow to read. Without scripts each cell is a field of its own (annotator/pages/rating/segments_form.py reads both).
const PREFIX = "scored-segments-", UNSAID = ".", EMPTIED = " ";

// A cell has given up its name, so that forms leave it out.
export const nameOf = (field) => field.name || field.dataset.field || "";
export const isCell = (name) => /^seg-\d+-\d+-/.test(name);

// Returns the fields for answers [name, value] about cells: what is not among them is not said.
export function folded(answers) {
  const responses = new Map();
  for (const [name, value] of answers) {
    const [, response, index, aspect] = name.split("-");
    if (!responses.has(response)) responses.set(response, { aspects: [], rows: {} });
    const { aspects, rows } = responses.get(response);
    if (!aspects.includes(aspect)) aspects.push(aspect);
    (rows[index] ??= [])[aspects.indexOf(aspect)] = value || EMPTIED;
  }
  return [...responses].map(([response, { aspects, rows }]) => {
    for (const [index, row] of Object.entries(rows)) rows[index] = aspects.map((_, at) => row[at] ?? UNSAID).join("");
    return [PREFIX + response, JSON.stringify({ aspects, rows })];
  });
}

document.addEventListener("formdata", ({ target, formData }) => {
  for (const [name, value] of [...formData]) {
    if (!value && /^(comment|quote)-\d+-\d+$/.test(name)) formData.delete(name);
  }
  const given = [...target.querySelectorAll(".cell")].filter(({ value, dataset }) => value && dataset.field);
  for (const [name, value] of folded(given.map((cell) => [nameOf(cell), cell.value]))) formData.append(name, value);
});

function take() {
  for (const cell of document.querySelectorAll("#rating .cell[name]")) {
    cell.dataset.field = cell.name;
    cell.removeAttribute("name");
  }
}

document.addEventListener("htmx:afterSettle", ({ target }) => { if (target.id === "work") take(); });
take();
