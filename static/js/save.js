// A button that saves the text of a field as a file: what is shown only once is better kept.
// It comes disabled, as a press before this script has run would do nothing.
for (const button of document.querySelectorAll("[data-saves]")) {
  button.disabled = false;
  button.addEventListener("click", () => {
    const link = document.createElement("a");
    const text = document.getElementById(button.dataset.saves).value;
    // Spreadsheets take a file for UTF-8 only if it begins with a byte order mark.
    link.href = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
    link.download = button.dataset.as;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}
