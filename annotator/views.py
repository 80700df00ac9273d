"""The annotator's pages. Each works without JavaScript; the access decorator stands on top."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotator import access, annotation, assignment
from annotator.access import user_of
from annotator.forms import RatingForm, ReportForm, SkipForm
from annotator.models import Assignment, Project, SkipReason
from annotator.refusals import Refusal


@login_required
@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """The user's projects, with what is left to do in each."""
    memberships = user_of(request).memberships.select_related("project").order_by("project__name")
    progress = {project.pk: project for project in Project.objects.visible_to(user_of(request)).with_progress()}
    mine = [(member, progress[member.project_id], _done_by(request, member.project_id)) for member in memberships]
    return render(request, "home.html", {"projects": mine})


def _done_by(request: HttpRequest, project_id: int) -> int:
    return user_of(request).assignments.submitted().filter(task__project=project_id).count()


@login_required
@require_http_methods(["GET", "POST"])
def guidelines(request: HttpRequest, slug: str) -> HttpResponse:
    """The guidelines in force; a POST acknowledges them."""
    member = access.membership(user_of(request), slug)
    current = member.project.current_guideline()
    if request.method == "POST":
        member.acknowledged_version = current.version if current else 0
        member.save(update_fields=["acknowledged_version"])
        return redirect("annotate", slug)
    return render(
        request,
        "guidelines.html",
        {"member": member, "guideline": current, "attributes": member.project.attributes_for()},
    )


@login_required
@require_GET
def annotate(request: HttpRequest, slug: str) -> HttpResponse:
    """The next task to rate, or why there is none. Unread guidelines come first."""
    member = access.membership(user_of(request), slug)
    if member.unread_guideline():
        return redirect("guidelines", slug)
    claimed = assignment.claim(member.project, user_of(request), now=timezone.now())
    if claimed.assignment is None:
        return render(request, "nothing.html", {"project": member.project, "explanation": claimed.explanation})
    return _rating_page(request, claimed.assignment)


def _rating_page(
    request: HttpRequest, held: Assignment, *, form: RatingForm | None = None, status: int = 200
) -> HttpResponse:
    responses = assignment.responses_in_order(held)
    project = held.task.project
    context = {
        "assignment": held,
        "project": project,
        "conversation": held.task.conversation,
        "form": form or RatingForm(held, responses),
        "skip_form": SkipForm(),
        "report_form": ReportForm(),
        "done": _done_by(request, project.pk),
    }
    return render(request, "annotate.html", context, status=status)


@login_required
@require_POST
def submit(request: HttpRequest, assignment_id: int) -> HttpResponse:
    """Stores a complete rating and goes on to the next task; shows an incomplete one again, as it was."""
    held = access.own_assignment(user_of(request), assignment_id)
    form = RatingForm(held, assignment.responses_in_order(held), request.POST)
    if not form.is_valid():
        return _rating_page(request, held, form=form, status=422)
    try:
        annotation.submit(held.pk, form.submission(), now=timezone.now())
    except Refusal as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, f"Stored at {timezone.localtime():%H:%M:%S}.")
    return redirect("annotate", held.task.project.slug)


@login_required
@require_POST
def skip(request: HttpRequest, assignment_id: int) -> HttpResponse:
    """Passes the task by, for a reason."""
    held = access.own_assignment(user_of(request), assignment_id)
    form = SkipForm(request.POST)
    if not form.is_valid():
        return _refused_form(request, held, form)
    try:
        done = annotation.skip(held.pk, **form.cleaned_data, now=timezone.now())
    except Refusal as refused:
        messages.error(request, str(refused))
    else:
        everyone = done.reason == SkipReason.PII
        messages.info(
            request,
            "Skipped. Nobody gets this task until a manager has looked at it."
            if everyone
            else "Skipped. The task stays open for others.",
        )
    return redirect("annotate", held.task.project.slug)


@login_required
@require_POST
def report(request: HttpRequest, assignment_id: int) -> HttpResponse:
    """Reports unsafe content."""
    held = access.own_assignment(user_of(request), assignment_id)
    form = ReportForm(request.POST)
    if not form.is_valid():
        return _refused_form(request, held, form)
    annotation.report(held.pk, **form.cleaned_data, now=timezone.now())
    messages.info(request, "Reported. Nobody gets this task until a manager has looked at it.")
    return redirect("annotate", held.task.project.slug)


def _refused_form(request: HttpRequest, held: Assignment, form: SkipForm | ReportForm) -> HttpResponse:
    for texts in form.errors.values():
        for text in texts:
            messages.error(request, str(text))
    return redirect("annotate", held.task.project.slug)
