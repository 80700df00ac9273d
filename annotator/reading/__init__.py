"""What may be read by whom, and what of it is in force: below the stages, which all read through it."""
