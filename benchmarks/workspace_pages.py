"""The addresses of a project's workspace, of the admin and of REST's lists, and how many queries one of them needs.

Each filter of the list of tasks is there by itself. The project is the one of `workspace_project`.
"""

from typing import TYPE_CHECKING

from benchmarks.workspace_rows import RARE_LANGUAGE, RARE_MODEL, RARE_WORD

if TYPE_CHECKING:
    from annotator.models import Project, Task, User

MANAGER, REVIEWER, ANNOTATOR, STAFF = "manager", "reviewer", "annotator-1", "staff"
READERS = (MANAGER, REVIEWER, ANNOTATOR, STAFF)
FILTERS = f"""
q={RARE_WORD} q=the q=%22the+of%22 q=the+-and q=of+the&state=quarantined state=open state=complete state=quarantined
state=retired language=en language={RARE_LANGUAGE} label=labelled label=dropped label=none spread=1 spread=4
state=open&label=labelled
""".split()
"""Filters of the list of tasks that reviewers have too."""
FILTERS_OF_MANAGERS = f"""
model=model-3 model={RARE_MODEL} reward_from=0 reward_from=3.7 reward_to=0.01 reward_from=100
state=open&reward_to=0.01
""".split()
OF_ANNOTATORS = "guidelines/ history/ qualification/ annotate/"
OF_REVIEWERS = """
guidelines/ data/ data/export/ review/ review/submissions/ agreement/ annotators/ models/ models/ranking/ comparison/
evaluation-jobs/ qualification/ annotators/?page=2 agreement/?by=kappa agreement/?with={pseudonym}
data/?source={newest_import} data/?source={first_import} data/?after={middle} data/?state=complete&after={middle}
data/export/?since=2024-01-01 data/export/?state=complete&language=en data/export/?source={first_import}
data/export/?language={language}
models/{version}/ models/{older}/ models/?runs={failed}&versions={older} comparison/?of={evaluation}
models/runs/{run}/ models/runs/{run}/live/ models/runs/{run}/losses/
models/runs/{failed}/ models/runs/{failed}/live/ models/runs/{failed}/losses/
review/?because=dropped review/?because=safety review/?because=quarantine review/?because=unlikely
review/?after={waiting_spread}.{waiting} review/{disputed}/
review/submissions/?verdict=all review/submissions/?verdict=accepted review/submissions/?verdict=rejected
review/submissions/?annotator={pseudonym} review/submissions/?annotator={pseudonym}&verdict=rejected
"""
OF_MANAGERS = """
settings/ settings/delete/ settings/webhooks/ settings/webhooks/{webhook}/ settings/webhooks/{webhook}/log/
guidelines/edit/ guidelines/versions/ guidelines/versions/?version=3 rubric/ data/quarantine/
data/quarantine/{quarantined}/ people/ people/?name=idle people/?role=annotator&state=unread people/?state=excluded
people/?after=idle-120 people/annotator-1/ people/annotator-1/exclude/ people/{excluded}/ people/{excluded}/readmit/
people/idle-1/ exclusions/ invitations/ data/change/?tasks=all&action=uphold&state=quarantined data/changes/
data/edits/ data/export/files/ data/releases/ data/releases/list/ data/import/ data/imports/
data/imports/{newest_job}/ data/imports/{older_job}/ data/import/{newest_job_import}/take-back/
data/import/{older_job_import}/take-back/ models/runs/start/ models/policies/ models/policies/start/
models/policies/{policy}/ models/runs/{policy_run}/
"""
REST_OF_MEMBERS = ("", "rubric/", "guidelines/")
REST_OF_REVIEWERS = f"""
tasks/ tasks/?q={RARE_WORD} tasks/?state=quarantined annotations/ agreement/ review/ comparison/ model-ranking/
annotators/ training-runs/ evaluation-jobs/ snapshots/
""".split()
REST_OF_MANAGERS = """
policy-runs/ releases/ members/ invitations/ webhooks/ imports/ import-jobs/ import-mappings/ export-jobs/ edits/
bulk-changes/ exclusions/ audit/
"""


def all_addresses(project: "Project", name: str) -> list[str]:
    """Returns the pages and REST's lists for somebody of the project; for STAFF, the pages of the admin."""
    return _of_the_admin() if name == STAFF else addresses(project, name) + _of_rest(project, name)


def addresses(project: "Project", name: str) -> list[str]:
    """Returns the pages that somebody of the project can open; what only downloads a file is left out."""
    from annotator.outputs.exporting.layouts import LAYOUTS

    managed, of_everybody = name == MANAGER, ["/", "/mine/"]
    if name == ANNOTATOR:
        paths = OF_ANNOTATORS.split()
    else:
        facts, tasks = _facts(project), [task.public_id for task in _tasks(project)]
        paths = ["", *OF_REVIEWERS.format(**facts).split()]
        paths += [f"data/?{chosen}" for chosen in (*FILTERS, *(FILTERS_OF_MANAGERS if managed else ()))]
        paths += [f"{place}/{task}/" for place in ("data/tasks", "review") for task in tasks]
        layouts = {name: one for name, one in LAYOUTS.items() if managed or not one.for_managers}
        paths += [f"data/export/?layout={name}" for name, one in layouts.items() if not one.of_segments]
        paths += OF_MANAGERS.format(**facts).split() if managed else [f"people/{facts['pseudonym']}/"]
        of_everybody += ["/new-project/"] if managed else []
    return [*of_everybody, *(f"/projects/{project.slug}/{path}" for path in paths)]


def _facts(project: "Project") -> dict[str, object]:
    """Returns what the addresses name."""
    from annotator.models import Import, Pseudonym

    imports = Import.objects.filter(project=project).order_by("pk").values_list("pk", flat=True)
    jobs = project.import_jobs.order_by("-pk")
    version, older = project.reward_models.order_by("-pk")[:2]
    waiting = list(project.tasks.disputed()[:100])
    policy = project.policies.order_by("-pk")[0]
    return {
        "first_import": imports[0],
        "newest_import": imports.reverse()[0],
        "middle": project.tasks.order_by("-pk")[0].pk // 2,
        "language": RARE_LANGUAGE,
        "version": version.pk,
        "older": older.pk,
        "run": version.run.pk,
        "failed": project.training_runs.filter(state="failed").order_by("-pk")[0].pk,
        "evaluation": version.evaluations.order_by("-pk")[0].pk,
        "waiting": waiting[-1].pk,
        "waiting_spread": waiting[-1].review_spread,
        "disputed": waiting[0].public_id,
        "pseudonym": Pseudonym.objects.get(project=project, user__username=ANNOTATOR).name,
        "quarantined": project.tasks.filter(state="quarantined").order_by("pk")[0].public_id,
        "excluded": project.exclusions.get().annotator.username,
        "webhook": project.webhooks.order_by("pk")[0].pk,
        "newest_job": jobs[0].pk,
        "older_job": jobs[1].pk,
        "newest_job_import": jobs[0].import_row_id,
        "older_job_import": jobs[1].import_row_id,
        "policy": policy.pk,
        "policy_run": policy.run_id,
    }


def _tasks(project: "Project") -> "list[Task]":
    """Returns a task of each kind: agreed on, with many ratings, settled by a reviewer, dropped, and open."""
    complete = project.tasks.filter(state="complete").order_by("-pk")
    kinds = (
        complete.filter(review_reason="", adjudicated=False),
        complete.filter(slots_wanted=5),
        complete.filter(adjudicated=True),
        complete.filter(review_reason="dropped"),
        project.tasks.filter(state="open").order_by("-pk"),
    )
    return [kind[0] for kind in kinds]


def _of_rest(project: "Project", name: str) -> list[str]:
    """Returns the addresses of lists and single rows."""
    newest, imported = project.tasks.order_by("-pk")[0], project.import_jobs.order_by("-pk")[0]
    of_project, paths = list(REST_OF_MEMBERS), ["me/", "tokens/", "projects/", "rubrics/"]
    if name != ANNOTATOR:
        of_project += REST_OF_REVIEWERS
        paths += ["reward-models/", "evaluations/", "policies/", f"review/{newest.public_id}/"]
    if name == MANAGER:
        of_project += [*REST_OF_MANAGERS.split(), f"import-jobs/{imported.pk}/"]
    return [f"/api/v1/{path}" for path in (*paths, *(f"projects/{project.slug}/{part}" for part in of_project))]


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
