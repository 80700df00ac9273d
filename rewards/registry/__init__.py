"""Where models come from, and the erasure of what they learnt."""
