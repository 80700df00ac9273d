"""The admin's opening page: progress, agreement, champions and workers of the projects that the user manages."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy
from django.utils.translation import gettext as _

from annotator.access import reviewed_projects, user_of
from annotator.agreement import Agreement, kappas
from annotator.background.backlogs import backlogs
from annotator.db.clock import database_now
from annotator.launch.health import readiness
from annotator.models import Assignment, BackgroundFailure, Membership, Project, User
from annotator.projects import figures
from annotator.views.navigation import Entry, pages_of, places_of
from rewards import learning_curve, reasons, scoring, snapshots
from rewards.admin import installation
from rewards.models import RewardModel, TrainingRun

PROJECTS_SHOWN = 10
PROJECTS_IN_SIDEBAR = 3
"""The newest; the others are reached from *Your projects*."""


@dataclass(frozen=True)
class Measured:
    """The metrics of one attribute on held-out prompts."""

    attribute: str
    metrics: dict[str, Any]


@dataclass(frozen=True)
class Headline:
    """A model's key figures on held-out prompts: by labelled attribute, and its accuracy on pairs if there are any."""

    rows: list[Measured]
    pairs: dict[str, Any]

    def __bool__(self) -> bool:
        return bool(self.rows or self.pairs)


@dataclass(frozen=True)
class Standing:
    """How far a project is: its tasks, who is at work, its model and its last run."""

    project: Any
    at_work: int
    champion: RewardModel | None
    run: TrainingRun | None


@dataclass(frozen=True)
class Card(Standing):
    """A project as the opening page shows it whole.

    `kappas` holds for each attribute the agreement of the first three annotators, of all, and of those kept.
    """

    kappas: list[tuple[str, list[Agreement]]]
    headline: Headline | None
    scoring: scoring.Position | None
    reason: str
    outlook: str
    paused: list[Membership]
    has_answers: bool


def context(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Adds what the opening page shows to its context; the theme calls it for the admin's index."""
    managed = Project.objects.managed_by(user_of(request)).in_use().select_related("rubric", "figures").order_by("-pk")
    standings = _standings(list(managed[:PROJECTS_SHOWN]))
    # The newest alone is shown whole, as that takes half of the queries of this page.
    context["card"] = _card(standings[0]) if standings else None
    context["others"] = standings[1:]
    context["health"] = health = readiness()
    of_all = None
    if user_of(request).is_superuser:
        context["installation"] = of_all = installation.installation(health.workers)
    context["backlogs"] = (of_all.backlogs if of_all else backlogs()).in_words()
    context["failures"] = failures_seen_by(user_of(request))
    return context


def failures_seen_by(user: User) -> QuerySet[BackgroundFailure]:
    """Returns the failures in the projects that the user manages; administrators see all, the installation's too."""
    failures = BackgroundFailure.objects.select_related("project").order_by("-last_at")
    return failures if user.is_superuser else failures.filter(project__in=Project.objects.managed_by(user))


def _standings(projects: Sequence[Any]) -> list[Standing]:
    """Returns how far each of the projects is, by a query for all of them of each kind."""
    champions = RewardModel.objects.filter(project__in=projects, is_champion=True).select_related("run", "project")
    runs = TrainingRun.objects.of_rewards().filter(project__in=projects).defer("metrics", "losses", "log", "config")
    leased = Assignment.objects.leased().filter(task__project__in=projects).order_by().values_list("task__project")
    champion_of = {model.project_id: model for model in champions}
    figures.add_progress(projects, now=database_now())
    run_of = {run.project_id: run for run in runs.order_by("project_id", "-pk").distinct("project_id")}
    at_work = dict(leased.annotate(number=Count("annotator", distinct=True)))
    return [
        Standing(
            project=project,
            at_work=at_work.get(project.pk, 0),
            champion=champion_of.get(project.pk),
            run=run_of.get(project.pk),
        )
        for project in projects
    ]


def _card(standing: Standing) -> Card:
    project, champion, run = standing.project, standing.champion, standing.run
    measured = list(kappas(project, now=database_now()).values())
    names = {attribute.key: attribute.shown_name for attribute in project.every_attribute()}
    outlook = learning_curve.summary(champion.run.metrics) if champion else None
    return Card(
        **vars(standing),
        kappas=[(name, [report[key] for report in measured]) for key, name in names.items() if key in measured[0]],
        headline=_headline(champion) if champion else None,
        scoring=scoring.position(champion) if champion else None,
        reason=reasons.in_words(run.reason) if run else "",
        outlook=outlook.sentence if outlook else "",
        has_answers=snapshots.has_answers(project),
        paused=list(project.memberships.filter(paused_at__isnull=False).select_related("user")),
    )


def _headline(champion: RewardModel) -> Headline | None:
    evaluation = champion.evaluations.filter(name="validation").order_by("-pk").first()
    return headline(evaluation.metrics, champion.attributes) if evaluation else None


def headline(metrics: dict[str, Any], attributes: list[str]) -> Headline:
    """Returns the headline figures of an evaluation in the given order of the attributes."""
    # In the rubric's order: JSONB sorts its keys in an order of its own.
    by_attribute, pairs = metrics.get("attributes", {}), metrics.get("pairwise", {})
    known = [key for key in attributes if by_attribute.get(key, {}).get("rmse") is not None]
    return Headline([Measured(key, by_attribute[key]) for key in known], pairs if pairs.get("pairs") else {})


def mark(request: HttpRequest) -> str:
    """Returns the address of the logo, for the theme's settings."""
    return static("img/mark.svg")


def variables(request: HttpRequest) -> str:
    """Returns the address of the colours and fonts, for the theme's settings."""
    return static("css/variables.css")


def style(request: HttpRequest) -> str:
    """Returns the address of the admin's style sheet, for the theme's settings."""
    return static("css/admin.css")


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Returns the sidebar: the places and pages that the navigation of other pages has, then the admin's lists."""
    user = user_of(request)
    managed = Exists(Project.objects.managed_by(user).filter(pk=OuterRef("pk")))
    newest = reviewed_projects(user).filter(archived_at=None).annotate(manages=managed).order_by("-pk")
    of_projects = [
        _group(project.name, map(_entry, pages_of(project, manages=project.manages)))
        for project in newest[:PROJECTS_IN_SIDEBAR]
    ]
    of_all = [_of_administrators()] if user.is_superuser else []
    return [_group("", map(_entry, places_of(user))), *of_projects, *_rows(), *of_all]


def _link(title: str, icon: str, name: str) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse_lazy(name)}


def _of_administrators() -> dict[str, Any]:
    """Returns the links to what concerns the installation as a whole."""
    links = [
        _link(_("Accounts"), "manage_accounts", "admin:annotator_user_changelist"),
        _link(_("Tokens"), "key", "admin:annotator_token_changelist"),
        _link(_("Invitations"), "mail", "admin:annotator_invitation_changelist"),
        _link(_("Webhooks"), "webhook", "admin:annotator_webhook_changelist"),
    ]
    return _group(_("Installation"), links)


def _rows() -> list[dict[str, Any]]:
    """Returns the links to the admin's lists, in the order of the loop."""
    people = [
        _link(_("Projects"), "folder", "admin:annotator_project_changelist"),
        _link(_("Tasks"), "list_alt", "admin:annotator_task_changelist"),
        _link(_("Annotations"), "rate_review", "admin:annotator_annotation_changelist"),
        _link(_("Gold tasks"), "verified", "admin:annotator_gold_changelist"),
        _link(_("People"), "group", "admin:annotator_membership_changelist"),
        _link(_("Exclusions"), "person_off", "admin:annotator_exclusion_changelist"),
        _link(_("Audit"), "history", "admin:annotator_auditentry_changelist"),
    ]
    models = [
        _link(_("Snapshots"), "photo_camera", "admin:rewards_snapshot_changelist"),
        _link(_("Training runs"), "model_training", "admin:rewards_trainingrun_changelist"),
        _link(_("Reward models"), "emoji_events", "admin:rewards_rewardmodel_changelist"),
        _link(_("Policies"), "forum", "admin:rewards_policy_changelist"),
        _link(_("Scores"), "leaderboard", "admin:rewards_score_changelist"),
    ]
    return [_group(_("Rating work"), people), _group(_("Reward models"), models)]


def _group(title: str, items: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"title": title, "separator": bool(title), "items": list(items)}


def _entry(entry: Entry) -> dict[str, Any]:
    # The theme marks entries whose address the page's begins with, and every address begins with home's.
    known = {} if entry.name == "admin:index" else {"active": False}
    return {"title": entry.title, "icon": entry.icon, "link": entry.address, **known}
