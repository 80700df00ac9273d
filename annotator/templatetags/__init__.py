"""The filters and tags of our templates."""
