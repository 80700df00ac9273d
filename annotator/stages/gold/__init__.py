"""Gold tasks. `gold_tasks` judges the answers to them; `qualification` is the test before it."""
