"""What leaves: exports and releases."""
