"""What happens to a task, one room a stage: from its import to the labels that its ratings make."""
