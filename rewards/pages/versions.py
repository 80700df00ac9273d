"""The page of a version: its figures, origin, files and licence, and what managers do with a version."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.stale_edits import FIELD, ChangedMeanwhile, sealed
from annotator.infrastructure.web.acting import show_refusal
from annotator.infrastructure.web.numbers import number
from annotator.infrastructure.web.query_parameters import number_in
from annotator.models import Project, User
from annotator.outputs.releases.particulars import OTHER, UNKNOWN
from annotator.pages.projects.seen import SeenField
from annotator.reading import access
from annotator.reading.access import user_of
from rewards import scoring
from rewards.evaluation import largest_errors
from rewards.evaluation.evaluation import VALIDATION
from rewards.model_downloads.files import files_of, reward_manifest
from rewards.model_downloads.licenses import LONGEST_TEXT, MODEL_LICENSES, set_license
from rewards.model_downloads.sending import sent_archive, sent_file
from rewards.models import RewardModel, RunState
from rewards.promotion import champions
from rewards.registry import erasure, registry
from rewards.reports import model_figures, run_report
from rewards.runs import runs

ERRORS_SHOWN = 10


@require_GET
def version(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Shows a version of the model: its figures, where it fails, where it comes from, and what may be done with it."""
    user = user_of(request)
    project = access.reviewed_project(user, slug)
    model = _model(project, pk)
    metrics, attributes, snapshot = newest_metrics(model), project.every_attribute(), model.run.snapshot
    page = {
        "project": project,
        "manages": access.manages(user, project),
        "model": model,
        "run": model.run,
        "snapshot": snapshot,
        "waits": model.run.state == RunState.AWAITING_PROMOTION,
        "has_champion": model.is_champion or project.reward_models.filter(is_champion=True).exists(),
        "against": champions.against(model),
        "in_words": run_report.in_words(model.run.verdict),
        "evidence": run_report.verdict(model.run.verdict),
        "judged_on": run_report.judged_on(model.run.verdict, snapshot.manifest) if snapshot else "",
        "measured_on": model_figures.measured_on(metrics),
        "beside_length": model_figures.beside_length(metrics),
        "languages": model_figures.by_language(metrics),
        "words": model_figures.in_words(metrics),
        "figures": model_figures.figures(metrics, attributes),
        "segment_figures": model_figures.segment_figures(metrics, attributes),
        "worst": model_figures.worst_in_words(metrics),
        "pairs": metrics.get("pairwise") or {},
        "charts": model_figures.calibration_charts(metrics, attributes),
        "outlook": model_figures.summary(model.run.metrics),
        "outlook_chart": model_figures.figure(model.run.metrics),
        "origin": _origin(model),
        "scoring": scoring.position(model) if model.is_champion else None,
        **_misses(request, model, user),
    }
    if page["manages"]:
        page |= offered(model)
    return render(request, "workspace/model_version.html", page)


def _misses(request: HttpRequest, model: RewardModel, reader: User) -> dict[str, Any]:
    """Returns a page of the held-out responses with the largest errors."""
    kept = model.run.metrics.get("largest_errors")
    first = min(number_in(request.GET, "errors", most=largest_errors.KEPT) or 0, largest_errors.KEPT)
    part = (kept or [])[first : first + ERRORS_SHOWN]
    end = first + ERRORS_SHOWN
    return {
        "has_errors": kept is not None,
        "misses": largest_errors.misses(part, model.project, model.project.every_attribute(), reader=reader),
        "first_error": first + 1,
        "earlier_errors": max(first - ERRORS_SHOWN, 0) if first else None,
        "later_errors": end if end < len(kept or []) else None,
    }


def _origin(model: RewardModel) -> list[tuple[str, Any]]:
    """Returns the names and values of a model's origin."""
    lineage = registry.lineage(model)
    parent = lineage["parent"]
    names = {attribute.key: attribute.shown_name for attribute in model.project.every_attribute()}
    # In the model's own order: JSONB sorts its keys in an order of its own.
    known = [key for key in model.attributes if key in model.attribute_weights]
    weights = ", ".join(f"{names.get(key, key)} {number(model.attribute_weights[key])}" for key in known)
    return [
        (_("Language model"), lineage["backbone"]),
        (_("Weights in the reward"), weights),
        (_("Compared with"), _("version %(version)s") % {"version": parent} if parent else _("no champion yet")),
        *([(_("Rubric"), rubric)] if (rubric := registry.rubric_in_words(model)) else []),
        (_("Snapshot"), lineage["snapshot"]),
        (_("Settings"), lineage["config_hash"]),
        (_("Code"), lineage["code_version"]),
        (_("Template"), lineage["template_hash"]),
        (_("Rendering"), lineage["rendering"]),
        (_("Seed"), str(lineage["seed"])),
        *([(_("Precision of its scores"), model.score_precision)] if model.score_precision else []),
    ]


@require_POST
def promote_version(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Makes a version the champion; one that the gate turned down needs the tick in `confirm`."""
    model = _managed_model(request, slug, pk)
    with show_refusal(request):
        promoted = champions.promote(model, confirmed="confirm" in request.POST, now=database_now())
        messages.success(request, _("Version %(version)s is the champion now.") % {"version": model.version})
        if promoted.scores_wait:
            messages.warning(request, promoted.scores_wait)
    return redirect("model-version", slug, model.pk)


@require_POST
def reject_version(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Turns down a version that waits for a decision."""
    model = _managed_model(request, slug, pk)
    said = _("Version %(version)s stays out of use.") % {"version": model.version}
    with show_refusal(request):
        runs.reject(model.run, now=database_now())
        messages.success(request, said)
    return redirect("model-version", slug, model.pk)


@require_POST
def verify_version(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Hashes the version's files again and shows which ones have changed."""
    model = _managed_model(request, slug, pk)
    problems = registry.verify(model)
    for problem in problems:
        messages.error(request, problem)
    if not problems:
        said = _("The files of %(model)s and of its snapshot are unchanged since they were written.")
        messages.success(request, said % {"model": model})
    return redirect("model-version", slug, model.pk)


@require_POST
def erase_version(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Erases the files of the snapshot that the version learnt from, and of every model that learnt from it."""
    model = _managed_model(request, slug, pk)
    said = _("The snapshot's files have been erased, and so have those of every model that learnt from it.")
    snapshot = model.run.snapshot
    if snapshot is None:
        raise Http404
    with show_refusal(request):
        erasure.erase(snapshot, now=database_now())
        messages.success(request, said)
    return redirect("model-version", slug, model.pk)


def newest_metrics(model: RewardModel) -> dict[str, Any]:
    """Returns what was measured of a version last on the held-out prompts."""
    newest = model.evaluations.filter(name=VALIDATION).order_by("-pk").values_list("metrics", flat=True).first()
    return dict(newest or {})


def _model(project: Project, pk: int) -> RewardModel:
    rows = RewardModel.objects.filter(project=project).select_related("run__snapshot", "parent")
    model = get_object_or_404(rows.defer("run__losses", "run__log", "parent__manifest"), pk=pk)
    model.project = project
    return model


def _managed_model(request: HttpRequest, slug: str, pk: int) -> RewardModel:
    return _model(access.managed_project(user_of(request), slug), pk)


# Files and licence -------------------------------------------------------------------------------------------


class LicenseForm(forms.Form):
    license = forms.ChoiceField(
        label=gettext_lazy("Licence"),
        choices=[
            (name, {UNKNOWN: gettext_lazy("not chosen yet"), OTHER: gettext_lazy("another one")}.get(name, name))
            for name in MODEL_LICENSES
        ],
    )
    license_text = forms.CharField(
        label=gettext_lazy("What the card says about it"),
        required=False,
        max_length=LONGEST_TEXT,
        widget=forms.Textarea({"rows": 2, "dir": "auto"}),
    )
    seen = SeenField()

    @classmethod
    def of(cls, model: RewardModel) -> "LicenseForm":
        """Returns the form as the version's licence is."""
        stored = {"license": model.license, "license_text": model.license_text}
        return cls(initial={**stored, "license": model.license or UNKNOWN, FIELD: sealed(stored)})


def offered(model: RewardModel) -> dict[str, Any]:
    """Returns what a version's page shows of its files, for those who may take them."""
    try:
        files = files_of(model)
    except Refusal as refusal:
        return {"files_refused": str(refusal)}
    return {
        "files": files,
        "files_size": sum(file.size for file in files),
        "has_reward": reward_manifest(model) is not None,
        "license_form": LicenseForm.of(model),
    }


@require_GET
def model_file(request: HttpRequest, slug: str, pk: int, path: str) -> HttpResponseBase:
    """Sends one file of a version, or the part of it that a browser still lacks."""
    model = _managed_model(request, slug, pk)
    with show_refusal(request):
        return sent_file(request, model, path)
    return redirect("model-version", slug, model.pk)


@require_GET
def model_archive(request: HttpRequest, slug: str, pk: int, part: str) -> HttpResponseBase:
    """Sends all files of a version, or those of one part, as one tar file."""
    model = _managed_model(request, slug, pk)
    with show_refusal(request):
        return sent_archive(request, model, part="" if part == "all" else part)
    return redirect("model-version", slug, model.pk)


@require_POST
def license_version(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """States the licence under which a version is passed on."""
    model = _managed_model(request, slug, pk)
    form = LicenseForm(request.POST)
    if not form.is_valid():
        messages.error(request, " ".join(str(text) for errors in form.errors.values() for text in errors))
        return redirect("model-version", slug, model.pk)
    try:
        set_license(
            model, form.cleaned_data["license"], form.cleaned_data["license_text"], seen=form.cleaned_data[FIELD]
        )
    except ChangedMeanwhile:
        model.refresh_from_db(fields=["license", "license_text"])
        mine = f"{form.cleaned_data['license']} {form.cleaned_data['license_text']}".strip()
        now = f"{model.license or UNKNOWN} {model.license_text}".strip()
        text = _("Somebody else has chosen a licence meanwhile: “%(now)s”. Yours was not saved: “%(mine)s”.")
        messages.error(request, text % {"now": now, "mine": mine})
        return redirect("model-version", model.project.slug, model.pk)
    except Refusal as refusal:
        messages.error(request, str(refusal))
        return redirect("model-version", slug, model.pk)
    said = _("The card of version %(version)s states this licence now.")
    messages.success(request, said % {"version": model.version})
    return redirect("model-version", slug, model.pk)
