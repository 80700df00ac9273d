"""What one reads before rating: the projects and their guidelines."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from annotator import access
from annotator.access import user_of
from annotator.htmx import HtmxRequest
from annotator.models import Project


@login_required
@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """The user's projects, with what is left to do in each."""
    memberships = user_of(request).memberships.select_related("project").order_by("project__name")
    progress = {project.pk: project for project in Project.objects.visible_to(user_of(request)).with_progress()}
    mine = [
        (member, progress[member.project_id], access.done_by(user_of(request), member.project_id))
        for member in memberships
    ]
    return render(request, "home.html", {"projects": mine})


@login_required
@require_http_methods(["GET", "POST"])
def guidelines(request: HtmxRequest, slug: str) -> HttpResponse:
    """The guidelines in force, for the rating page's panel without the page; a POST acknowledges them."""
    member = access.membership(user_of(request), slug)
    current = member.project.current_guideline()
    if request.method == "POST":
        member.acknowledged_version = current.version if current else 0
        member.save(update_fields=["acknowledged_version"])
        return redirect("annotate", slug)
    return render(
        request,
        "_guidelines.html" if request.htmx else "guidelines.html",
        {"member": member, "guideline": current, "attributes": member.project.attributes_for()},
    )
