"""Tasks, imports, exports and releases."""
