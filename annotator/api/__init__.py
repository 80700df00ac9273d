"""REST under /api/v1/: thin doors to the stage functions."""
