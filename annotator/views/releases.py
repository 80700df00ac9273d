"""Data > Releases: frozen, numbered states of the project's data, to be made, downloaded and deleted by managers."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotator import access
from annotator.access import user_of
from annotator.db.clock import database_now
from annotator.forms.releases import ReleaseForm
from annotator.models import Project, Release
from annotator.refusals import Refusal
from annotator.releases import jobs
from annotator.releases.jobs import sent_archive, sent_file
from annotator.web.acting import show_refusal


@require_http_methods(["GET", "POST"])
def releases(request: HttpRequest, slug: str) -> HttpResponse:
    """Lists the releases beside the form of a new one."""
    user = user_of(request)
    project = access.managed_project(user, slug)
    form = ReleaseForm(project, request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            release = jobs.request(project, form.particulars(), by=user, now=database_now())
        except Refusal as refusal:
            _add_errors(form, refusal)
        else:
            messages.success(request, _("Release %(number)d is being made.") % {"number": release.number})
            return redirect("releases", slug)
    context = {"project": project, "manages": True, "form": form, **_listed(project)}
    return render(request, "workspace/releases.html", context, status=422 if form.errors else 200)


def _add_errors(form: ReleaseForm, refusal: Refusal) -> None:
    for field, texts in refusal.errors.items():
        for text in texts:
            form.add_error(field, text)
    if not refusal.errors:
        form.add_error(None, str(refusal))


@require_GET
def release_list(request: HttpRequest, slug: str) -> HttpResponse:
    """The list alone, which the page reads again while a release is being made."""
    project = access.managed_project(user_of(request), slug)
    return render(request, "workspace/_releases.html", {"project": project, **_listed(project)})


def _listed(project: Project) -> dict[str, Any]:
    rows = list(jobs.releases_of(project))
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
    jobs.delete(_managed_release(request, slug, number))
    messages.success(request, _("Release %(number)d was deleted.") % {"number": number})
    return redirect("releases", slug)


def _managed_release(request: HttpRequest, slug: str, number: int) -> Release:
    project = access.managed_project(user_of(request), slug)
    return get_object_or_404(jobs.releases_of(project), number=number)
