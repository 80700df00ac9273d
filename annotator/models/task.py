"""Tasks and their responses, and the words by which tasks are found (annotator/reading/search/word_index.py)."""

from __future__ import annotations

from collections.abc import Sequence

from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import ExpressionWrapper, F, Q
from django.db.models.functions import Cast, Floor, Random
from django.utils.translation import gettext_lazy as _

from annotator.models.public_ids import response_number, task_number
from annotator.models.scores import ranges


class TaskQuerySet(models.QuerySet["Task"]):
    def open(self) -> TaskQuerySet:
        return self.filter(state=Task.State.OPEN)

    def disputed(self) -> TaskQuerySet:
        """Returns tasks that wait for a reviewer, the widest spread first."""
        # The index task_review_order has this condition and this order: a page reads its own rows only.
        return self.exclude(review_reason="").order_by("-review_spread", "pk")

    def gold_for(self, use: str) -> TaskQuerySet:
        """Returns gold tasks of one use, in the order of their import."""
        return self.filter(state=Task.State.GOLD, gold__use=use).order_by("pk")

    def locked(self, numbers: Sequence[int]) -> list[Task]:
        """Locks these tasks and reads them without their long texts, in the order in which every stage locks tasks."""
        tasks = self.filter(pk__in=numbers).order_by("pk").defer("conversation", "metadata")
        return list(tasks.select_for_update())

    def unscanned(self) -> TaskQuerySet:
        """Returns tasks in which nobody has looked for personal information yet."""
        return self.filter(pii_scanned_at__isnull=True)

    def untouched_by(self, user_id: int, *, states: tuple[str, ...]) -> TaskQuerySet:
        """Returns tasks on which this user has no assignment in one of the states."""
        assignments = apps.get_model("annotator", "Assignment").objects
        mine = assignments.filter(task=models.OuterRef("pk"), annotator=user_id, state__in=states)
        return self.filter(~models.Exists(mine))


_UNSCANNED = ExpressionWrapper(Q(pii_scanned_at__isnull=True), output_field=models.BooleanField())


class Task(models.Model):
    """A conversation whose next turn is rated, and how many annotators it still wants.

    `open_slots` is `slots_wanted` less the assignments that hold a slot, and `done` is the number of those that are
    submitted; the stage functions keep both right. `shuffle` spreads annotators over untouched tasks. Begun tasks with
    room stand in a line: a trigger puts a task at its end whenever the task is begun or gets room. A gold task measures
    annotators: anybody may rate it, and it yields no label. `review_reason` says why a reviewer should look at the
    task.
    """

    class State(models.TextChoices):
        OPEN = "open", _("Open")
        COMPLETE = "complete", _("Complete")
        QUARANTINED = "quarantined", _("Quarantined")
        RETIRED = "retired", _("Retired")
        GOLD = "gold", _("Gold")

    class Review(models.TextChoices):
        DROPPED = "dropped", _("Ratings too far apart")
        SAFETY = "safety", _("Disagreement on safety")
        QUARANTINE = "quarantine", _("Set aside")
        UNLIKELY = "unlikely", _("Unlikely according to the model")
        SILENT = "silent", _("The guidelines are silent")

    # Without an index of its own: task_by_project begins with it.
    project = models.ForeignKey(
        "annotator.Project", on_delete=models.CASCADE, related_name="tasks", db_index=False, verbose_name=_("project")
    )
    external_id = models.CharField(_("external id"), max_length=200)
    conversation = models.JSONField()
    metadata = models.JSONField(_("metadata"), default=dict, blank=True)
    priority = models.SmallIntegerField(_("priority"), default=0)
    state = models.CharField(_("state"), max_length=12, choices=State.choices, default=State.OPEN)
    slots_wanted = models.PositiveSmallIntegerField(_("slots wanted"), default=3)
    open_slots = models.PositiveSmallIntegerField(_("open slots"), default=3)
    done = models.PositiveSmallIntegerField(db_default=0)
    begun = models.GeneratedField(
        expression=models.ExpressionWrapper(Q(open_slots__lt=F("slots_wanted")), output_field=models.BooleanField()),
        output_field=models.BooleanField(),
        db_persist=True,
    )
    shuffle = models.IntegerField(db_default=Cast(Floor(Random() * 2**31), models.IntegerField()))
    line = models.BigIntegerField(db_default=0)
    language = models.CharField(max_length=16, blank=True, db_default="", help_text="empty: for every annotator")
    review_reason = models.CharField(max_length=12, choices=Review.choices, blank=True, db_default="")
    review_spread = models.SmallIntegerField(db_default=0)
    adjudicated = models.BooleanField(db_default=False, help_text="a reviewer has set its labels")
    content_hash = models.CharField(max_length=64)
    prompt_hash = models.CharField(max_length=64)
    imported_preference = models.SmallIntegerField(null=True, blank=True)
    # Without a constraint and an index, which would slow down every insert: an import knows between which ids its tasks
    # lie, and is deleted only with its project.
    from_import = models.ForeignKey(
        "annotator.Import",
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="tasks",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    pii_scanned_at = models.DateTimeField(_("scanned for personal information"), null=True, blank=True)
    redacted_at = models.DateTimeField(_("redacted at"), null=True, blank=True)

    objects = TaskQuerySet.as_manager()

    class Meta:
        verbose_name = _("task")
        verbose_name_plural = _("tasks")
        constraints = [
            models.UniqueConstraint(fields=["project", "external_id"], name="task_external_id_once_per_project"),
            models.CheckConstraint(
                condition=Q(open_slots__lte=F("slots_wanted") - F("done")), name="open_slots_within_wanted"
            ),
        ]
        indexes = [
            models.Index(fields=["project", "id"], name="task_by_project"),
            models.Index(fields=["project", "content_hash"], name="task_by_content"),
            # With the id, so that a list of one state reads only the rows that it shows.
            models.Index(fields=["project", "state", "id"], name="task_by_state"),
            models.Index(
                fields=["project", "-review_spread", "id"], condition=Q(review_spread__gt=0), name="task_by_spread"
            ),
            models.Index(fields=["id"], condition=Q(pii_scanned_at__isnull=True), name="task_unscanned"),
            models.Index(
                fields=["project"], condition=Q(imported_preference__isnull=False), name="task_with_a_preference"
            ),
            # A claim reads the next three in their order and stops at the first task with room. Their conditions are
            # those of its statements (stages/assignment/task_choice.py); otherwise it would sort every open task.
            models.Index(
                fields=["project", "line"], condition=Q(state="open", open_slots__gt=0, begun=True), name="task_in_line"
            ),
            models.Index(
                F("project"),
                F("priority").desc(),
                _UNSCANNED,
                F("shuffle"),
                condition=Q(state="open", open_slots__gt=0, begun=False),
                name="task_untouched",
            ),
            models.Index(
                F("project"),
                F("language"),
                F("priority").desc(),
                _UNSCANNED,
                F("shuffle"),
                condition=Q(state="open", open_slots__gt=0, begun=False) & ~Q(language=""),
                name="task_untouched_by_language",
            ),
            models.Index(
                fields=["project", "-review_spread", "id"], condition=~Q(review_reason=""), name="task_review_order"
            ),
        ]

    def __str__(self) -> str:
        return self.external_id

    @property
    def public_id(self) -> int:
        """The number by which the task is known outside."""
        return task_number(self.pk)

    def may_be_revised(self) -> bool:
        """Returns whether ratings of the task may be revised: as long as it waits for other annotators.

        A gold task is to look like any other, so it seems to wait too. Only first ratings of it are judged.
        """
        if self.state != Task.State.GOLD:
            return self.state == Task.State.OPEN
        return self.seems_to_wait(self.assignments.filter(state="submitted").count())

    def seems_to_wait(self, rated: int) -> bool:
        """Returns whether a gold task that so many have rated looks as if it waited for other annotators."""
        return rated < self.project.base_annotators

    def state_in_use(self) -> str:
        """Returns the state to which the task goes back when it is no longer set aside."""
        gold = apps.get_model("annotator", "Gold").objects.filter(task=self.pk)
        return Task.State.GOLD if gold.exists() else Task.State.OPEN


class Response(models.Model):
    """One candidate answer. `model` names who wrote it and never reaches an annotator."""

    # Without an index of its own: that of `response_position_once_per_task` begins with the task.
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="responses", db_index=False)
    position = models.PositiveSmallIntegerField(_("position"))
    external_id = models.CharField(max_length=200, blank=True)
    text = models.TextField(_("text"))
    model = models.CharField(_("model"), max_length=200, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    segments = models.JSONField(
        null=True, blank=True, help_text="[[start, end], ...] of the text; empty: nobody has cut it yet"
    )
    edit_of = models.ForeignKey(
        "annotator.Rating",
        on_delete=models.SET_NULL,
        related_name="edited_responses",
        null=True,
        blank=True,
        db_index=False,
        verbose_name=_("edit of"),
        help_text=_("The rating whose annotator wrote this response as a better version of another."),
    )

    class Meta:
        verbose_name = _("response")
        verbose_name_plural = _("responses")
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["task", "position"], name="response_position_once_per_task"),
            # Also the index by which a rating that is deleted finds its response: few responses are edits.
            models.UniqueConstraint(
                fields=["edit_of"], condition=models.Q(edit_of__isnull=False), name="an_edit_becomes_a_response_once"
            ),
            models.CheckConstraint(condition=ranges("segments"), name="segments_are_ranges"),
        ]

    def __str__(self) -> str:
        return self.external_id or f"response {self.position + 1}"

    def store_first_segments(self, pairs: list[list[int]]) -> bool:
        """Stores the segments of a response that has none, and returns whether it had none.

        They are of this text only: it may have been redacted since it was read, and the ranges would be wrong.
        """
        uncut = Response.objects.filter(pk=self.pk, text=self.text, segments__isnull=True)
        stored = bool(uncut.update(segments=pairs))
        if stored:
            self.segments = pairs
        return stored

    @property
    def public_id(self) -> int:
        """The number by which the response is known outside."""
        return response_number(self.pk)


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
