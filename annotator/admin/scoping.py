"""Limits what a manager sees in the admin to the rows of their own projects."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import TabularInline

from annotator.access import user_of
from annotator.admin.recorded import Recorded
from annotator.models import Project


class ManagedOnly(admin.RelatedFieldListFilter):
    """A filter by project that offers only the projects that the user manages."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> Any:
        managed = Project.objects.managed_by(user_of(request)).values("pk")
        return field.get_choices(include_blank=False, limit_choices_to={"pk__in": managed})


class OfManagedProjects(Recorded):
    """Shows the rows of the projects that the user manages. `project_path` leads from a row to its project."""

    project_path = "project"
    read_only = False
    list_per_page = 50

    def get_queryset(self, request: HttpRequest) -> Any:
        rows = super().get_queryset(request)
        if request.user.is_superuser:
            return rows
        return rows.filter(**{f"{self.project_path}__in": Project.objects.managed_by(user_of(request))})

    def recorded_project(self, row: Any) -> Project:
        for name in self.project_path.split("__"):
            row = getattr(row, name)
        return row  # type: ignore[no-any-return]

    # Django's own permissions are for whole tables, so they are not asked: any staff may look, and `get_queryset`
    # decides at which rows.
    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_staff)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return not self.read_only and self.has_module_permission(request)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ToBeRead(TabularInline):
    """Rows below another row's page that nobody changes there: `readonly_fields` names all of their fields."""

    extra = 0
    can_delete = False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
