"""Stage 10: labels and annotations out. `rows` streams them in every layout; `spreadsheets` makes CSV safe to open."""
