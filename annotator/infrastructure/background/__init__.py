"""Supports background work: messages to the workers, their heartbeats, and a record of failures for each project."""
