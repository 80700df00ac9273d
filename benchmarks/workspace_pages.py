"""The addresses of a project's workspace, of the admin and of REST's lists, and how many queries one of them needs.

Each filter of the list of tasks is there by itself. The project is the one of `workspace_project`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from benchmarks.workspace_rows import RARE_LANGUAGE, RARE_MODEL, RARE_WORD

if TYPE_CHECKING:
    from annotator.models import Project, Task, User

MANAGER, REVIEWER, ANNOTATOR, STAFF = "manager", "reviewer", "annotator-1", "staff"
READERS = (MANAGER, REVIEWER, ANNOTATOR, STAFF)

FILTERS: tuple[dict[str, str], ...] = (
    {"q": RARE_WORD},
    {"q": "the"},
    {"q": '"the of"'},
    {"q": "the -and"},
    {"q": "of the", "state": "quarantined"},
    {"state": "open"},
    {"state": "complete"},
    {"state": "quarantined"},
    {"state": "retired"},
    {"language": "en"},
    {"language": RARE_LANGUAGE},
    {"label": "labelled"},
    {"label": "dropped"},
    {"label": "none"},
    {"spread": "1"},
    {"spread": "4"},
    {"state": "open", "label": "labelled"},
)
"""Filters of the list of tasks that reviewers have too."""
FILTERS_OF_MANAGERS: tuple[dict[str, str], ...] = (
    {"model": "model-3"},
    {"model": RARE_MODEL},
    {"reward_from": "0"},
    {"reward_from": "3.7"},
    {"reward_to": "0.01"},
    {"reward_from": "100"},
    {"state": "open", "reward_to": "0.01"},
)


def all_addresses(project: "Project", name: str) -> list[str]:
    """Returns the pages and REST's lists for somebody of the project; for STAFF, the pages of the admin."""
    return _of_the_admin() if name == STAFF else addresses(project, name) + _of_rest(project, name)


def addresses(project: "Project", name: str) -> list[str]:
    """Returns the pages that somebody of the project can open; what only downloads a file is left out."""
    managed = name == MANAGER
    if name == ANNOTATOR:
        return [*("/", "/mine/"), *_in(project, "guidelines/", "history/", "qualification/", "annotate/")]
    pages = ["/", "/mine/", *(["/new-project/"] if managed else [])]
    pages += _in(project, "", "guidelines/", "data/", "data/export/", "review/", "review/submissions/", "agreement/")
    pages += _in(
        project, "annotators/", "models/", "models/ranking/", "comparison/", "evaluation-jobs/", "qualification/"
    )
    pages += _in(
        project, *(f"data/?{urlencode(chosen)}" for chosen in (*FILTERS, *(FILTERS_OF_MANAGERS if managed else ())))
    )
    pages += _of_tasks(project, managed=managed)
    pages += _of_models(project)
    pages += _of_reviews(project)
    return pages + (_of_managers(project) if managed else _in(project, f"people/{_pseudonym(project)}/"))


def _in(project: "Project", *paths: str) -> list[str]:
    return [f"/projects/{project.slug}/{path}" for path in paths]


def _of_tasks(project: "Project", *, managed: bool) -> list[str]:
    from annotator.exporting.layouts import LAYOUTS
    from annotator.models import Import

    newest = project.tasks.order_by("-pk").values_list("pk", flat=True)[0]
    imports = list(Import.objects.filter(project=project).order_by("pk").values_list("pk", flat=True))
    paths = [f"data/?source={imports[-1]}", f"data/?source={imports[0]}"]
    paths += [f"data/?after={newest // 2}", f"data/?state=complete&after={newest // 2}"]
    paths += [f"data/tasks/{task.public_id}/" for task in _tasks(project)]
    layouts = [
        name for name, layout in LAYOUTS.items() if (managed or not layout.for_managers) and not layout.of_segments
    ]
    paths += [f"data/export/?layout={name}" for name in layouts]
    parts = ("since=2024-01-01", "state=complete&language=en", f"language={RARE_LANGUAGE}", f"source={imports[0]}")
    return _in(project, *paths, *(f"data/export/?{part}" for part in parts))


def _tasks(project: "Project") -> "Iterator[Task]":
    """Yields a task of each kind: agreed on, with many ratings, settled by a reviewer, dropped, and open."""
    complete = project.tasks.filter(state="complete").order_by("-pk")
    kinds = (
        complete.filter(review_reason="", adjudicated=False),
        complete.filter(slots_wanted=5),
        complete.filter(adjudicated=True),
        complete.filter(review_reason="dropped"),
        project.tasks.filter(state="open").order_by("-pk"),
    )
    for kind in kinds:
        yield kind[0]


def _of_models(project: "Project") -> list[str]:
    versions = list(project.reward_models.order_by("-pk")[:2])
    failed = project.training_runs.filter(state="failed").order_by("-pk")[0]
    paths = [f"models/{version.pk}/" for version in versions]
    for run in (versions[0].run, failed):
        paths += [f"models/runs/{run.pk}/{part}" for part in ("", "live/", "losses/")]
    evaluation = versions[0].evaluations.order_by("-pk")[0]
    paths += [f"models/?runs={failed.pk}&versions={versions[1].pk}", f"comparison/?of={evaluation.pk}"]
    return _in(project, *paths)


def _of_reviews(project: "Project") -> list[str]:
    paths = [f"review/?because={kind}" for kind in ("dropped", "safety", "quarantine", "unlikely")]
    waiting = list(project.tasks.disputed()[:100])
    paths += [f"review/?after={waiting[-1].review_spread}.{waiting[-1].pk}", "agreement/?by=kappa"]
    paths += [f"review/{task.public_id}/" for task in (waiting[0], *_tasks(project))]
    who = _pseudonym(project)
    paths += [f"review/submissions/?verdict={verdict}" for verdict in ("all", "accepted", "rejected")]
    paths += [f"review/submissions/?annotator={who}", f"review/submissions/?annotator={who}&verdict=rejected"]
    return _in(project, *paths, f"agreement/?with={who}", "annotators/?page=2")


def _pseudonym(project: "Project") -> str:
    from annotator.models import Pseudonym

    return Pseudonym.objects.get(project=project, user__username=ANNOTATOR).name


def _of_managers(project: "Project") -> list[str]:
    quarantined = project.tasks.filter(state="quarantined").order_by("pk")[0]
    excluded = project.exclusions.get().annotator.username
    jobs = list(project.import_jobs.order_by("-pk")[:2])
    webhook, policy = project.webhooks.order_by("pk")[0], project.policies.order_by("-pk")[0]
    paths = [
        "settings/",
        "settings/delete/",
        "settings/webhooks/",
        f"settings/webhooks/{webhook.pk}/",
        f"settings/webhooks/{webhook.pk}/log/",
        "guidelines/edit/",
        "guidelines/versions/",
        "guidelines/versions/?version=3",
        "rubric/",
        "data/quarantine/",
        f"data/quarantine/{quarantined.public_id}/",
        "people/",
        "people/?name=idle",
        "people/?role=annotator&state=unread",
        "people/?state=excluded",
        "people/?after=idle-120",
        f"people/{ANNOTATOR}/",
        f"people/{ANNOTATOR}/exclude/",
        f"people/{excluded}/",
        f"people/{excluded}/readmit/",
        "people/idle-1/",
        "exclusions/",
        "invitations/",
        "data/change/?tasks=all&action=uphold&state=quarantined",
        "data/changes/",
        "data/edits/",
        "data/export/files/",
        "data/releases/",
        "data/releases/list/",
        "data/import/",
        "data/imports/",
        *(f"data/imports/{job.pk}/" for job in jobs),
        f"data/import/{jobs[0].import_row_id}/take-back/",
        f"data/import/{jobs[1].import_row_id}/take-back/",
        "models/runs/start/",
        "models/policies/",
        "models/policies/start/",
        f"models/policies/{policy.pk}/",
        f"models/runs/{policy.run_id}/",
    ]
    return _in(project, *paths)


def _of_rest(project: "Project", name: str) -> list[str]:
    """Returns the addresses of lists and single rows, and those of the pages behind the first ones."""
    newest, imported = project.tasks.order_by("-pk")[0], project.import_jobs.order_by("-pk")[0]
    paths = ["me/", "tokens/", "projects/", "rubrics/", *(f"projects/{project.slug}/{part}" for part in _FOR_MEMBERS)]
    if name == ANNOTATOR:
        return [f"/api/v1/{path}" for path in paths]
    lists = [f"projects/{project.slug}/{part}" for part in _FOR_REVIEWERS]
    lists += ["reward-models/", "evaluations/", "policies/", f"review/{newest.public_id}/"]
    if name == MANAGER:
        lists += [f"projects/{project.slug}/{part}" for part in _FOR_MANAGERS]
        lists.append(f"projects/{project.slug}/import-jobs/{imported.pk}/")
    return [f"/api/v1/{path}" for path in paths + lists]


_FOR_MEMBERS = ("", "rubric/", "guidelines/")
_FOR_REVIEWERS = (
    "tasks/",
    f"tasks/?q={RARE_WORD}",
    "tasks/?state=quarantined",
    "annotations/",
    "agreement/",
    "review/",
    "comparison/",
    "model-ranking/",
    "annotators/",
    "training-runs/",
    "evaluation-jobs/",
    "snapshots/",
)
_FOR_MANAGERS = (
    "policy-runs/",
    "releases/",
    "members/",
    "invitations/",
    "webhooks/",
    "imports/",
    "import-jobs/",
    "import-mappings/",
    "export-jobs/",
    "edits/",
    "bulk-changes/",
    "exclusions/",
    "audit/",
)


def _of_the_admin() -> list[str]:
    """Returns each list of the admin, its search and its last page, and the page of a row."""
    from django.contrib import admin
    from django.urls import reverse

    pages = [reverse("admin:index")]
    for model, shown in admin.site._registry.items():
        place = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        pages.append(reverse(f"{place}_changelist"))
        pages += [f"{pages[-1]}?q=idle"] if shown.search_fields else []
        rows = model._default_manager.count()
        pages += [f"{pages[-1].partition('?')[0]}?p={-(-rows // shown.list_per_page)}"] if rows else []
        newest = model._default_manager.order_by("-pk").first()
        pages += [reverse(f"{place}_change", args=[newest.pk])] if newest else []
    return pages


def queries(user: "User", address: str) -> tuple[int, int]:
    """Asks for a page in this process; returns the status and the number of queries."""
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(user)
    with CaptureQueriesContext(connection) as captured:
        status = client.get(address).status_code
    return status, len(captured)
