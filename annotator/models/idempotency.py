"""Answers to creating calls of REST that are kept under the callers' keys (annotator/accounts/idempotency.py)."""

from __future__ import annotations

from uuid import uuid4

from django.db import models
from django.db.models import Q

LONGEST_KEY = 128


class IdempotentCall(models.Model):
    """A call that an account has sent with an `Idempotency-Key`, and its answer once there is one.

    `attempt` fences off a process that was taken for dead and answers after another one has begun the call again.
    """

    user = models.ForeignKey("annotator.User", on_delete=models.CASCADE, related_name="+", db_index=False)
    key = models.CharField(max_length=LONGEST_KEY)
    fingerprint = models.CharField(max_length=64, help_text="a digest of method, address and body")
    attempt = models.UUIDField(default=uuid4)
    begun_at = models.DateTimeField(db_index=True)
    lost_at = models.DateTimeField(help_text="from then on a call without an answer is taken for lost")
    status = models.PositiveSmallIntegerField(null=True, help_text="of HTTP; empty: no answer yet")
    body = models.TextField(help_text="JSON, without secrets")
    location = models.CharField(max_length=500)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="one_call_per_account_and_key"),
            models.CheckConstraint(
                condition=Q(status=None) | Q(status__gte=200, status__lt=300), name="only_done_calls_are_answered_again"
            ),
        ]

    def __str__(self) -> str:
        return f"call {self.pk}"
