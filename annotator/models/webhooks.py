"""Webhooks of projects, what is sent to them, and queues without workers, of which they are told."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from annotator.models.public_ids import task_number

LONGEST_URL = 500


class Webhook(models.Model):
    """An address to which events of a project are posted, signed with the secret.

    Triggers and stages write what is to be sent while the webhook is active (triggers/webhook_delivery.sql). Without
    `events` it gets all of them. `failing_since` is the first of the failures since the last success. After a rotation
    the previous secret signs as well, until `previous_until`.
    """

    class Ended(models.TextChoices):
        FAILING = "failing", _("All deliveries of the last 5 days have failed.")
        GONE = "gone", _("The receiver has answered 410: it wants no more messages.")

    project = models.ForeignKey("annotator.Project", on_delete=models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=LONGEST_URL)
    events = ArrayField(models.CharField(max_length=40), default=list, blank=True)
    secret = models.CharField(max_length=100)
    previous_secret = models.CharField(max_length=100, blank=True)
    previous_until = models.DateTimeField(null=True, blank=True)
    active = models.BooleanField(default=True)
    end_reason = models.CharField(max_length=10, choices=Ended.choices, blank=True)
    failing_since = models.DateTimeField(null=True, blank=True)
    tried_at = models.DateTimeField(null=True, blank=True, help_text="when a worker last sent something")
    made_by = models.ForeignKey("annotator.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=~Q(active=True) | Q(end_reason=""), name="webhook_ended_is_inactive")
        ]

    def __str__(self) -> str:
        return f"webhook {self.pk}"

    def secrets_at(self, now: datetime) -> list[str]:
        """Returns the secrets that sign, the current one first."""
        is_kept = self.previous_until is not None and now < self.previous_until
        return [self.secret, self.previous_secret] if is_kept else [self.secret]


class WebhookDelivery(models.Model):
    """An event for one webhook, and what became of sending it.

    `attempts` counts every worker that took it, lost ones too, and so fences off their answers. `next_attempt_at` is
    also until when the delivery belongs to the worker that has it.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        DELIVERED = "delivered", _("Delivered")
        FAILED = "failed", _("Failed")

    KEPT = timedelta(days=30)

    # Without a constraint: it would lock the webhook's row in every transaction that writes an event, and fail that
    # transaction if the webhook is deleted meanwhile.
    webhook = models.ForeignKey(
        Webhook, on_delete=models.CASCADE, related_name="deliveries", db_constraint=False, db_index=False
    )
    message = models.UUIDField(default=uuid4)
    event = models.CharField(max_length=40)
    data = models.JSONField(help_text="with primary keys of tasks, for which `payload` has public numbers")
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())
    next_attempt_at = models.DateTimeField(db_default=Now())
    attempted_at = models.DateTimeField(null=True, blank=True)
    seconds = models.FloatField(null=True, blank=True, help_text="that the last attempt took")
    status = models.PositiveSmallIntegerField(null=True, blank=True, help_text="of HTTP, in the last answer")
    error = models.CharField(max_length=500, blank=True, help_text="of the last attempt")

    class Meta:
        indexes = [
            models.Index(fields=["webhook", "id"], name="delivery_of_a_webhook"),
            models.Index(fields=["webhook", "next_attempt_at"], condition=Q(state="waiting"), name="delivery_waiting"),
            models.Index(fields=["created_at"], name="delivery_by_time"),
        ]

    def __str__(self) -> str:
        return self.message_id

    @property
    def message_id(self) -> str:
        """The id by which the receiver knows the message; it stays the same over all attempts."""
        return f"msg_{self.message.hex}"

    def answer(self) -> str:
        """Returns what the last attempt came to, in a line; empty before the first."""
        return self.error or (f"HTTP {self.status}" if self.status else "")

    def payload(self) -> dict[str, Any]:
        """Returns what is sent. It is the same in every attempt."""
        data = {name: task_number(value) if name == "task" else value for name, value in self.data.items()}
        return {"type": self.event, "timestamp": self.created_at.isoformat(), "data": data}


class QueueOutage(models.Model):
    """A queue that has had no live worker since some time. The row is deleted when one listens again."""

    queue = models.CharField(max_length=10, primary_key=True)
    since = models.DateTimeField()
    announced_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.queue
