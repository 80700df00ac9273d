"""The rows of projects, to be read; each leads to the page of the workspace on which it is worked with."""

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from annotator.admin.scoping import FoundByTask, ManagedOnly, OfManagedProjects, tasks_named
from annotator.analysis import figures
from annotator.infrastructure.db.clock import database_now
from annotator.models import (
    Annotation,
    Exclusion,
    Invitation,
    Membership,
    Project,
    Pseudonym,
    Tally,
    Task,
    User,
    Webhook,
)
from annotator.reading.access import user_of
from annotator.reading.blindness import tasks_held_by


def page_of_task(task: Task) -> str:
    """Returns the address of a task's page; gold tasks measure annotators and have none."""
    return "" if task.state == Task.State.GOLD else reverse("data-task", args=[task.project.slug, task.pk])


def _progress(figure: str, name: Any) -> Any:
    """Returns a column of the list of projects."""

    @admin.display(description=name)
    def shown(_self: Any, project: Any) -> int:
        return int(getattr(project.progress, figure))

    return shown


class ArchivedFilter(admin.SimpleListFilter):
    """Archived projects stand in the list only where somebody asks for them."""

    title = _("archived")
    parameter_name = "archived"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("yes", _("Archived"))]

    def choices(self, changelist: Any) -> Any:
        in_use, *others = super().choices(changelist)
        yield {**in_use, "display": _("In use")}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[Project]) -> QuerySet[Project]:
        return queryset.filter(archived_at__isnull=self.value() != "yes")


@admin.register(Project)
class ProjectAdmin(OfManagedProjects):
    project_path = "pk"
    page = ("overview", "slug")
    list_display = ["name", "slug", "total", "open", "complete", "quarantined"]
    details = ["name", "slug", "description", "rubric", "created_at", "archived_at"]
    list_filter = [ArchivedFilter]
    search_fields = ["name", "slug"]

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).standing()

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        changelist = super().get_changelist_instance(request)
        figures.add_progress(changelist.result_list, now=database_now())
        return changelist

    total, open = _progress("total", _("tasks")), _progress("open", _("open"))
    complete, quarantined = _progress("complete", _("complete")), _progress("quarantined", _("quarantined"))


@admin.register(Membership)
class MembershipAdmin(OfManagedProjects):
    page = ("person", "project.slug", "user.username")
    list_display = ["user", "project", "role", "qualified_at", "pause_reason", "submitted"]
    details = ["offered_role", "quota", "languages", "extra_tries", "paused_at"]
    list_filter = [("project", ManagedOnly), "role", "pause_reason"]
    search_fields = ["user__username"]
    list_select_related = ["user", "project"]

    def get_queryset(self, request: HttpRequest) -> Any:
        theirs = Tally.objects.filter(annotator=OuterRef("user"), project=OuterRef("project"))
        return super().get_queryset(request).annotate(done=Subquery(theirs.values("done")))

    @admin.display(description=_("annotations"))
    def submitted(self, member: Any) -> int:
        return member.done or 0


@admin.register(Exclusion)
class ExclusionAdmin(OfManagedProjects):
    page = ("exclusions", "project.slug")
    list_display = ["annotator", "project", "reason", "by", "made_at"]
    details = ["readmitted_at"]
    list_filter = [("project", ManagedOnly)]
    list_select_related = ["annotator", "project", "by"]
    search_fields = ["annotator__username"]
    search_help_text = _("a user name, or a pseudonym as the project's exports have it")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Exclusion], search_term: str
    ) -> tuple[QuerySet[Exclusion], bool]:
        """Searches by user name, and by a pseudonym in the project that it is of: it names somebody there only."""
        exclusions, may_repeat = super().get_search_results(request, queryset, search_term)
        pseudonyms = Pseudonym.objects.filter(user=OuterRef("annotator"), project=OuterRef("project"), name=search_term)
        return exclusions | queryset.filter(Exists(pseudonyms)), may_repeat


@admin.register(Task)
class TaskAdmin(FoundByTask):
    list_display = ["external_id", "project", "state", "priority", "slots_wanted", "open_slots"]
    details = ["pii_scanned_at", "redacted_at"]
    list_filter = ["state", ("project", ManagedOnly)]
    search_fields = ["external_id"]
    task_path = "pk"
    list_select_related = ["project"]
    sortable_by = ()
    show_full_result_count = False

    def page_of(self, row: Any) -> str:
        return page_of_task(row)


@admin.register(Annotation)
class AnnotationAdmin(OfManagedProjects):
    list_display = ["task", "annotator", "revision", "origin", "preference", "submitted_at"]
    details = ["justification"]
    list_filter = ["origin", "is_current", ("project", ManagedOnly)]
    search_fields = ["assignment__task__external_id", "assignment__annotator__username"]
    search_help_text = _("The whole id of a task, or a part of a user name.")
    list_select_related = ["assignment__task__project", "annotator"]
    # In another order than the newest first, every annotation would be sorted for each page.
    sortable_by = ()
    # It would count every row of the table to show beside the filtered number.
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> Any:
        """Leaves out annotations of tasks that the person is rating, as whoever rates must not see others' ratings."""
        rows = super().get_queryset(request)
        # Read first, as there are none or few: the count of all rows would otherwise look up each row's task.
        held = list(tasks_held_by(user_of(request)).values_list("task", flat=True))
        return rows.exclude(assignment__task__in=held) if held else rows

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Looks up the tasks and the people first: a search in two joined tables would read every annotation."""
        if not (wanted := search_term.strip()):
            return queryset, False
        tasks = tasks_named(request, wanted)
        people = list(User.objects.filter(username__icontains=wanted).values_list("pk", flat=True))
        return queryset.filter(Q(assignment__task__in=tasks) | Q(annotator__in=people)), False

    def page_of(self, row: Any) -> str:
        return page_of_task(row.assignment.task)

    @admin.display(description=_("task"))
    def task(self, row: Annotation) -> str:
        return row.assignment.task.external_id


@admin.register(Webhook)
class WebhookAdmin(OfManagedProjects):
    list_title = _("Webhooks")
    page = ("webhook", "project.slug", "pk")
    list_display = ["url", "project", "active", "end_reason", "failing_since", "tried_at", "made_by"]
    details = ["events", "created_at"]
    list_filter = ["active", ("project", ManagedOnly)]
    search_fields = ["url", "project__slug"]
    list_select_related = ["project", "made_by"]
    of_administrators = True


@admin.register(Invitation)
class InvitationAdmin(OfManagedProjects):
    """Who was invited to what, by whom, and how many have come. The links are stored nowhere."""

    page = ("invitations", "project.slug")
    list_display = ["__str__", "project", "role", "taken", "places", "made_by", "expires_at", "revoked_at"]
    details = ["meant_for", "email", "languages", "quota", "created_at", "mailed_at"]
    list_filter = ["role", ("project", ManagedOnly)]
    search_fields = ["meant_for", "email", "project__slug"]
    list_select_related = ["project", "made_by"]
    of_administrators = True
