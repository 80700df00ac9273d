"""Logging in and one's own settings."""
