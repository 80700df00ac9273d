"""The tab Models: runs and versions at a glance, the start of a run, and the pages of a run and of a version."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import redis
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage.hidden_paths import value_without_places
from annotator.infrastructure.web.acting import show_refusal
from annotator.infrastructure.web.middleware import HtmxRequest
from annotator.infrastructure.web.query_parameters import number_in
from annotator.models import Project, User
from annotator.reading import access
from annotator.reading.access import user_of
from rewards import reasons, scoring
from rewards.evaluation.evaluation import VALIDATION
from rewards.models import ACTIVE_STATES, Evaluation, RewardModel, RunKind, RunState, TrainingRun
from rewards.pages import versions
from rewards.pages.run_form import RunForm
from rewards.pages.run_lists import outcome_of, page_of, state_of
from rewards.policies import policy_report
from rewards.registry import registry
from rewards.reports import model_figures, run_progress, run_report
from rewards.runs import new_labels, repeated_runs, runs
from rewards.runs.new_labels import unchanged_since

LOG_SHOWN = 40
"""The last lines of a log that a page shows; the rest is a download."""
QUEUES = {
    "train": gettext_lazy("No training worker is running (queue “train”), so runs cannot start."),
    "score": gettext_lazy("Nobody scores: no worker listens to the queue “score”. New responses get no scores."),
    "light": gettext_lazy("No worker listens to the queue “light”. Labels and counts are not brought up to date."),
}


@require_GET
def models(request: HttpRequest, slug: str) -> HttpResponse:
    """Shows the champion, what waits or works, and the lists of runs and versions."""
    user = user_of(request)
    project = access.reviewed_project(user, slug)
    manages = access.manages(user, project)
    rows = project.reward_models.select_related("run__snapshot").order_by("-pk")
    rows = rows.defer("manifest", "run__metrics", "run__losses", "run__log", "run__config")
    champion = rows.filter(is_champion=True).first()
    metrics = versions.newest_metrics(champion) if champion else {}
    active = TrainingRun.objects.active().filter(project=project).select_related("reward_model").first()
    # Metrics, losses and logs are long, and a list shows none of them.
    of_rewards = TrainingRun.objects.of_rewards().filter(project=project)
    page = {
        "project": project,
        "manages": manages,
        "champion": champion,
        "figures": model_figures.in_words(metrics),
        "measured_on": model_figures.measured_on(metrics),
        "beside_length": model_figures.beside_length(metrics),
        "scoring": scoring.position(champion) if champion else None,
        "before": rows.filter(is_champion=False, promoted_at__isnull=False).order_by("-promoted_at").first(),
        "active": active,
        "waits": bool(active and active.state == RunState.AWAITING_PROMOTION and active.made_model()),
        "state": state_of(active) if active else None,
        "progress": run_progress.progress_of(active, now=database_now()) if active else None,
        "verdict": run_report.in_words(active.verdict) if active else "",
        "silent": _silent_queues(),
        "hindrance": runs.why_not_now(project) if manages and not active else "",
        **page_of(
            "runs",
            of_rewards.defer("metrics", "losses", "log", "config", "reward_model__manifest")
            .order_by("-pk")
            .select_related("reward_model"),
            number_in(request.GET, "runs"),
        ),
        **page_of("versions", rows, number_in(request.GET, "versions")),
    }
    page["run_rows"] = [
        {"run": run, "state": state_of(run), "outcome": outcome_of(run), "model": run.made_model()}
        for run in page["runs"]
    ]
    page["version_rows"] = [
        {"model": model, "state": state_of(model.run), "labels": registry.labels(model)} for model in page["versions"]
    ]
    return render(request, "workspace/models.html", page)


def _silent_queues() -> list[str]:
    """Returns what does not happen for lack of a worker."""
    try:
        health = heartbeats.listening()
    except redis.RedisError:
        return [_("Redis does not answer. Nothing can be started until it does.")]
    silent = [(queue, words) for queue, words in QUEUES.items() if not health[queue].alive]
    return [
        heartbeats.idle_in_words(queue, unfit[0]) if (unfit := health[queue].unfit) else str(words)
        for queue, words in silent
    ]


# The start of a run ----------------------------------------------------------------------------------------


@require_http_methods(["GET", "POST"])
def start_run(request: HttpRequest, slug: str) -> HttpResponse:
    """Shows what a run would learn from and the form of its settings; a POST starts it.

    With the settings of the newest version, since which nothing has been labelled, it starts with the tick in `confirm`
    alone.
    """
    user = user_of(request)
    project = access.managed_project(user, slug)
    form, unchanged = RunForm(project, request.POST if request.method == "POST" else None), unchanged_since(project)
    if form.is_valid():
        try:
            if unchanged and "confirm" not in request.POST:
                repeated_runs.refuse_same_settings(project, unchanged, form.config())
            run = runs.request(project, reason=reasons.coded("in_workspace"), by=user, config=form.config())
        except Refusal as refused:
            form.refuse(refused)
        else:
            messages.success(request, _("Run %(run)s is queued.") % {"run": run.pk})
            return redirect("run", slug, run.pk)
    page = {
        "project": project,
        "form": form,
        "material": new_labels.material(project),
        "hindrance": "" if form.is_bound else runs.why_not_now(project),
        "share": project.validation_share,
        "unchanged": unchanged,
    }
    return render(request, "workspace/start_run.html", page, status=422 if form.is_bound else 200)


# A run -----------------------------------------------------------------------------------------------------


@require_GET
def run(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Shows a run: what it does now, or what came of it."""
    user = user_of(request)
    row = _visible_run(user, slug, pk)
    project = row.project
    if row.kind == RunKind.POLICY:
        return _policy_run(request, row)
    attributes = project.every_attribute()
    page = {
        **_live(row, manages=access.manages(user, project)),
        "metrics": model_figures.in_words(row.metrics.get("candidate") or {}),
        "measured_on": model_figures.measured_on(row.metrics.get("candidate") or {}),
        "beside_length": model_figures.beside_length(row.metrics.get("candidate") or {}),
        "judged_on": run_report.judged_on(row.verdict, row.snapshot.manifest) if row.snapshot else "",
        "labels": row.snapshot.manifest.get("counts", {}) if row.snapshot else {},
        "reason": reasons.in_words(row.reason),
        "in_words": run_report.in_words(row.verdict),
        "evidence": run_report.verdict(row.verdict),
        "winner": run_report.winner(row.metrics),
        "left_out": run_report.left_out(row.metrics.get("data") or {}),
        "held_out": run_report.held_out(row.snapshot.manifest) if row.snapshot else "",
        "table": _table(row, {attribute.key: attribute.shown_name for attribute in attributes}),
        "chart": run_progress.losses_chart(row.losses),
        "outlook": model_figures.summary(row.metrics),
        "outlook_chart": model_figures.figure(row.metrics),
        "fine_tuned_outlook": model_figures.summary(row.metrics, name="fine_tuned_curve"),
        "fine_tuned_chart": model_figures.figure(row.metrics, name="fine_tuned_curve"),
        "settings": sorted(value_without_places(row.config).items()),
    }
    return render(request, "workspace/run.html", page)


@require_GET
def run_live(request: HtmxRequest, slug: str, pk: int) -> HttpResponse:
    """Returns what changes on the page of a run while it works; when the run has ended, the page loads itself again."""
    user = user_of(request)
    row = _visible_run(user, slug, pk)
    page = _live(row, manages=access.manages(user, row.project))
    if request.htmx and not page["works"]:
        return HttpResponse(headers={"HX-Refresh": "true"})
    return render(request, "workspace/_run_live.html", {**page, "polled": True})


@require_GET
def run_losses(request: HtmxRequest, slug: str, pk: int) -> HttpResponse:
    """Returns the chart of the losses so far, which the page of a working run reads again from time to time."""
    row = _visible_run(user_of(request), slug, pk)
    page = {"project": row.project, "run": row, "works": _works(row), "chart": run_progress.losses_chart(row.losses)}
    return render(request, "workspace/_run_losses.html", page)


@require_GET
def run_log(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Sends the log of a run's trainer as a file."""
    row = _visible_run(user_of(request), slug, pk)
    answer = HttpResponse(str(value_without_places(row.log)), content_type="text/plain; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{slug}-run-{row.pk}.log"'
    return answer


def _policy_run(request: HttpRequest, row: TrainingRun) -> HttpResponse:
    """Shows a policy run to a manager: what it does now, or what came of it."""
    policy = row.made_policy()
    page = {
        **_live(row, manages=True),
        "policy": policy,
        "policy_state": policy_report.state_of(policy) if policy else None,
        "policy_reason": reasons.in_words(policy.reason) if policy else "",
        "measured": policy_report.measured(row),
        "left_out": run_report.left_out(row.metrics.get("data") or {}),
        "reason": reasons.in_words(row.reason),
        "chart": run_progress.losses_chart(row.losses),
        "settings": sorted(value_without_places(row.config).items()),
    }
    return render(request, "workspace/policy_run.html", page)


def _visible_run(user: User, slug: str, pk: int) -> TrainingRun:
    """Returns a run for its page; those of policies are for managers only."""
    row = _run(access.reviewed_project(user, slug), pk)
    if row.kind == RunKind.POLICY:
        access.managed_project(user, slug)
    return row


def _run(project: Project, pk: int) -> TrainingRun:
    related = ("snapshot", "reward_model", "policy", "requested_by")
    rows = TrainingRun.objects.filter(project=project).select_related(*related)
    row = get_object_or_404(rows.defer("reward_model__manifest", "policy__manifest"), pk=pk)
    row.project = project
    return row


def _works(row: TrainingRun) -> bool:
    """Returns whether something still happens in the run without anybody's decision."""
    return row.state in ACTIVE_STATES and not (row.state == RunState.AWAITING_PROMOTION and row.made_model())


def _live(row: TrainingRun, *, manages: bool) -> dict[str, Any]:
    """Returns what the changing part of a run's page shows."""
    log = str(value_without_places(row.log)).strip().splitlines()
    now = database_now()
    return {
        "project": row.project,
        "manages": manages,
        "run": row,
        "model": row.made_model(),
        "state": state_of(row),
        "works": _works(row),
        "waits": row.state == RunState.AWAITING_PROMOTION and row.made_model() is not None,
        "ended_badly": row.state in (RunState.FAILED, RunState.CANCELLED),
        "error": value_without_places(row.error),
        "progress": run_progress.progress_of(row, now=now) if row.state in ACTIVE_STATES else None,
        "took": (row.finished_at or now) - row.started_at if row.started_at else None,
        "silent": _silent_queues() if row.state == RunState.QUEUED else [],
        "ahead": _ahead(row),
        "log": "\n".join(line[:400] for line in log[-LOG_SHOWN:]),
        "has_log": bool(log),
    }


def _ahead(row: TrainingRun) -> str:
    """Says which run a queued one waits for. It may be of a project that the reader does not know."""
    ahead = runs.ahead_of(row)
    if ahead is None:
        return ""
    text = _(
        "The worker %(worker)s is busy with run %(run)s of another project. This run starts when a worker is free."
    )
    return text % {"worker": ahead.worker, "run": ahead.pk}


def _table(row: TrainingRun, names: Mapping[str, str]) -> run_report.SideBySide | None:
    """Returns what the run has tried side by side, with the attributes' names for their keys."""
    table = run_report.side_by_side(row.metrics, list(names), champion=_champions_metrics(row.made_model()))
    if table is None:
        return None
    groups = [
        (title, [replace(line, title=names.get(line.title, line.title)) for line in lines])
        for title, lines in table.groups
    ]
    return replace(table, groups=groups)


def _champions_metrics(model: RewardModel | None) -> dict[str, Any] | None:
    """Returns the measures of the champion that the model was judged against, on the same held-out rows."""
    if model is None or model.parent_id is None:
        return None
    hashes = model.evaluations.filter(name=VALIDATION).values("data_hash")
    same = Evaluation.objects.filter(reward_model=model.parent_id, name=VALIDATION, data_hash__in=hashes)
    metrics: dict[str, Any] | None = same.order_by("-pk").values_list("metrics", flat=True).first()
    return metrics


@require_POST
def stop_run(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Cancels an active run."""
    row = _run(access.managed_project(user_of(request), slug), pk)
    said = _("Run %(run)s is cancelled.") % {"run": row.pk}
    with show_refusal(request):
        runs.cancel(row, now=database_now())
        messages.success(request, said)
    return redirect("run", slug, row.pk)


@require_POST
def repeat_run(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Starts a run with the settings of one that failed or was cancelled."""
    user = user_of(request)
    row = _run(access.managed_project(user, slug), pk)
    with show_refusal(request):
        again = runs.retry(row, by=user)
        messages.success(request, _("Run %(run)s is queued.") % {"run": again.pk})
        return redirect("run", slug, again.pk)
    return redirect("run", slug, row.pk)
