"""REST under /api/v1/: each call checks access and calls one stage function."""
