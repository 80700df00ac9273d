"""Policies under the tab Models, for managers: their runs and states, the start of a run, and the page of a policy."""

import dataclasses
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.forms import BoundField
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web.acting import show_refusal
from annotator.infrastructure.web.query_parameters import number_in
from annotator.models import Project
from annotator.reading import access
from annotator.reading.access import user_of
from rewards import reasons
from rewards.learning.aligning.align_config import (
    ALIGNING_BOUNDS,
    DPO,
    DPO_1D,
    DPO_2D,
    IDENTITY,
    INVERTED,
    SFT,
    STEERLM,
    AlignConfig,
)
from rewards.models import ACTIVE_STATES, Policy, Snapshot, TrainingRun
from rewards.pages.run_form import setting_field
from rewards.pages.run_lists import outcome_of, page_of, state_of
from rewards.policies import downloads, policy_registry, policy_report, policy_runs
from rewards.runs import new_labels, runs
from rewards.runs.policy_settings import SETTINGS, bases
from rewards.runs.run_settings import UnusableConfig

FIRST = ("policy", "method", "snapshot", "beta", "epochs", "learning_rate", "seed")
NEEDED = ("policy", "method")
METHODS: Mapping[str, Any] = {
    DPO: gettext_lazy("DPO: prefer the better of two responses"),
    DPO_1D: gettext_lazy("DPO 1D: the same, with a weight for each segment"),
    DPO_2D: gettext_lazy("DPO 2D: best segments against worst segments"),
    SFT: gettext_lazy("SFT: imitate the better response"),
    STEERLM: gettext_lazy("SteerLM: learn the levels of attributes, then ask for high ones"),
}
REJECTED = ((INVERTED, gettext_lazy("inverted")), (IDENTITY, gettext_lazy("identity")))
SNAPSHOTS_OFFERED = 10
ASPECT, REQUESTED = "aspect-", "requested-"
BY_NAME = {"aspect_weights": ASPECT, "requested": REQUESTED}
"""Settings that have a field for each aspect or attribute."""


class PolicyForm(forms.Form):
    """A field for each setting of an alignment; `config` returns those that were changed."""

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, label_suffix="", **kwargs)  # type: ignore[misc]
        usable = project.snapshots.filter(marked_at=None, erasing_at=None, erased_at=None)
        self.snapshots = list(usable.defer("manifest").order_by("-pk")[:SNAPSHOTS_OFFERED])
        hints, usual = typing.get_type_hints(AlignConfig), _usual()
        self.fields["policy"] = forms.ChoiceField(choices=[(name, name) for name in bases()])
        self.fields["method"] = forms.ChoiceField(choices=list(METHODS.items()))
        title = _("the snapshot of %(time)s (%(hash)s)")
        taken = [
            (
                str(row.pk),
                title % {"time": date_format(row.created_at, "SHORT_DATETIME_FORMAT"), "hash": row.content_hash[:12]},
            )
            for row in self.snapshots
        ]
        self.fields["snapshot"] = forms.ChoiceField(
            required=False,
            label=gettext_lazy("Learn from"),
            help_text=gettext_lazy("The labels in force, or those that an earlier run had."),
            choices=[("", _("labels as they are now")), *taken],
        )
        self.fields["rejected_weight"] = forms.ChoiceField(choices=REJECTED)
        for name, words in SETTINGS.items():
            if name in BY_NAME:
                continue
            if name not in self.fields:
                self.fields[name] = setting_field(name, hints[name], ALIGNING_BOUNDS)
            field = self.fields[name]
            field.label, field.help_text, field.initial = _(words.label), _(words.help), usual.get(name)
        self.aspects = [(attribute.key, attribute.shown_name) for attribute in project.attributes_for("segment")]
        self.attributes = [(attribute.key, attribute.shown_name) for attribute in project.attributes_for()]
        for prefix, named in ((ASPECT, self.aspects), (REQUESTED, self.attributes)):
            for key, name in named:
                self.fields[prefix + key] = forms.FloatField(required=False, min_value=0, label=name)

    def first(self) -> Iterator[BoundField]:
        """Yields the fields that people choose first."""
        return (self[name] for name in FIRST)

    def others(self) -> Iterator[BoundField]:
        """Yields the fields that are folded away, but those for each aspect or attribute."""
        return (self[name] for name in self.fields if name not in FIRST and not name.startswith((ASPECT, REQUESTED)))

    def groups(self) -> Iterator[tuple[str, str, list[BoundField]]]:
        """Yields the settings that have a field for each aspect or attribute: title, sentence, fields."""
        for name, prefix in BY_NAME.items():
            fields = [self[field] for field in self.fields if field.startswith(prefix)]
            if fields:
                yield _(SETTINGS[name].label), _(SETTINGS[name].help), fields

    def opens_others(self) -> bool:
        """Returns whether something is wrong in a field that is folded away."""
        return any(name not in FIRST for name in self.errors if name != "__all__")

    def config(self) -> dict[str, Any]:
        """Returns the base, the method and the settings that differ from the usual ones."""
        usual = _usual()
        # A field that was emptied asks for the usual value.
        changed = {
            name: self.cleaned_data[name]
            for name in SETTINGS
            if name in NEEDED or self.cleaned_data.get(name) not in (None, "", usual.get(name))
        }
        for name, prefix in BY_NAME.items():
            values = {
                key.removeprefix(prefix): value for key, value in self.cleaned_data.items() if key.startswith(prefix)
            }
            if given := {key: value for key, value in values.items() if value is not None}:
                changed[name] = given
        return changed

    def snapshot(self) -> Snapshot | None:
        """Returns the chosen snapshot; None for the labels of now."""
        chosen = self.cleaned_data["snapshot"]
        return next((row for row in self.snapshots if str(row.pk) == chosen), None)

    def refuse(self, refused: Refusal) -> None:
        """Shows a refusal at the setting that it names, else above the form."""
        name = refused.setting if isinstance(refused, UnusableConfig) else ""
        self.add_error(name if name in self.fields else None, str(refused))


def _usual() -> dict[str, Any]:
    defaults = ((field.name, field.default) for field in dataclasses.fields(AlignConfig))
    return {name: value for name, value in defaults if value is not dataclasses.MISSING} | {"method": DPO}


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
        {"run": run, "state": state_of(run), "outcome": outcome_of(run), "policy": run.made_policy()}
        for run in page["runs"]
    ]
    return render(request, "workspace/policies.html", page)


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
        "material": new_labels.material(project),
        "has_bases": bool(bases()),
        "has_champion": project.reward_models.filter(is_champion=True).exists(),
        "hindrance": "" if form.is_bound else runs.why_not_now(project),
    }
    return render(request, "workspace/start_policy_run.html", page, status=422 if form.is_bound else 200)


@require_GET
def policy(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Shows a policy: how it was judged, where it comes from, and what may be done with it."""
    row = _policy(access.managed_project(user_of(request), slug), pk)
    try:
        listed = downloads.files_of(row)
    except Refusal as refused:
        files: dict[str, Any] = {"files_refused": str(refused)}
    else:
        files = {"files": listed, "files_size": sum(file.size for file in listed)}
    page = {
        "project": row.project,
        "policy": row,
        "run": row.run,
        "snapshot": row.run.snapshot,
        "state": policy_report.state_of(row),
        "reason": reasons.in_words(row.reason),
        "figures": list(policy_report.figures(row)),
        "origin": policy_report.origin(row),
        **files,
    }
    return render(request, "workspace/policy.html", page)


def _policy(project: Project, pk: int) -> Policy:
    rows = Policy.objects.filter(project=project).select_related("run__snapshot", "judge")
    row = get_object_or_404(rows.defer("run__log", "run__losses", "judge__manifest"), pk=pk)
    row.project = project
    return row


@require_POST
def offer_policy(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Offers a policy by hand, which needs the tick in `confirm`."""
    row = _policy(access.managed_project(user_of(request), slug), pk)
    with show_refusal(request):
        policy_registry.offer(row, confirmed="confirm" in request.POST, now=database_now())
        messages.success(request, _("Policy %(version)s is offered now.") % {"version": row.version})
    return redirect("policy", slug, row.pk)


@require_POST
def verify_policy(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Hashes the policy's files again and shows which ones have changed."""
    row = _policy(access.managed_project(user_of(request), slug), pk)
    problems = policy_registry.verify(row)
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
