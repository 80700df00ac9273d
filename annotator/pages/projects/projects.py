"""The pages before rating: the user's projects, their guidelines, and the answer to an offered role."""

from django import forms
from django.db.models import Exists, OuterRef
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from annotator.analysis import figures
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.web.acting import show_refusal
from annotator.managing import members
from annotator.models import Gold, Project, Role
from annotator.pages.navigation import pages_of
from annotator.reading import access
from annotator.reading.access import user_of


class OfferForm(forms.Form):
    answer = forms.ChoiceField(choices=[("accept", "accept"), ("decline", "decline")])


OTHERS_SHOWN = 20
"""The projects of others that a superuser's page lists; the admin lists all of them."""


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """Lists the user's projects with what is left to do in each; archived ones follow, folded away.

    Superusers see the newest projects of others as well.
    """
    user = user_of(request)
    memberships = list(user.memberships.select_related("project").filter(project__deleted_at=None))
    used = sorted((one for one in memberships if not one.project.archived_at), key=lambda one: one.project.name)
    others: list[int] = []
    if user.is_superuser:
        foreign = Project.objects.standing().in_use().exclude(memberships__user=user).order_by("-pk")
        others = list(foreign.values_list("pk", flat=True)[:OTHERS_SHOWN])
    numbers = [member.project_id for member in used] + others
    lessons = Gold.objects.filter(task__project=OuterRef("pk"), use__in=[Gold.Use.PRACTICE, Gold.Use.TEST])
    chosen = Project.objects.filter(pk__in=numbers).annotate(teaches=Exists(lessons))
    seen = chosen.as_seen_by(user).in_bulk()
    tasks = figures.progress(seen.values(), now=database_now())
    mine = [
        (
            member,
            seen[member.project_id],
            pages_of(member.project, manages=member.role == Role.MANAGER) if member.role != Role.ANNOTATOR else [],
        )
        for member in used
    ]
    theirs = [(None, seen[pk], pages_of(seen[pk], manages=True)) for pk in others]
    archived = [one.project for one in memberships if one.project.archived_at and one.role != Role.ANNOTATOR]
    page = {
        "projects": [(*entry, tasks[entry[1].pk]) for entry in mine + theirs],
        "archived": [(project, reverse("overview", args=[project.slug])) for project in archived],
        "may_create": access.may_create_projects(user),
    }
    return render(request, "home.html", page)


@require_POST
def offer(request: HttpRequest, slug: str) -> HttpResponse:
    """Accepts or declines the role that the user is offered in the project."""
    member = access.membership(user_of(request), slug)
    form = OfferForm(request.POST)
    if not form.is_valid():
        return HttpResponseBadRequest()
    with show_refusal(request):
        (members.accept if form.cleaned_data["answer"] == "accept" else members.decline)(member)
    return redirect("home")
