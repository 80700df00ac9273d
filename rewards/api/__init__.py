"""REST of the machine half."""
