"""A version's files on its page: their list, the downloads, and the licence that the card states."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from annotator import access
from annotator.access import user_of
from annotator.forms.seen import SeenField
from annotator.refusals import Refusal
from annotator.releases.particulars import OTHER, UNKNOWN
from annotator.stale_edits import FIELD, ChangedMeanwhile, sealed
from annotator.web.acting import show_refusal
from rewards.model_downloads.files import files_of, reward_manifest
from rewards.model_downloads.licenses import LONGEST_TEXT, MODEL_LICENSES, set_license
from rewards.model_downloads.sending import sent_archive, sent_file
from rewards.models import RewardModel


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


def _managed_model(request: HttpRequest, slug: str, pk: int) -> RewardModel:
    project = access.managed_project(user_of(request), slug)
    models = RewardModel.objects.select_related("project", "run__snapshot", "parent")
    return get_object_or_404(models, project=project, pk=pk)
