"""Ranks the models whose responses were rated."""
