"""Stored measures of raters' work, computed from annotations alone."""

from __future__ import annotations

from django.db import models


class RaterQuality(models.Model):
    """The results of the rater model and the checks for one annotator of a project, for people to judge."""

    project = models.ForeignKey(
        "annotator.Project", on_delete=models.CASCADE, db_index=False, related_name="rater_qualities"
    )
    annotator = models.ForeignKey("annotator.User", on_delete=models.CASCADE, related_name="+")
    annotations = models.PositiveIntegerField()
    measures = models.JSONField(default=dict)
    flags = models.JSONField(default=list)
    computed_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "rater quality"
        constraints = [
            models.UniqueConstraint(fields=["project", "annotator"], name="one_quality_per_annotator_and_project")
        ]

    def __str__(self) -> str:
        return f"{self.annotator} in {self.project}"
