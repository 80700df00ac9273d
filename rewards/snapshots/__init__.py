"""Freezes labels in files: a snapshot that a model learns from, with a hash of its content.

`answers` says what there is to learn from, `lines` reads it, `files` writes it, `building` makes a snapshot of it, and
`jobs` has a worker do so. The split depends on the prompt's hash alone, so a prompt never changes side as the data
grows.
"""

from rewards.snapshots.answers import has_answers, require_answers
from rewards.snapshots.building import Step, remove_unfinished, steps, take
