"""Stage 10 exports labels and annotations. `export_rows` streams every layout."""
