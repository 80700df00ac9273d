"""Presents runs, models and their data: rows in, sentences, tables and charts out."""
