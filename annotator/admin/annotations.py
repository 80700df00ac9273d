"""Lists annotations for managers to read; nobody changes one here."""

from typing import Any

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from annotator.access import user_of
from annotator.admin.scoping import ManagedOnly, OfManagedProjects, ToBeRead, tasks_named
from annotator.admin.tasks import review_link
from annotator.models import Annotation, Rating, User
from annotator.review.blindness import tasks_held_by
from annotator.templatetags.scales import level


class RatingInline(ToBeRead):
    model = Rating
    fields = ["response", "levels", "checks", "confidence", "safe", "feedback", "edit", "edit_summary"]
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("response", "annotation__assignment__task__project")

    @admin.display(description=_("levels"))
    def levels(self, rating: Rating) -> str:
        """Returns the scores as levels from 1, as the scale shows them."""
        attributes = rating.annotation.assignment.task.project.attributes_for()
        scores = [
            (attribute.name, rating.scores[attribute.key]) for attribute in attributes if attribute.key in rating.scores
        ]
        return ", ".join(f"{name} {level(score)}" for name, score in scores)


@admin.register(Annotation)
class AnnotationAdmin(OfManagedProjects):
    project_path = "project"
    read_only = True
    list_display = ["task", "annotator", "revision", "origin", "preference", "submitted_at"]
    list_filter = ["origin", "is_current", ("project", ManagedOnly)]
    search_fields = ["assignment__task__external_id", "assignment__annotator__username"]
    search_help_text = _("The whole id of a task, or a part of a user name.")
    list_select_related = ["assignment__task__project", "annotator"]
    # In another order than the newest first, every annotation would be sorted for each page.
    sortable_by = ()
    # It would count every row of the table to show beside the filtered number.
    show_full_result_count = False
    readonly_fields = ["review"]
    inlines = [RatingInline]

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

    @admin.display(description=_("task"))
    def task(self, row: Annotation) -> str:
        return row.assignment.task.external_id

    @admin.display(description=_("review"))
    def review(self, row: Annotation) -> SafeString:
        return review_link(row.assignment.task)
