"""Data > Releases: frozen, numbered states of the project's data, to be made, downloaded and deleted by managers."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web.acting import show_refusal
from annotator.models import Project, Release
from annotator.outputs.releases import release_jobs
from annotator.outputs.releases.particulars import LICENSES, LONGEST_TEXT, LONGEST_TITLE, OTHER, UNKNOWN, Particulars
from annotator.outputs.releases.release_jobs import sent_archive, sent_file
from annotator.reading import access
from annotator.reading.access import user_of

WORDS = {OTHER: gettext_lazy("another one, described below"), UNKNOWN: gettext_lazy("not chosen yet")}


def _text(label: Any, help_text: Any) -> forms.CharField:
    return forms.CharField(
        label=label,
        help_text=help_text,
        required=False,
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 3}),
    )


class ReleaseForm(forms.Form):
    """What the card of a release says in a manager's words; an empty text becomes a plain sentence."""

    title = forms.CharField(
        label=gettext_lazy("Title"),
        required=False,
        max_length=LONGEST_TITLE,
        help_text=gettext_lazy("Empty: the project's name."),
    )
    license = forms.ChoiceField(
        label=gettext_lazy("Licence"), choices=[(name, WORDS.get(name, name)) for name in LICENSES]
    )
    notes = _text(
        gettext_lazy("Notes"), gettext_lazy("What readers should know first, such as where the prompts come from.")
    )
    license_text = _text(gettext_lazy("About the licence"), gettext_lazy("Empty: the name of the licence."))
    intended_use = _text(
        gettext_lazy("Intended use"),
        gettext_lazy("Empty: training and judging reward models, and research on ratings."),
    )
    limits = _text(gettext_lazy("Known limits"), gettext_lazy("Empty: what holds for any such data."))
    leave_out_failing = forms.BooleanField(
        label=gettext_lazy("Leave out tasks that fail a check"),
        required=False,
        help_text=gettext_lazy("Otherwise a single secret, path or mark of a redaction in a text refuses the release."),
    )

    rubric_version = forms.TypedChoiceField(
        label=gettext_lazy("Version of the rubric"),
        required=False,
        coerce=int,
        empty_value=None,
        help_text=gettext_lazy("Only labels and ratings that were made under it. All: those of every version."),
    )

    def __init__(self, project: Project, data: Any = None) -> None:
        super().__init__(data, label_suffix="", initial={"license": UNKNOWN})
        versions = [(str(version), str(version)) for version in project.versions_of_attributes()]
        if len(versions) > 1:
            self.fields["rubric_version"].choices = [("", gettext_lazy("All")), *versions]  # type: ignore[attr-defined]
        else:
            del self.fields["rubric_version"]

    def particulars(self) -> Particulars:
        return Particulars(**self.cleaned_data)

    def show(self, refusal: Refusal) -> None:
        """Shows a refusal beside its fields, or above the form."""
        for field, texts in (refusal.errors or {"": [str(refusal)]}).items():
            self.add_error(field or None, list(texts))

    def more_is_written(self) -> bool:
        """Returns whether one of the fields that stand folded away is filled in, or wrong."""
        return any(self.data.get(name) or name in self.errors for name in MORE)

    def more(self) -> list[forms.BoundField]:
        return [self[name] for name in MORE if name in self.fields]


MORE = ("license_text", "intended_use", "limits", "rubric_version", "leave_out_failing")


@require_http_methods(["GET", "POST"])
def releases(request: HttpRequest, slug: str) -> HttpResponse:
    """Lists the releases beside the form of a new one."""
    user = user_of(request)
    project = access.managed_project(user, slug)
    form = ReleaseForm(project, request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            release = release_jobs.request(project, form.particulars(), by=user, now=database_now())
        except Refusal as refusal:
            form.show(refusal)
        else:
            messages.success(request, _("Release %(number)d is being made.") % {"number": release.number})
            return redirect("releases", slug)
    context = {"project": project, "manages": True, "form": form, **_listed(project)}
    return render(request, "workspace/releases.html", context, status=422 if form.errors else 200)


@require_GET
def release_list(request: HttpRequest, slug: str) -> HttpResponse:
    """The list alone, which the page reads again while a release is being made."""
    project = access.managed_project(user_of(request), slug)
    return render(request, "workspace/_releases.html", {"project": project, **_listed(project)})


def _listed(project: Project) -> dict[str, Any]:
    rows = list(release_jobs.releases_of(project))
    return {"releases": rows, "under_way": any(release.is_under_way() for release in rows)}


@require_GET
def release_file(request: HttpRequest, slug: str, number: int, path: str) -> HttpResponseBase:
    """Sends one file of a release, or the part of it that a browser still lacks."""
    release = _managed_release(request, slug, number)
    with show_refusal(request):
        return sent_file(request, release, path, reader=user_of(request))
    return redirect("releases", slug)


@require_GET
def release_archive(request: HttpRequest, slug: str, number: int) -> HttpResponseBase:
    """Sends all files of a release as one tar file."""
    release = _managed_release(request, slug, number)
    with show_refusal(request):
        return sent_archive(request, release, reader=user_of(request))
    return redirect("releases", slug)


@require_POST
def delete_release(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Cancels a release, or deletes it with its files."""
    release_jobs.delete(_managed_release(request, slug, number))
    messages.success(request, _("Release %(number)d was deleted.") % {"number": number})
    return redirect("releases", slug)


def _managed_release(request: HttpRequest, slug: str, number: int) -> Release:
    project = access.managed_project(user_of(request), slug)
    return get_object_or_404(release_jobs.releases_of(project), number=number)
