"""Assignments, which say who holds which task, and what annotators make of them: ratings, drafts, skips, reports."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotator.models.rubric import LONGEST_DOMAIN
from annotator.models.scores import ranges, tiers_of_ids, whole_cells, whole_scores

NEITHER_VALID = -100
TIE = 0
PREFERENCES = (NEITHER_VALID, -3, -2, -1, TIE, 1, 2, 3)
"""Strengths of a pairwise preference: negative for the first response. A tie is only for projects that allow it.

HelpSteer2-Preference offers none (arXiv 2410.01257).
"""
PREFERENCE_STATEMENTS: Mapping[int, str] = MappingProxyType(
    {
        -3: "Response 1 is much better than Response 2",
        -2: "Response 1 is better than Response 2",
        -1: "Response 1 is slightly better than Response 2",
        0: "Response 1 is as good as Response 2",
        1: "Response 2 is slightly better than Response 1",
        2: "Response 2 is better than Response 1",
        3: "Response 2 is much better than Response 1",
        -100: "Neither response is valid",
    }
)
"""What the strengths say, in the words of HelpSteer2-Preference."""

LONGEST_ACTIVE_SECONDS = 7 * 86_400
"""The longest time of work on one task that is stored. Work takes minutes: beyond a week a clock went wrong."""


class Origin(models.TextChoices):
    PERSON = "person", _("Person")
    IMPORTED = "imported", _("Imported")
    SIMULATED = "simulated", _("Simulated")


class AssignmentQuerySet(models.QuerySet["Assignment"]):
    def leased(self) -> AssignmentQuerySet:
        return self.filter(state=Assignment.State.LEASED)

    def submitted(self) -> AssignmentQuerySet:
        return self.filter(state=Assignment.State.SUBMITTED)


class Assignment(models.Model):
    """One annotator's hold on one task. While leased, and once submitted, it holds one of the task's slots.

    An annotation without a slot does not count and has no part in any label: one that a reviewer has rejected, one by
    an excluded annotator, or an `extra`, which came when the task had no room left. Finished work is never lost: an
    extra is kept, and a reviewer may admit it. Only imported preferences count without a slot, because the ratings of
    their task are still wanted; their `response_order` is empty.
    """

    class State(models.TextChoices):
        LEASED = "leased"
        SUBMITTED = "submitted"
        SKIPPED = "skipped"
        RELEASED = "released"
        EXPIRED = "expired"

    TRANSITIONS: ClassVar[dict[str, frozenset[str]]] = {
        State.LEASED: frozenset({State.SUBMITTED, State.SKIPPED, State.RELEASED, State.EXPIRED}),
        # Late work is kept, and counts where there is room. An annotator who comes back may have the task again.
        State.EXPIRED: frozenset({State.LEASED, State.SUBMITTED, State.SKIPPED}),
        State.RELEASED: frozenset({State.LEASED, State.SUBMITTED, State.SKIPPED}),
        # Only an undo, within seconds of the skip, leads back.
        State.SKIPPED: frozenset({State.LEASED}),
        # A revision keeps the state. A skip for personal information withdraws the rating.
        State.SUBMITTED: frozenset({State.SKIPPED}),
    }
    """The allowed steps between states. The trigger `legal_transition` refuses every other one."""

    task = models.ForeignKey("annotator.Task", on_delete=models.CASCADE, db_index=False, related_name="assignments")
    # Without an index of its own: assignment_by_annotator begins with it.
    annotator = models.ForeignKey(
        "annotator.User", on_delete=models.PROTECT, related_name="assignments", db_index=False
    )
    slot = models.PositiveSmallIntegerField(null=True, blank=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.LEASED)
    response_order = ArrayField(models.PositiveSmallIntegerField(), default=list)
    counts = models.BooleanField(db_default=True)
    extra = models.BooleanField(
        db_default=False, help_text="submitted when its task had no room; a reviewer may admit it"
    )
    shift = models.UUIDField(
        null=True,
        blank=True,
        help_text="the page that holds the lease ahead, before the task is shown; none: it is shown, or was",
    )
    leased_at = models.DateTimeField()
    lease_expires_at = models.DateTimeField()

    objects = AssignmentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task", "annotator"], name="one_assignment_per_annotator_and_task"),
            # Two annotators never share a slot, so a task never has more raters than it wants, whatever the code does.
            models.UniqueConstraint(
                fields=["task", "slot"], condition=Q(state__in=["leased", "submitted"]), name="one_assignment_per_slot"
            ),
            models.CheckConstraint(condition=Q(slot__isnull=True) | Q(slot__gte=1), name="slots_count_from_one"),
            models.CheckConstraint(condition=~Q(state="leased") | Q(slot__isnull=False), name="a_lease_holds_a_slot"),
            models.CheckConstraint(
                condition=Q(state__in=["leased", "submitted"]) | Q(slot__isnull=True), name="only_work_holds_a_slot"
            ),
            models.CheckConstraint(
                condition=Q(counts=True) | Q(slot__isnull=True), name="what_does_not_count_holds_no_slot"
            ),
            # An empty order marks an imported preference, which counts without a slot.
            models.CheckConstraint(
                condition=~Q(state="submitted") | Q(counts=False) | Q(slot__isnull=False) | Q(response_order=[]),
                name="what_counts_holds_a_slot",
            ),
            models.CheckConstraint(condition=Q(extra=False) | Q(counts=False), name="an_extra_does_not_count"),
        ]
        # Every claim reads the first three: leases that ran out, and the annotator's own unfinished work. Partial, so
        # that they stay small however many tasks have been rated.
        indexes = [
            models.Index(fields=["lease_expires_at"], condition=Q(state="leased"), name="lease_by_expiry"),
            models.Index(fields=["annotator"], condition=Q(state="leased"), name="lease_by_annotator"),
            models.Index(fields=["annotator"], condition=Q(state="expired"), name="expired_by_annotator"),
            # For the limits on tasks that one annotator gives back or skips within an hour.
            models.Index(
                fields=["annotator", "leased_at"],
                condition=Q(state__in=["released", "skipped"]),
                name="passed_by_annotator",
            ),
            # For the latest work of somebody who has done a lot, and for every n-th part of it.
            models.Index(fields=["annotator", "id"], name="assignment_by_annotator"),
        ]

    def __str__(self) -> str:
        return f"{self.task} with {self.annotator}: {self.state}"


class Draft(models.Model):
    """The half-filled form of an assignment."""

    assignment = models.OneToOneField(Assignment, on_delete=models.CASCADE, related_name="draft")
    form = models.JSONField(default=dict)
    saved_at = models.DateTimeField()


class AnnotationQuerySet(models.QuerySet["Annotation"]):
    def current(self) -> AnnotationQuerySet:
        """Returns the newest revision of each assignment."""
        return self.filter(is_current=True)

    def counting(self) -> AnnotationQuerySet:
        """Returns current annotations that are not rejected, not extras, and not made by an excluded annotator."""
        return self.current().filter(assignment__counts=True)

    def for_project(self, project_id: int) -> AnnotationQuerySet:
        return self.filter(project=project_id)


class Annotation(models.Model):
    """One submission. Rows are only added: an edit is a new revision, and one revision is current.

    Two responses are compared by a preference, three and more by a ranking. The trigger `ranking_of_every_response`
    ensures that a ranking names each response of the task once.
    """

    assignment = models.ForeignKey(
        Assignment, on_delete=models.CASCADE, db_index=False, related_name="annotations", verbose_name=_("assignment")
    )
    # The trigger `annotation_knows_its_project` copies both, so that the newest of a project, and of one person in it,
    # are found by an index. They need no constraint, as they go with the assignment.
    project = models.ForeignKey(
        "annotator.Project", models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+", editable=False
    )
    annotator = models.ForeignKey(
        "annotator.User", models.DO_NOTHING, db_index=False, db_constraint=False, related_name="+", editable=False
    )
    revision = models.PositiveSmallIntegerField(_("revision"), default=1)
    is_current = models.BooleanField(_("is current"), default=True)
    origin = models.CharField(_("origin"), max_length=10, choices=Origin.choices, default=Origin.PERSON)
    preference = models.SmallIntegerField(_("preference"), null=True, blank=True)
    ranking = models.JSONField(
        _("ranking"),
        null=True,
        blank=True,
        help_text=_("Tiers of response ids, the best first: [[response, ...], ...]."),
    )
    justification = models.TextField(_("justification"), blank=True)
    domain = models.CharField(_("domain"), max_length=LONGEST_DOMAIN, blank=True, default="", db_default="")
    language = models.CharField(_("language"), max_length=16, blank=True, default="", db_default="")
    aspects = ArrayField(
        models.SlugField(),
        default=list,
        db_default=[],
        blank=True,
        help_text="the attributes of segments, in the order of the ratings' segment scores",
    )
    active_seconds = models.FloatField(_("active seconds"), null=True, blank=True)
    guideline_version = models.PositiveIntegerField(_("guideline version"), default=0)
    rubric_version = models.PositiveSmallIntegerField(_("rubric version"), default=1, db_default=1)
    content_hash = models.CharField(_("content hash"), max_length=64)
    submitted_at = models.DateTimeField(_("submitted at"))

    objects = AnnotationQuerySet.as_manager()

    class Meta:
        verbose_name = _("annotation")
        verbose_name_plural = _("annotations")
        indexes = [
            models.Index(fields=["project", "id"], condition=Q(is_current=True), name="annotation_by_project"),
            models.Index(
                fields=["project", "annotator", "id"], condition=Q(is_current=True), name="annotation_by_annotator"
            ),
            # Most projects have none, and an export would look for them in every task.
            models.Index(
                fields=["project"],
                condition=Q(is_current=True, ranking__isnull=False),
                name="annotation_with_a_ranking",
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["assignment", "revision"], name="revision_once_per_assignment"),
            models.UniqueConstraint(
                fields=["assignment"], condition=Q(is_current=True), name="one_current_annotation_per_assignment"
            ),
            models.CheckConstraint(
                condition=Q(preference__isnull=True) | Q(preference__in=PREFERENCES), name="preference_on_the_scale"
            ),
            models.CheckConstraint(condition=tiers_of_ids("ranking"), name="ranking_is_tiers_of_ids"),
            models.CheckConstraint(
                condition=Q(preference__isnull=True) | Q(ranking__isnull=True), name="a_preference_or_a_ranking"
            ),
            models.CheckConstraint(
                condition=Q(active_seconds__isnull=True) | Q(active_seconds__range=(0, LONGEST_ACTIVE_SECONDS)),
                name="active_seconds_within_a_week",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.assignment}, revision {self.revision}"


class Rating(models.Model):
    """The scores that one annotation gives one response. An attribute without an answer is absent, never 0.

    `segment_scores` are [segments][aspects] in the order of the annotation's `aspects`, with null where an aspect does
    not apply to a segment. They follow the response's segments, or the rater's own `cut` of it where there is one.
    `evidence` holds characters of the response for which an attribute has its score, within the text (rating.sql).
    """

    annotation = models.ForeignKey(Annotation, on_delete=models.CASCADE, db_index=False, related_name="ratings")
    response = models.ForeignKey(
        "annotator.Response", on_delete=models.CASCADE, related_name="ratings", verbose_name=_("response")
    )
    scores = models.JSONField()
    segment_scores = models.JSONField(null=True, blank=True)
    cut = models.JSONField(null=True, blank=True, help_text="[[start, end], ...]; empty: the response's own segments")
    comments = models.JSONField(
        default=list, db_default=[], blank=True, help_text="[[start, end, text], ...] of the response's text"
    )
    evidence = models.JSONField(
        default=list, db_default=[], blank=True, help_text="[[attribute, start, end, note], ...] of the response's text"
    )
    checks = models.JSONField(_("checks"), default=list)
    confidence = models.PositiveSmallIntegerField(
        _("confidence"), null=True, blank=True, help_text=_("2 is very sure, 1 somewhat sure, 0 not sure.")
    )
    safe = models.BooleanField(_("safe"), null=True, blank=True)
    unsafe_category = models.CharField(max_length=40, blank=True)
    feedback = models.TextField(_("feedback"), blank=True, default="", db_default="")
    edit = models.TextField(
        _("edit"),
        blank=True,
        default="",
        db_default="",
        help_text=_("A better version of the response, by its annotator."),
    )
    edit_summary = models.TextField(_("summary of the edit"), blank=True, default="", db_default="")

    class Meta:
        verbose_name = _("rating")
        verbose_name_plural = _("ratings")
        # Most ratings have no edit, and those that do are listed, and exported by their tasks.
        indexes = [
            models.Index(fields=["-id"], condition=~Q(edit=""), name="rating_with_an_edit"),
            models.Index(fields=["response"], condition=~Q(edit=""), name="edit_of_response"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["annotation", "response"], name="one_rating_per_annotation_and_response"),
            models.CheckConstraint(condition=whole_scores("scores"), name="scores_are_whole_and_on_a_scale"),
            models.CheckConstraint(
                condition=Q(confidence__isnull=True) | Q(confidence__lte=2), name="confidence_has_three_levels"
            ),
            models.CheckConstraint(condition=Q(edit_summary="") | ~Q(edit=""), name="a_summary_is_of_an_edit"),
            models.CheckConstraint(condition=whole_cells("segment_scores"), name="segment_scores_are_on_a_scale"),
            models.CheckConstraint(condition=ranges("cut"), name="an_own_cut_is_ranges"),
        ]


class SkipReason(models.TextChoices):
    PII = "pii", _("Personal information")
    NON_ENGLISH = "non_english", _("Substantially not English")
    NEEDS_CODING = "needs_coding", _("Needs coding skills")
    ABOUT_ASSISTANT = "about_assistant", _("About the assistant itself")
    OTHER = "other", _("Another reason")


class Skip(models.Model):
    """Why an annotator passed a task by. PII quarantines the task; other reasons hold for that person only."""

    assignment = models.ForeignKey(Assignment, on_delete=models.CASCADE, related_name="skips")
    reason = models.CharField(max_length=20, choices=SkipReason.choices)
    note = models.TextField(blank=True)
    created_at = models.DateTimeField()


class UnsafeCategory(models.TextChoices):
    HARMFUL = "harmful", _("Harmful or dangerous")
    ILLEGAL = "illegal", _("Illegal")
    PROFANITY = "profanity", _("Profanity or sexual content")
    BIAS = "bias", _("Bias or stereotype")
    OTHER = "other", _("Something else")


class Report(models.Model):
    """Unsafe content, reported by an annotator; the task is quarantined until a manager decides."""

    class Decision(models.TextChoices):
        UPHELD = "upheld"
        DISMISSED = "dismissed"

    assignment = models.ForeignKey(Assignment, on_delete=models.CASCADE, related_name="reports")
    category = models.CharField(max_length=20, choices=UnsafeCategory.choices)
    note = models.TextField(blank=True)
    created_at = models.DateTimeField()
    decision = models.CharField(max_length=10, choices=Decision.choices, blank=True)
