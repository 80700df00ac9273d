"""Shows the rows of projects to be read, and managers those of their own projects alone."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.core.paginator import Paginator
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from annotator.access import user_of
from annotator.admin.recorded import Titled
from annotator.models import Project, Task


class ManagedOnly(admin.RelatedFieldListFilter):
    """A filter by project that offers only the projects that the user manages."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> Any:
        managed = Project.objects.managed_by(user_of(request)).values("pk")
        return field.get_choices(include_blank=False, limit_choices_to={"pk__in": managed})


class KeysFirst(Paginator):  # type: ignore[type-arg]
    """Finds the keys of a page's rows before it reads the rows, and counts from the nearer end.

    A late page of a million rows would otherwise join and read all rows before it.
    """

    def page(self, number: Any) -> Any:
        number = self.validate_number(number)
        first = (number - 1) * self.per_page
        last = min(first + self.per_page, self.count)
        keys: Any = self.object_list.values_list("pk", flat=True)  # type: ignore[attr-defined]
        from_end = first > self.count - last and keys.ordered
        found = keys.reverse()[self.count - last : self.count - first] if from_end else keys[first:last]
        return self._get_page(self.object_list.filter(pk__in=list(found)), number, self)  # type: ignore[attr-defined]


class OfManagedProjects(Titled):
    """Shows the rows of the projects that the user manages, to be read.

    `project_path` leads from a row to its project, `details` names what a row's page shows beside the columns of the
    list. Rows `of_administrators` are shown to superusers alone.
    """

    project_path = "project"
    details: Sequence[str] = ()
    of_administrators = False
    list_per_page = 50
    paginator = KeysFirst

    def get_queryset(self, request: HttpRequest) -> Any:
        rows = super().get_queryset(request)
        if request.user.is_superuser or self.of_administrators:  # whom the permissions below let in
            return rows
        return rows.filter(**{f"{self.project_path}__in": Project.objects.managed_by(user_of(request))})

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        columns = [str(name) for name in self.list_display if name != "__str__"]
        return list(dict.fromkeys(["workspace", *columns, *self.details]))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.get_fields(request, obj)

    def page_of(self, row: Any) -> str:
        """Returns the address of the workspace's page for the row; empty if it has none."""
        raise NotImplementedError

    @admin.display(description=_("workspace"))
    def workspace(self, row: Any) -> SafeString:
        if not (address := self.page_of(row)):
            return SafeString("–")
        return format_html('<a class="underline" href="{}">{}</a>', address, _("Open in the workspace"))

    # Django's own permissions are for whole tables, so they are not asked: any staff may look, and `get_queryset`
    # decides at which rows.
    def has_module_permission(self, request: HttpRequest) -> bool:
        user = request.user
        return bool(user.is_active and user.is_staff and (user.is_superuser or not self.of_administrators))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class FoundByTask(OfManagedProjects):
    """Is searched by the id of a task: to look for a part of it, every row of a large table would be read."""

    task_path = "task"
    search_help_text = _("The whole id of a task.")

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        wanted = search_term.strip()
        if not wanted:
            return queryset, False
        return queryset.filter(**{f"{self.task_path}__in": tasks_named(request, wanted)}), False


def tasks_named(request: HttpRequest, external_id: str) -> list[int]:
    """Returns the tasks with this id in the projects that the user manages."""
    projects = Project.objects.managed_by(user_of(request))
    return list(Task.objects.filter(project__in=projects, external_id=external_id).values_list("pk", flat=True))
