"""Freezes labels in files: a snapshot that a model learns from, with a hash of its content.

`lines` reads what there is to learn from, `building` makes a snapshot of it, and `snapshot_jobs` has a worker do so.
The split depends on the prompt's hash alone, so a prompt never changes side as the data grows.
"""

from rewards.snapshots.building import Step, has_answers, remove_unfinished, require_answers, steps, take
