"""How the product is installed, and its command line."""
