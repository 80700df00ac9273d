"""Measures what surrounds the model when responses are scored: the database, the queue, HTTP."""
