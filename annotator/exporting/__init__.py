"""Stage 10: labels and annotations out. `rows` streams them in every layout, `spreadsheets` writes CSV that is safe to open."""
