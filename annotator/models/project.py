"""Projects, rubrics, guidelines and who may do what."""

from __future__ import annotations

from functools import lru_cache
from time import monotonic
from typing import TYPE_CHECKING

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Coalesce
from django.utils.module_loading import import_string
from django.utils.translation import gettext_lazy as _

from annotator.refusals import Refusal

if TYPE_CHECKING:
    from annotator.models.user import User


class Rubric(models.Model):
    """A named set of attributes that a project rates by."""

    key = models.SlugField(unique=True)
    name = models.CharField(max_length=120)

    def __str__(self) -> str:
        return self.name


class Attribute(models.Model):
    """One attribute of a rubric with the text of each of its five levels, lowest first."""

    rubric = models.ForeignKey(Rubric, on_delete=models.CASCADE, related_name="attributes")
    key = models.SlugField()
    name = models.CharField(max_length=60)
    description = models.TextField()
    levels = models.JSONField()
    checks = models.JSONField(default=list, blank=True)
    scope = models.CharField(
        max_length=10, choices=[("response", "response"), ("segment", "segment")], default="response"
    )
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["rubric", "key"], name="attribute_key_once_per_rubric")]

    def __str__(self) -> str:
        return self.name


RUBRIC_SECONDS = 30
MOST_ANNOTATORS = 25
"""The most annotators that one task may ask for."""
WIDEST = 4
"""The widest spread: that between the lowest and the highest level."""


@lru_cache(maxsize=64)
def attributes_of(rubric_id: int, moment: int) -> tuple[Attribute, ...]:
    """Returns the rubric's attributes, read once for each `moment`: every task needs them, and they hardly change."""
    return tuple(Attribute.objects.filter(rubric=rubric_id).order_by("position"))


class Role(models.TextChoices):
    ANNOTATOR = "annotator", _("Annotator")
    REVIEWER = "reviewer", _("Reviewer")
    MANAGER = "manager", _("Manager")


def usable_by_the_trainer(config: object) -> None:
    """Raises ValidationError for settings that the trainer does not accept.

    The machine half checks them; the human half must not import it, so settings.py names the function.
    """
    try:
        import_string(settings.TRAINING_CONFIG_CHECK)(config)
    except Refusal as refused:
        raise ValidationError(str(refused)) from refused


class ProjectQuerySet(models.QuerySet["Project"]):
    def in_use(self) -> ProjectQuerySet:
        """Returns projects that are not archived."""
        return self.filter(archived_at=None)

    def standing(self) -> ProjectQuerySet:
        """Returns projects that nobody has deleted.

        A project whose rows are still being deleted in the background is out of everybody's reach already.
        """
        return self.filter(deleted_at=None)

    def visible_to(self, user: User) -> ProjectQuerySet:
        """Returns every project for a superuser, else those that the user is a member of."""
        return self.standing() if user.is_superuser else self.standing().filter(memberships__user=user)

    def managed_by(self, user: User) -> ProjectQuerySet:
        if user.is_superuser:
            return self.standing()
        return self.standing().filter(memberships__user=user, memberships__role=Role.MANAGER)

    def with_progress(self) -> ProjectQuerySet:
        """Adds counts of tasks by state: `tasks_total`, `tasks_open`, `tasks_complete`, ...; gold tasks are no work."""
        tasks = apps.get_model("annotator", "Task").objects.filter(project=models.OuterRef("pk")).order_by()

        # Subqueries, which the index task_by_state serves: joined tasks would multiply with other joins of the query.
        def number(*states: str) -> Coalesce:
            by_project = tasks.filter(state__in=states).values("project").annotate(n=models.Count("pk"))
            return Coalesce(models.Subquery(by_project.values("n")), 0)

        return self.annotate(
            tasks_total=number("open", "complete", "quarantined", "retired"),
            tasks_open=number("open"),
            tasks_complete=number("complete"),
            tasks_quarantined=number("quarantined"),
            tasks_retired=number("retired"),
        )

    def as_seen_by(self, user: User) -> ProjectQuerySet:
        """Adds the user's `own_role`, `own_quota` and `own_done` in each project, and its `guidelines_version`."""
        member = apps.get_model("annotator", "Membership").objects.filter(user=user, project=models.OuterRef("pk"))
        tally = apps.get_model("annotator", "Tally").objects.filter(annotator=user, project=models.OuterRef("pk"))
        versions = Guideline.objects.filter(project=models.OuterRef("pk")).order_by("-version").values("version")
        role = models.Value(Role.MANAGER.value) if user.is_superuser else models.Subquery(member.values("role"))
        return self.annotate(
            own_role=role,
            own_quota=Coalesce(models.Subquery(member.values("quota")), F("quota")),
            own_done=Coalesce(models.Subquery(tally.values("done")), 0),
            guidelines_version=Coalesce(models.Subquery(versions[:1]), 0),
        )


class Project(models.Model):
    """A body of tasks, the protocol they are rated by, and the policy their reward model is retrained by.

    The protocol's defaults are HelpSteer2's (arXiv 2406.08673, section 2.1).
    """

    class SpreadScope(models.TextChoices):
        KEPT = "kept"
        ALL = "all"

    class QueueOrder(models.TextChoices):
        PRIORITY = "priority", _("By priority")
        UNCERTAIN = "uncertain", _("By priority, then what the model is least certain of")

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=120)
    description = models.TextField(blank=True)
    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="projects")
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True, blank=True, editable=False)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False, help_text="the rest goes in portions")

    base_annotators = models.PositiveSmallIntegerField(
        default=3, validators=[MinValueValidator(1)], help_text="annotators asked for each task at first"
    )
    max_annotators = models.PositiveSmallIntegerField(
        default=5,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_ANNOTATORS)],
        help_text="annotators after escalation",
    )
    escalate_above = models.PositiveSmallIntegerField(
        default=2,
        validators=[MaxValueValidator(WIDEST)],
        help_text="a spread above this asks for more annotators",
    )
    keep = models.PositiveSmallIntegerField(
        default=3,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_ANNOTATORS)],
        help_text="the most agreeing annotations that make the label",
    )
    drop_above = models.PositiveSmallIntegerField(
        default=2, validators=[MaxValueValidator(WIDEST)], help_text="a spread above this drops the task"
    )
    spread_scope = models.CharField(
        max_length=4,
        choices=SpreadScope.choices,
        default=SpreadScope.KEPT,
        help_text="whether the final filter looks at the kept annotations or at all of them",
    )
    spread_attribute = models.SlugField(default="helpfulness", help_text="the attribute whose spread decides")
    lease_minutes = models.PositiveSmallIntegerField(
        default=30, validators=[MinValueValidator(1)], help_text="how long a task stays with an idle annotator"
    )

    queue_order = models.CharField(
        max_length=9,
        choices=QueueOrder.choices,
        default=QueueOrder.PRIORITY,
        help_text="which untouched task comes next; the model's uncertainty is known of tasks that it has scored",
    )
    paused = models.BooleanField(default=False, help_text="nobody gets a task; what is begun may be handed in")
    quota = models.PositiveIntegerField(default=0, help_text="tasks that one annotator may rate; 0: no limit")

    ask_preference = models.BooleanField(default=False)
    ask_safety = models.BooleanField(default=False)
    ask_confidence = models.BooleanField(default=False)

    qualification_required = models.BooleanField(
        default=False, help_text="annotators pass a test of gold tasks before their first task"
    )
    qualification_threshold = models.FloatField(
        default=0.5,
        validators=[MinValueValidator(-1), MaxValueValidator(1)],
        help_text="mean weighted kappa with the experts that passes the test",
    )
    qualification_tries = models.PositiveSmallIntegerField(
        default=3, validators=[MinValueValidator(1)], help_text="how often the test may be taken"
    )
    gold_every = models.PositiveSmallIntegerField(
        default=0, help_text="one in about this many tasks is a gold task; 0: none"
    )
    gold_window = models.PositiveSmallIntegerField(
        default=10, validators=[MinValueValidator(2)], help_text="the last gold tasks of an annotator that are judged"
    )
    gold_threshold = models.FloatField(
        default=0.3,
        validators=[MinValueValidator(-1), MaxValueValidator(1)],
        help_text="mean weighted kappa with the experts below which an annotator is paused",
    )

    retrain_after_labels = models.PositiveIntegerField(
        default=0, help_text="retrain when this many new labels have come; 0 turns it off"
    )
    retrain_after_hours = models.PositiveIntegerField(
        default=0, help_text="retrain when the last snapshot is this old and new labels have come; 0 turns it off"
    )
    retrain_cooldown_minutes = models.PositiveIntegerField(
        default=30, help_text="least time between the end of a run and one that starts by itself"
    )
    promote_automatically = models.BooleanField(
        default=True, help_text="a better model takes over by itself; if not, it waits for a manager's decision"
    )
    review_unlikely_percent = models.PositiveSmallIntegerField(
        default=2,
        validators=[MaxValueValidator(20)],
        help_text="share of the annotations, those that a model finds most unlikely, that goes to review; 0: none",
    )
    validation_share = models.FloatField(
        default=0.1,
        validators=[MinValueValidator(0.01), MaxValueValidator(0.5)],
        help_text="share of prompts held out to judge models; a prompt's side depends on this share and its text alone",
    )
    training_config = models.JSONField(
        default=dict,
        blank=True,
        validators=[usable_by_the_trainer],
        help_text="settings for the trainer, such as epochs",
    )

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(max_annotators__gte=F("base_annotators")),
                name="max_annotators_reach_base",
                violation_error_message="Max annotators must be at least base annotators.",
            ),
            models.CheckConstraint(condition=Q(base_annotators__gte=1, keep__gte=1), name="somebody_annotates"),
            models.CheckConstraint(
                condition=Q(max_annotators__lte=MOST_ANNOTATORS, keep__lte=MOST_ANNOTATORS),
                name="no_task_asks_for_a_crowd",
            ),
            models.CheckConstraint(
                condition=Q(escalate_above__lte=WIDEST, drop_above__lte=WIDEST), name="spreads_lie_on_the_scale"
            ),
            models.CheckConstraint(
                condition=Q(
                    lease_minutes__gte=1,
                    qualification_tries__gte=1,
                    gold_window__gte=2,
                    qualification_threshold__range=(-1, 1),
                    gold_threshold__range=(-1, 1),
                    review_unlikely_percent__lte=20,
                    validation_share__range=(0.01, 0.5),
                ),
                name="settings_lie_within_their_bounds",
            ),
            models.CheckConstraint(
                condition=Q(deleted_at=None) | Q(archived_at__isnull=False), name="only_the_archived_are_deleted"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def attributes_for(self, scope: str = "response") -> list[Attribute]:
        """Returns the attributes in the rubric's order, read at most RUBRIC_SECONDS ago."""
        attributes = attributes_of(self.rubric_id, int(monotonic() // RUBRIC_SECONDS))
        return [attribute for attribute in attributes if attribute.scope == scope]

    def attribute_keys(self) -> list[str]:
        return [attribute.key for attribute in self.attributes_for()]

    def current_guideline(self) -> Guideline | None:
        return self.guidelines.order_by("-version").first()


class Guideline(models.Model):
    """One version of a project's guidelines, in markdown; the newest is in force."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="guidelines")
    version = models.PositiveIntegerField()
    text = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-version"]
        constraints = [
            models.UniqueConstraint(fields=["project", "version"], name="guideline_version_once_per_project")
        ]

    def __str__(self) -> str:
        return f"version {self.version}"
