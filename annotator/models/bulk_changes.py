"""Changes that a manager makes to many tasks at once, with what each task was before, so that they can be undone."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _


class BulkChangeQuerySet(models.QuerySet["BulkChange"]):
    def unfinished(self) -> BulkChangeQuerySet:
        """Returns the changes of which a part is still to be carried out or undone."""
        return self.filter(Q(finished_at=None) | Q(undo_asked_at__isnull=False, undone_at=None))


class BulkChange(models.Model):
    """One action on many tasks, carried out in batches; `changed` and `put_back` count the tasks as it goes on.

    Its tasks are `ChangedTask` rows, all made with it. A change that is undone puts back the tasks that still are as it
    left them.
    """

    class Action(models.TextChoices):
        PRIORITY = "priority", _("Set the priority")
        RETIRE = "retire", _("Retire")
        REOPEN = "reopen", _("Bring back into use")
        RELEASE = "release", _("Quarantine: false alarm, release")
        UPHOLD = "uphold", _("Quarantine: justified, retire")

    # Without an index of its own: bulk_change_by_project begins with it.
    project = models.ForeignKey(
        "annotator.Project", on_delete=models.CASCADE, related_name="bulk_changes", db_index=False
    )
    action = models.CharField(max_length=10, choices=Action.choices)
    priority = models.SmallIntegerField(null=True, blank=True, help_text="the new one, where the action sets it")
    by = models.ForeignKey("annotator.User", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    made_at = models.DateTimeField()
    chosen = models.PositiveIntegerField(help_text="tasks that were chosen")
    changed = models.PositiveIntegerField(default=0, help_text="tasks that the action applied to")
    finished_at = models.DateTimeField(null=True, blank=True)
    undo_asked_at = models.DateTimeField(null=True, blank=True)
    put_back = models.PositiveIntegerField(default=0, help_text="tasks that are as before again")
    undone_at = models.DateTimeField(null=True, blank=True)

    objects = BulkChangeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(action="priority", priority__isnull=False) | ~Q(action="priority") & Q(priority=None),
                name="a_priority_where_one_is_set",
            ),
            models.CheckConstraint(
                condition=Q(undone_at=None) | Q(undo_asked_at__isnull=False), name="undone_once_asked"
            ),
            models.CheckConstraint(
                condition=Q(changed__lte=F("chosen")) & Q(put_back__lte=F("changed")), name="no_more_than_chosen"
            ),
        ]
        indexes = [
            models.Index(fields=["project", "-id"], name="bulk_change_by_project"),
            models.Index(
                fields=["id"],
                condition=Q(finished_at=None) | Q(undo_asked_at__isnull=False, undone_at=None),
                name="bulk_change_unfinished",
            ),
        ]

    def __str__(self) -> str:
        return f"change {self.pk}: {self.action}"

    def is_under_way(self) -> bool:
        """Returns whether a part is still to be carried out or undone."""
        return self.finished_at is None or (self.undo_asked_at is not None and self.undone_at is None)


class ChangedTask(models.Model):
    """A task of a bulk change: whether the action applied to it, what it was before, and whether it was put back.

    `applied` and `put_back` are empty until its turn comes. `reports` are the ids of the reports that were decided.
    """

    change = models.ForeignKey(BulkChange, on_delete=models.CASCADE, related_name="tasks", db_index=False)
    task = models.ForeignKey("annotator.Task", on_delete=models.CASCADE, related_name="bulk_changes")
    applied = models.BooleanField(null=True)
    state = models.CharField(max_length=12, blank=True, help_text="the task's state before")
    priority = models.SmallIntegerField(default=0, help_text="the task's priority before")
    reports = ArrayField(models.BigIntegerField(), default=list)
    put_back = models.BooleanField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["change", "task"], name="task_once_per_bulk_change"),
            models.CheckConstraint(condition=Q(put_back=None) | Q(applied=True), name="put_back_what_was_applied"),
        ]

    def __str__(self) -> str:
        return f"{self.change}: task {self.task_id}"
