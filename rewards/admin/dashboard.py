"""The admin's opening page: the installation, and how far each of the projects is that the user manages."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, F, OuterRef
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy
from django.utils.translation import gettext as _

from annotator.analysis import figures
from annotator.infrastructure.background.backlogs import backlogs
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.health import readiness
from annotator.models import Assignment, BackgroundFailure, Project
from annotator.pages.navigation import Entry, pages_of, places_of
from annotator.reading.access import reviewed_projects, user_of
from rewards.admin import installation
from rewards.models import RewardModel, TrainingRun

PROJECTS_IN_SIDEBAR = 3
"""The newest; the opening page lists all."""


@dataclass(frozen=True)
class Standing:
    """How far a project is: its tasks, who is at work, its model and its last run."""

    project: Any
    at_work: int
    champion: RewardModel | None
    run: TrainingRun | None


def context(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Adds what the opening page shows to its context; the theme calls it for the admin's index."""
    managed = Project.objects.managed_by(user_of(request)).standing().select_related("rubric")
    projects = list(managed.order_by(F("archived_at").desc(nulls_first=True), "-pk"))
    champions = RewardModel.objects.filter(project__in=projects, is_champion=True).select_related("run", "project")
    runs = TrainingRun.objects.of_rewards().filter(project__in=projects).defer("metrics", "losses", "log", "config")
    leased = Assignment.objects.leased().filter(task__project__in=projects).order_by().values_list("task__project")
    champion_of = {model.project_id: model for model in champions}
    figures.add_progress(projects, now=database_now())
    run_of = {run.project_id: run for run in runs.order_by("project_id", "-pk").distinct("project_id")}
    at_work = dict(leased.annotate(number=Count("annotator", distinct=True)))
    context["projects"] = [
        Standing(
            project=project,
            at_work=at_work.get(project.pk, 0),
            champion=champion_of.get(project.pk),
            run=run_of.get(project.pk),
        )
        for project in projects
    ]
    context["health"] = health = readiness()
    of_all = None
    if user_of(request).is_superuser:
        context["installation"] = of_all = installation.installation(health.workers)
    context["backlogs"] = (of_all.backlogs if of_all else backlogs()).in_words()
    user = user_of(request)
    failures = BackgroundFailure.objects.select_related("project").order_by("-last_at")
    context["failures"] = (
        failures if user.is_superuser else failures.filter(project__in=Project.objects.managed_by(user))
    )
    return context


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
    installation = [
        _link(_("Accounts"), "manage_accounts", "admin:annotator_user_changelist"),
        _link(_("Tokens"), "key", "admin:annotator_token_changelist"),
        _link(_("Invitations"), "mail", "admin:annotator_invitation_changelist"),
        _link(_("Webhooks"), "webhook", "admin:annotator_webhook_changelist"),
    ]
    return [
        _group("", map(_entry, places_of(user))),
        *of_projects,
        _group(_("Rating work"), people),
        _group(_("Reward models"), models),
        *([_group(_("Installation"), installation)] if user.is_superuser else []),
    ]


def _link(title: str, icon: str, name: str) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse_lazy(name)}


def _group(title: str, items: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"title": title, "separator": bool(title), "items": list(items)}


def _entry(entry: Entry) -> dict[str, Any]:
    # The theme marks entries whose address the page's begins with, and every address begins with home's.
    known = {} if entry.name == "admin:index" else {"active": False}
    return {"title": entry.title, "icon": entry.icon, "link": entry.address, **known}
