"""The audit: who did what, and when. Triggers refuse to change, delete or truncate its rows."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

TASK_DECISIONS = ("task.changed", "task.redacted", "task.released", "task.retired", "label.withdrawn")
"""Actions of people who decide about a single task, whose subject is `task ID`."""


class AuditEntry(models.Model):
    """One change by a person or a token. Names are stored as text, because the entry outlives the rows it names."""

    at = models.DateTimeField()
    actor = models.CharField(max_length=150, blank=True, help_text="username; empty: the system itself")
    via = models.CharField(max_length=20, help_text="page, rest, admin, command or worker")
    token = models.CharField(
        _("token"), max_length=25, blank=True, help_text=_("the first characters of the token's digest")
    )
    project = models.CharField(_("project"), max_length=50, blank=True, help_text=_("its slug at the time"))
    project_id = models.BigIntegerField(null=True, blank=True, help_text="its number, which no later project gets")
    action = models.CharField(max_length=40)
    subject = models.CharField(_("subject"), max_length=300, help_text=_("what was changed, like: task t-17"))
    details = models.JSONField(default=dict)

    class Meta:
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit entries")
        indexes = [
            models.Index(fields=["-at"], name="audit_by_time"),
            models.Index(fields=["project_id", "-at"], name="audit_by_project"),
            # The decisions on single tasks, which the page of a task shows. Annotators' own work is left out of it.
            models.Index(
                fields=["project_id", "subject"], condition=Q(action__in=TASK_DECISIONS), name="audit_by_task"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor} {self.action} {self.subject}"
