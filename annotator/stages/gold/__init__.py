"""Gold tasks. `gold_tasks` mixes them into the work and judges the answers; `qualification` is the test before it."""
