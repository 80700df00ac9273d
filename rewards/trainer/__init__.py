"""The trainer's process, and the run that a worker owns meanwhile."""
