"""A project's overview, settings, rubric, guidelines, agreement and webhooks."""
