"""Judges models on held-out rows and on files."""
