"""Rating tasks, and what an annotator sees of the own work."""
