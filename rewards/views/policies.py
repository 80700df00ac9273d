"""Policies under the tab Models, for managers: their runs and states, the start of a run, and the page of a policy."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotator import access
from annotator.access import user_of
from annotator.db.clock import database_now
from annotator.models import Project
from annotator.refusals import Refusal
from annotator.web.acting import show_refusal
from annotator.web.query_parameters import number_in
from rewards import learning_material, reasons, runs
from rewards.models import ACTIVE_STATES, Policy, TrainingRun
from rewards.policies import downloads, offers, policy_report, policy_runs, registry
from rewards.policies.bases import bases
from rewards.views.policy_form import PolicyForm
from rewards.views.run_lists import outcome_of, page_of, state_of


@require_GET
def policies(request: HttpRequest, slug: str) -> HttpResponse:
    """Shows a project's policies and the runs that made them."""
    project = access.managed_project(user_of(request), slug)
    rows = Policy.objects.filter(project=project).select_related("run").defer("manifest", "run__log", "run__metrics")
    policy_runs_of_project = TrainingRun.objects.of_policies().filter(project=project).select_related("policy")
    short = policy_runs_of_project.defer("metrics", "losses", "log", "policy__manifest").order_by("-pk")
    page = {
        "project": project,
        "has_bases": bool(bases()),
        "active": TrainingRun.objects.filter(project=project, state__in=ACTIVE_STATES).first(),
        "hindrance": runs.why_not_now(project),
        "has_champion": project.reward_models.filter(is_champion=True).exists(),
        **page_of("policies", rows.order_by("-pk"), number_in(request.GET, "policies")),
        **page_of("runs", short, number_in(request.GET, "runs")),
    }
    page["policy_rows"] = [
        {"policy": row, "state": policy_report.state_of(row), "win_rate": policy_report.win_rate(row)}
        for row in page["policies"]
    ]
    page["run_rows"] = [
        {"run": run, "state": state_of(run), "outcome": outcome_of(run), "policy": policy_of(run)}
        for run in page["runs"]
    ]
    return render(request, "workspace/policies.html", page)


def policy_of(run: TrainingRun) -> Policy | None:
    """Returns the policy that the run has made; None before it has."""
    policy: Policy | None = getattr(run, "policy", None)
    return policy


@require_http_methods(["GET", "POST"])
def start_policy_run(request: HttpRequest, slug: str) -> HttpResponse:
    """Shows what a policy run would learn from and the form of its settings; a POST starts it."""
    user = user_of(request)
    project = access.managed_project(user, slug)
    form = PolicyForm(project, request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            run = policy_runs.request(
                project, reason=reasons.coded("in_workspace"), config=form.config(), snapshot=form.snapshot(), by=user
            )
        except Refusal as refused:
            form.refuse(refused)
        else:
            messages.success(request, _("Run %(run)s is queued.") % {"run": run.pk})
            return redirect("run", slug, run.pk)
    page = {
        "project": project,
        "form": form,
        "material": learning_material.material(project),
        "has_bases": bool(bases()),
        "has_champion": project.reward_models.filter(is_champion=True).exists(),
        "hindrance": "" if form.is_bound else runs.why_not_now(project),
    }
    return render(request, "workspace/start_policy_run.html", page, status=422 if form.is_bound else 200)


@require_GET
def policy(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Shows a policy: how it was judged, where it comes from, and what may be done with it."""
    row = _policy(access.managed_project(user_of(request), slug), pk)
    page = {
        "project": row.project,
        "policy": row,
        "run": row.run,
        "snapshot": row.run.snapshot,
        "state": policy_report.state_of(row),
        "reason": reasons.in_words(row.reason),
        "figures": list(policy_report.figures(row)),
        "origin": policy_report.origin(row),
        **_files(row),
    }
    return render(request, "workspace/policy.html", page)


def _policy(project: Project, pk: int) -> Policy:
    rows = Policy.objects.filter(project=project).select_related("run__snapshot", "judge")
    row = get_object_or_404(rows.defer("run__log", "run__losses", "judge__manifest"), pk=pk)
    row.project = project
    return row


def _files(row: Policy) -> dict[str, Any]:
    try:
        files = downloads.files_of(row)
    except Refusal as refused:
        return {"files_refused": str(refused)}
    return {"files": files, "files_size": sum(file.size for file in files)}


@require_POST
def offer_policy(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Offers a policy by hand, which needs the tick in `confirm`."""
    row = _policy(access.managed_project(user_of(request), slug), pk)
    with show_refusal(request):
        offers.offer(row, confirmed="confirm" in request.POST, now=database_now())
        messages.success(request, _("Policy %(version)s is offered now.") % {"version": row.version})
    return redirect("policy", slug, row.pk)


@require_POST
def verify_policy(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Hashes the policy's files again and shows which ones have changed."""
    row = _policy(access.managed_project(user_of(request), slug), pk)
    problems = registry.verify(row)
    for problem in problems:
        messages.error(request, problem)
    if not problems:
        messages.success(request, _("The policy's files are unchanged since they were written."))
    return redirect("policy", slug, row.pk)


@require_GET
def policy_file(request: HttpRequest, slug: str, pk: int, path: str) -> HttpResponseBase:
    """Sends one file of a policy, or the part of it that a browser still lacks."""
    row = _policy(access.managed_project(user_of(request), slug), pk)
    return _sent(request, row, lambda: downloads.sent_file(request, row, path))


@require_GET
def policy_archive(request: HttpRequest, slug: str, pk: int) -> HttpResponseBase:
    """Sends a policy's files as a tar file."""
    row = _policy(access.managed_project(user_of(request), slug), pk)
    return _sent(request, row, lambda: downloads.sent_archive(request, row))


def _sent(request: HttpRequest, row: Policy, send: Callable[[], HttpResponseBase]) -> HttpResponseBase:
    with show_refusal(request):
        return send()
    return redirect("policy", row.project.slug, row.pk)
