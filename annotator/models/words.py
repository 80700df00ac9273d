"""The words by which tasks are found, which the light worker takes from their texts (annotator/search/words.py)."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models


class TaskWords(models.Model):
    """The words of one task's texts. `facets` are what else it is found by: "project 7", "model gpt", "language de".

    The row is deleted with its task, and at once when somebody changes a text, by triggers.
    """

    # Without a constraint, so that deleting a task does not fail because its words are being written.
    task = models.OneToOneField(
        "annotator.Task", on_delete=models.DO_NOTHING, db_constraint=False, primary_key=True, related_name="words"
    )
    facets = ArrayField(models.TextField())
    words = SearchVectorField()

    class Meta:
        indexes = [GinIndex(fields=["facets", "words"], name="task_by_words")]


class StaleWords(models.Model):
    """A new task, or one whose texts have changed: its words are still to be taken. There is a row for each change."""

    task = models.ForeignKey(
        "annotator.Task", on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
