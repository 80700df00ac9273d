"""What pages and answers have in common: how files are served."""
