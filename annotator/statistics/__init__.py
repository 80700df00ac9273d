"""Measures of agreement and their intervals: pure functions of arrays."""
