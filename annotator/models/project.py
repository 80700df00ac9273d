"""Projects, their guidelines, and who may do what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.apps import apps
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Coalesce
from django.utils.module_loading import import_string
from django.utils.translation import gettext_lazy as _

from annotator.infrastructure.limits import MOST_AHEAD, MOST_ANNOTATORS
from annotator.infrastructure.refusals import Refusal
from annotator.models.account_names import require_addressable
from annotator.models.rubric import LONGEST_DOMAIN, Attribute, RatedByRubric, Rubric, names_of_domains
from annotator.models.scores import FEWEST_RANKED, HIGHEST_SCORE

if TYPE_CHECKING:
    from annotator.models.agreement import Progress
    from annotator.models.user import User

WIDEST = HIGHEST_SCORE
"""The widest spread: that between the lowest and the highest level of the longest scale."""


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


class Project(RatedByRubric, models.Model):
    """A body of tasks, the protocol they are rated by, and the policy their reward model is retrained by.

    The protocol's defaults are HelpSteer2's (arXiv 2406.08673, section 2.1).
    """

    progress: Progress
    """Set by `add_progress` (annotator/analysis/figures.py), for the doors that show it."""

    class SpreadScope(models.TextChoices):
        KEPT = "kept", _("Kept")
        ALL = "all", _("All")

    class SegmentUnit(models.TextChoices):
        SENTENCE = "sentence", _("Sentence")
        STEP = "step", _("Step")
        TEXT = "text", _("Whole response")

    slug = models.SlugField(
        _("Name in addresses"),
        unique=True,
        validators=[require_addressable],
        help_text=_("Used in the project's URLs. Links to the old addresses stop working."),
    )
    name = models.CharField(_("Name"), max_length=120)
    description = models.TextField(
        _("Purpose"), blank=True, help_text=_("What the ratings are for. Everybody in the project sees it.")
    )
    # RESTRICT, unlike PROTECT, lets a project go together with the versions of the rubric that are its own.
    rubric = models.ForeignKey(
        Rubric,
        on_delete=models.RESTRICT,
        related_name="projects",
        verbose_name=_("Rubric"),
        help_text=_("It cannot be replaced once something has been rated."),
    )
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True, blank=True, editable=False)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False, help_text="the rest goes in portions")
    releases_made = models.PositiveIntegerField(
        default=0, db_default=0, editable=False, help_text="the number of the last release, which may be deleted"
    )

    base_annotators = models.PositiveSmallIntegerField(
        _("Annotators for each task"),
        default=3,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_ANNOTATORS)],
        help_text=_("How many people rate each task at first."),
    )
    max_annotators = models.PositiveSmallIntegerField(
        _("Maximum annotators per task"),
        default=5,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_ANNOTATORS)],
        help_text=_("The most people for one task, if the ratings are too far apart."),
    )
    escalate_above = models.PositiveSmallIntegerField(
        _("Ask more above a spread of"),
        default=2,
        validators=[MaxValueValidator(WIDEST)],
        help_text=_("If the spread is above this, more annotators are asked."),
    )
    keep = models.PositiveSmallIntegerField(
        _("Annotations kept"),
        default=3,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_ANNOTATORS)],
        help_text=_("The label is the mean of this many annotations, those that are closest to each other."),
    )
    drop_above = models.PositiveSmallIntegerField(
        _("Drop above a spread of"),
        default=2,
        validators=[MaxValueValidator(WIDEST)],
        help_text=_("If the spread is above this, the task is dropped."),
    )
    spread_scope = models.CharField(
        _("Annotations whose spread drops a task"),
        max_length=4,
        choices=SpreadScope.choices,
        default=SpreadScope.KEPT,
        help_text=_("Whether the decision to drop a task looks at the kept annotations or at all of them."),
    )
    spread_attribute = models.SlugField(
        _("Attribute whose spread decides"),
        default="helpfulness",
        help_text=_("The spread is the difference between the highest and the lowest rating."),
    )
    spread_share = models.FloatField(
        _("Share of segments that may differ more"),
        default=0.0,
        db_default=0.0,
        validators=[MinValueValidator(0), MaxValueValidator(0.9)],
        help_text=_(
            "For an aspect of segments. 0: one segment with a wider spread is enough; 0.2: a fifth of a response's "
            "segments may have one."
        ),
    )
    segment_unit = models.CharField(
        _("Segment unit"),
        max_length=10,
        choices=SegmentUnit.choices,
        default=SegmentUnit.SENTENCE,
        db_default=SegmentUnit.SENTENCE,
        help_text=_(
            "What annotators rate one by one, if the rubric has attributes of segments. Responses that somebody "
            "has been given to rate, or a model has scored, keep their segments."
        ),
    )
    allow_recut = models.BooleanField(
        _("Annotators may join and split segments"),
        default=False,
        db_default=False,
        help_text=_("Ratings of different segments are compared on the finest cut that they have in common."),
    )
    lease_minutes = models.PositiveSmallIntegerField(
        _("Minutes until a task goes back"),
        default=30,
        validators=[MinValueValidator(1)],
        help_text=_("How long an annotator who does nothing keeps a task."),
    )
    tasks_ahead = models.PositiveSmallIntegerField(
        _("Tasks ready ahead"),
        default=3,
        db_default=3,
        validators=[MaxValueValidator(MOST_AHEAD)],
        help_text=_(
            "The next tasks, which an annotator's browser holds so that nobody waits for them, also without a network. "
            "Never more than an equal share of what is open; 0 means none."
        ),
    )

    paused = models.BooleanField(
        _("Paused"), default=False, help_text=_("Nobody gets a task. Annotators can still submit what they have begun.")
    )
    quota = models.PositiveIntegerField(
        _("Tasks for one annotator"), default=0, help_text=_("Tasks that one annotator may rate; 0 means no limit.")
    )

    allow_ties = models.BooleanField(_("Offer “equally good” as an answer"), default=False)
    ask_preference = models.BooleanField(
        _("Ask which response is better"),
        default=False,
        help_text=_("Annotators choose between two responses, or rank more than two."),
    )
    ask_safety = models.BooleanField(
        _("Ask whether each response is safe"),
        default=False,
        help_text=_("A response may be marked as unsafe and is rated all the same."),
    )
    ask_confidence = models.BooleanField(
        _("Ask how sure the annotator is"),
        default=False,
        help_text=_("Three levels: very sure, somewhat sure and not sure."),
    )
    ask_feedback = models.BooleanField(
        _("Ask for written feedback on each response"),
        default=False,
        db_default=False,
        help_text=_("A text on what is good and bad about it. It is required."),
    )
    ask_edit = models.BooleanField(
        _("Offer to write a better version of a response"),
        default=False,
        db_default=False,
        help_text=_("Nobody has to. A manager can have the edits rated as responses."),
    )
    ask_language = models.BooleanField(
        _("Ask for the language"),
        default=False,
        db_default=False,
        help_text=_("The language that the task is in, besides the one it may have come with."),
    )
    domains = ArrayField(
        models.CharField(max_length=LONGEST_DOMAIN),
        default=list,
        blank=True,
        db_default=[],
        validators=[names_of_domains],
        verbose_name=_("Domains to choose from"),
        help_text=_("Such as General, STEM, Code. Without any, the domain is not asked for."),
    )

    qualification_required = models.BooleanField(
        _("Annotators must pass a test first"),
        default=False,
        help_text=_("Annotators must pass a test of gold tasks before their first task."),
    )
    qualification_threshold = models.FloatField(
        _("Kappa that passes the test"),
        default=0.5,
        validators=[MinValueValidator(-1), MaxValueValidator(1)],
        help_text=_("Mean weighted kappa with the experts that is needed to pass the test."),
    )
    qualification_tries = models.PositiveSmallIntegerField(
        _("Test attempts"),
        default=3,
        validators=[MinValueValidator(1)],
        help_text=_("How often the test may be taken."),
    )
    gold_every = models.PositiveSmallIntegerField(
        _("Gold task frequency (1 in N)"),
        default=0,
        help_text=_("About one in this many tasks is a gold task; 0 means none."),
    )
    gold_window = models.PositiveSmallIntegerField(
        _("Gold tasks that are judged"),
        default=10,
        validators=[MinValueValidator(2)],
        help_text=_("How many of an annotator's latest gold tasks are judged."),
    )
    gold_threshold = models.FloatField(
        _("Kappa below which annotators are paused"),
        default=0.3,
        validators=[MinValueValidator(-1), MaxValueValidator(1)],
        help_text=_("Annotators are paused if their mean weighted kappa with the experts is below this."),
    )

    retrain_after_labels = models.PositiveIntegerField(
        _("Retrain after new labels"), default=0, help_text=_("Retrain after this many new labels; 0 turns this off.")
    )
    retrain_after_hours = models.PositiveIntegerField(
        _("Retrain after hours"),
        default=0,
        help_text=_("Retrain when the last snapshot is this old and there are new labels; 0 turns this off."),
    )
    retrain_cooldown_minutes = models.PositiveIntegerField(
        _("Minutes between runs"),
        default=30,
        help_text=_("Shortest time between the end of a run and the next automatic one."),
    )
    promote_automatically = models.BooleanField(
        _("Promote a better model automatically"),
        default=True,
        help_text=_("Otherwise a better model waits for a manager's decision."),
    )
    review_unlikely_percent = models.PositiveSmallIntegerField(
        _("Percent of annotations sent to review"),
        default=2,
        validators=[MaxValueValidator(20)],
        help_text=_(
            "Percentage of annotations that go to review, because a model finds them most unlikely; 0 means none."
        ),
    )
    learn_evidence = models.BooleanField(
        _("Learn from selected words"),
        default=False,
        db_default=False,
        help_text=_(
            "Words that annotators selected for a score teach models to score parts of a response, where the rubric "
            "has no attributes of segments."
        ),
    )
    validation_share = models.FloatField(
        _("Share of prompts held out"),
        default=0.1,
        validators=[MinValueValidator(0.01), MaxValueValidator(0.5)],
        help_text=_(
            "Share of prompts held out to judge models. Only this share and its text decide whether a prompt is held "
            "out."
        ),
    )
    training_config = models.JSONField(
        _("Settings of the trainer"),
        default=dict,
        blank=True,
        validators=[usable_by_the_trainer],
        help_text=_("Settings for the trainer, such as epochs."),
    )

    objects = ProjectQuerySet.as_manager()

    class Meta:
        verbose_name = _("project")
        verbose_name_plural = _("projects")
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(max_annotators__gte=F("base_annotators")),
                name="max_annotators_reach_base",
                violation_error_message=_("Max annotators must be at least base annotators."),
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
                    tasks_ahead__lte=MOST_AHEAD,
                    qualification_tries__gte=1,
                    gold_window__gte=2,
                    qualification_threshold__range=(-1, 1),
                    gold_threshold__range=(-1, 1),
                    review_unlikely_percent__lte=20,
                    validation_share__range=(0.01, 0.5),
                    spread_share__range=(0, 0.9),
                ),
                name="settings_lie_within_their_bounds",
            ),
            models.CheckConstraint(
                condition=Q(deleted_at=None) | Q(archived_at__isnull=False), name="only_the_archived_are_deleted"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def asks_for_ranking(self, responses: int) -> bool:
        """Says whether so many responses are to be ranked: three or more, in a project that asks for a preference."""
        return self.ask_preference and responses >= FEWEST_RANKED

    def aspects_learnt(self) -> list[Attribute]:
        """Returns what models learn of segments: the rubric's aspects, else the attributes where words are learnt."""
        return self.aspects() or (self.attributes_for() if self.learn_evidence else [])

    def current_guideline(self) -> Guideline | None:
        return self.guidelines.order_by("-version").first()


class Guideline(models.Model):
    """One version of a project's guidelines, in markdown; the newest is in force."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False, related_name="guidelines")
    version = models.PositiveIntegerField(_("version"))
    text = models.TextField(_("text"))
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("guideline")
        verbose_name_plural = _("guidelines")
        ordering = ["-version"]
        constraints = [
            models.UniqueConstraint(fields=["project", "version"], name="guideline_version_once_per_project")
        ]

    def __str__(self) -> str:
        return f"version {self.version}"
