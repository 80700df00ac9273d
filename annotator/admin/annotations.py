"""Annotations, to be read."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import TabularInline

from annotator.admin.scoping import ManagedOnly, OfManagedProjects
from annotator.models import (
    Annotation,
    Rating,
)


class RatingInline(TabularInline):
    model = Rating
    extra = 0
    fields = ["response", "scores", "checks", "confidence", "safe"]
    readonly_fields = fields
    can_delete = False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Annotation)
class AnnotationAdmin(OfManagedProjects):
    project_path = "assignment__task__project"
    read_only = True
    list_display = ["task", "annotator", "revision", "origin", "preference", "submitted_at"]
    list_filter = ["origin", "is_current", ("assignment__task__project", ManagedOnly)]
    search_fields = ["assignment__task__external_id", "assignment__annotator__username"]
    list_select_related = ["assignment__task", "assignment__annotator"]
    show_full_result_count = False
    inlines = [RatingInline]

    @admin.display(ordering="assignment__task__external_id")
    def task(self, row: Annotation) -> str:
        return row.assignment.task.external_id

    @admin.display(ordering="assignment__annotator__username")
    def annotator(self, row: Annotation) -> str:
        return str(row.assignment.annotator)
