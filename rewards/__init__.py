"""The machine half: snapshots, training, promotion and scoring."""
