"""Aligns a language model with people's judgements: the best response, two responses, or the segments of two."""
