"""Stage 10 exports labels and annotations. `rows` streams every layout; `spreadsheets` makes CSV safe to open."""
