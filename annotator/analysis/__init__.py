"""What the ratings say about annotators, scales and progress."""
