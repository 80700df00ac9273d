"""A world in which a program knows which segments are good, and TRL's DPOTrainer to compare the speed with."""
