"""Sets our trainer beside TRL's: the same tokens, the same weights to begin with, the same machine."""
