"""Places of personal information in a task's texts: found by patterns, or marked by annotators who skipped the task."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _


class PiiKind(models.TextChoices):
    EMAIL = "email", _("E-mail address")
    PHONE = "phone", _("Phone number")
    SSN = "ssn", _("Social security number")
    BIRTH = "birth", _("Date of birth")
    ADDRESS = "address", _("Postal address")
    CARD = "card", _("Card number")
    IP = "ip", _("IP address")
    IBAN = "iban", _("Bank account (IBAN)")
    OTHER = "other", _("Personal information")


class PiiSpanQuerySet(models.QuerySet["PiiSpan"]):
    def detected(self) -> PiiSpanQuerySet:
        return self.filter(source=PiiSpan.Source.DETECTED)

    def in_order(self) -> PiiSpanQuerySet:
        """Orders the spans as one reads the task: turn by turn, then the responses."""
        return self.order_by(F("turn").asc(nulls_last=True), "response__position", "start", "-end")


class PiiSpan(models.Model):
    """Characters `start` to `end` of one turn's or one response's stored text. The text itself is not repeated here."""

    class Source(models.TextChoices):
        DETECTED = "detected"
        ANNOTATOR = "annotator"

    task = models.ForeignKey("annotator.Task", on_delete=models.CASCADE, db_index=False, related_name="pii_spans")
    turn = models.PositiveIntegerField(null=True, blank=True)
    response = models.ForeignKey(
        "annotator.Response", on_delete=models.CASCADE, null=True, blank=True, related_name="pii_spans"
    )
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, help_text="one of PiiKind, a list that grows")
    source = models.CharField(max_length=10, choices=Source.choices)
    marked_by = models.ForeignKey("annotator.User", on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField()

    objects = PiiSpanQuerySet.as_manager()

    class Meta:
        constraints = [
            # One of turn and response is always NULL: with distinct NULLs the constraint would never apply.
            models.UniqueConstraint(
                fields=["task", "turn", "response", "start", "end", "kind", "source", "marked_by"],
                nulls_distinct=False,
                name="pii_span_once",
            ),
            models.CheckConstraint(
                condition=Q(turn__isnull=True, response__isnull=False) | Q(turn__isnull=False, response__isnull=True),
                name="a_pii_span_stands_in_one_text",
            ),
            models.CheckConstraint(condition=Q(start__lt=F("end")), name="a_pii_span_is_not_empty"),
            models.CheckConstraint(
                condition=Q(source="detected", marked_by__isnull=True) | Q(source="annotator", marked_by__isnull=False),
                name="a_pii_span_is_marked_by_annotators_only",
            ),
        ]

    def __str__(self) -> str:
        return f"{PiiKind(self.kind).label} of {self.task}"
