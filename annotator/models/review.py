"""Decisions of reviewers and managers on annotations, tasks and annotators. The originals stay as they are.

A change of many tasks keeps what each task was before, so that it can be undone.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from annotator.models.scores import tiers_of_ids


class Verdict(models.Model):
    """A reviewer's decision on one submission. Rows are only added; an assignment's newest one is in force."""

    class Decision(models.TextChoices):
        ACCEPTED = "accepted", _("Accepted")
        REJECTED = "rejected", _("Rejected")

    assignment = models.ForeignKey("annotator.Assignment", on_delete=models.CASCADE, related_name="verdicts")
    decision = models.CharField(max_length=10, choices=Decision.choices)
    comment = models.TextField(blank=True)
    by = models.ForeignKey("annotator.User", on_delete=models.PROTECT, related_name="+")
    made_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=~Q(decision="rejected") | ~Q(comment=""), name="a_rejection_has_a_comment"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.assignment}: {self.decision}"


class GuidelineGap(models.Model):
    """A rater's word that the guidelines say nothing about a case: about one of its scales, or without one about all.

    It stands until a reviewer settles the task, or says that the guidelines answer it.
    """

    # Its task as well, by which the open ones are looked up each time that a task is settled.
    task = models.ForeignKey("annotator.Task", on_delete=models.CASCADE, related_name="+")
    # Without an index of its own: one_gap_of_a_scale begins with it.
    assignment = models.ForeignKey("annotator.Assignment", on_delete=models.CASCADE, related_name="+", db_index=False)
    attribute = models.SlugField(blank=True)
    created_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["assignment", "attribute"], name="one_gap_of_a_scale")]

    def __str__(self) -> str:
        return f"{self.task}: {self.attribute}"


class Adjudication(models.Model):
    """A reviewer's authoritative rating of a task: scores by response id, then by attribute.

    At most one row of a task is current.
    """

    class Reason(models.TextChoices):
        AMBIGUOUS_PROMPT = "ambiguous_prompt", _("The prompt can be read in more than one way")
        GUIDELINE_GAP = "guideline_gap", _("The guidelines leave this open")
        SLIP = "slip", _("Somebody made a mistake")
        OTHER = "other", _("Another reason")

    task = models.ForeignKey("annotator.Task", on_delete=models.CASCADE, related_name="adjudications")
    scores = models.JSONField()
    aspects = ArrayField(models.SlugField(), default=list, db_default=[], blank=True)
    segments = models.JSONField(
        default=dict,
        db_default={},
        blank=True,
        help_text="{response: [[score, ...], ...]}, in the order of the aspects",
    )
    preference = models.SmallIntegerField(null=True, blank=True)
    ranking = models.JSONField(null=True, blank=True, help_text="[[response, ...], ...]: tiers of ids, the best first")
    reason = models.CharField(max_length=20, choices=Reason.choices)
    comment = models.TextField(blank=True)
    by = models.ForeignKey("annotator.User", on_delete=models.PROTECT, related_name="+")
    is_example = models.BooleanField(default=False, db_default=False, help_text="shown to raters, beside its levels")
    made_at = models.DateTimeField()
    is_current = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["task"], condition=Q(is_current=True), name="one_current_adjudication_per_task"
            ),
            models.CheckConstraint(condition=tiers_of_ids("ranking"), name="settled_ranking_is_tiers_of_ids"),
            models.CheckConstraint(
                condition=Q(preference__isnull=True) | Q(ranking__isnull=True),
                name="a_settled_preference_or_a_ranking",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task}, by {self.by}"


class Exclusion(models.Model):
    """Keeps everything that an annotator did in a project out of consensus, labels and snapshots until it is lifted."""

    project = models.ForeignKey(
        "annotator.Project",
        on_delete=models.CASCADE,
        db_index=False,
        related_name="exclusions",
        verbose_name=_("project"),
    )
    annotator = models.ForeignKey(
        "annotator.User", on_delete=models.PROTECT, related_name="exclusions", verbose_name=_("annotator")
    )
    reason = models.TextField(_("reason"))
    by = models.ForeignKey("annotator.User", on_delete=models.PROTECT, related_name="+", verbose_name=_("excluded by"))
    made_at = models.DateTimeField(_("excluded at"))
    readmitted_at = models.DateTimeField(
        _("readmitted at"),
        null=True,
        blank=True,
        help_text=_("Since then, the annotator's work is being brought back."),
    )

    class Meta:
        verbose_name = _("exclusion")
        verbose_name_plural = _("exclusions")
        constraints = [
            models.UniqueConstraint(fields=["project", "annotator"], name="one_exclusion_per_annotator_and_project")
        ]

    def __str__(self) -> str:
        return f"{self.annotator} in {self.project}"


class UnlikelyQuerySet(models.QuerySet["UnlikelyAnnotation"]):
    def in_force(self) -> UnlikelyQuerySet:
        """Returns those that still count, of complete tasks, and on which nobody has decided since they were noted."""
        verdicts = Verdict.objects.filter(
            assignment=OuterRef("annotation__assignment"), made_at__gte=OuterRef("noted_at")
        )
        counting = self.filter(annotation__is_current=True, annotation__assignment__counts=True)
        undecided = counting.filter(task__state="complete", task__adjudicated=False)
        return undecided.filter(~Exists(verdicts))


class UnlikelyAnnotation(models.Model):
    """An annotation that lies far from the expectation of a model that has not learnt from the task.

    `unlikeliness` is in standard deviations; `evidence` holds the scores that are furthest off.
    """

    annotation = models.OneToOneField("annotator.Annotation", on_delete=models.CASCADE, related_name="unlikely")
    task = models.ForeignKey("annotator.Task", on_delete=models.CASCADE, related_name="unlikely_annotations")
    unlikeliness = models.FloatField()
    evidence = models.JSONField(help_text="[{response, attribute, given, expected}], the widest first")
    noted_at = models.DateTimeField()

    objects = UnlikelyQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.annotation}: {self.unlikeliness:.1f} standard deviations"


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
