"""Shows the rows of projects to be read, and managers those of their own projects alone.

What a form of the admin changes gets an audit entry. Stage functions record what they do by themselves.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from django.contrib import admin
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin

from annotator.infrastructure import audit
from annotator.models import Project, Task
from annotator.pages.projects.seen import SeenFieldsForm
from annotator.reading.access import user_of


class Titled(ModelAdmin):
    """Is called what the sidebar calls it, where Django would say "Select user to change"."""

    list_title: Any = ""

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        title = self.list_title or capfirst(self.opts.verbose_name_plural)
        return super().changelist_view(request, {"title": title, **(extra_context or {})})


class Recorded(Titled):
    """Records what its own form adds, changes and deletes, under `recorded_as`: project.changed and the like."""

    form: Any = SeenFieldsForm
    recorded_as = ""

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Saves and records only what the form changed: the rest of the row may have changed since it was read."""
        if not change:
            super().save_model(request, obj, form, change)
            self.record_change("created", obj)
            return
        # Read again: the form has already put the new values on `obj`.
        before = audit.fields_of(type(obj)._default_manager.get(pk=obj.pk))
        names = self.changed_fields(obj, form)
        obj.save(update_fields=names)
        after = {name: value for name, value in audit.fields_of(obj).items() if name in names}
        # Lists of other rows as well, such as an account's permissions.
        listed = {field.name for field in obj._meta.many_to_many} & set(form.changed_data)
        lists: dict[str, audit.JSON] = {
            name: [[str(item) for item in items] for items in (form.initial.get(name, []), form.cleaned_data[name])]
            for name in sorted(listed)
        }
        if changed := audit.differences(before, after) | lists:
            self.record_change("changed", obj, changed=changed)

    def changed_fields(self, row: Any, form: Any) -> list[str]:
        """Returns the names of the row's own fields that the form changed."""
        return [field.name for field in row._meta.concrete_fields if field.name in form.changed_data]

    @transaction.atomic
    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.record_change("deleted", obj)
        super().delete_model(request, obj)

    @transaction.atomic
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            self.record_change("deleted", row)
        super().delete_queryset(request, queryset)

    def record_change(self, verb: str, row: Model, **details: audit.JSON) -> None:
        subject = f"{self.recorded_as} {self.recorded_name(row)}"
        audit.record(f"{self.recorded_as}.{verb}", subject, project=self.recorded_project(row), **details)

    def recorded_name(self, row: Any) -> str:
        return str(row)

    def recorded_project(self, row: Any) -> Project | None:
        """Returns the project whose managers may read the entry, if there is one."""
        return None


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


class ReadOnly(ModelAdmin):
    """Rows that nobody changes here. Rows `of_administrators` are shown to superusers alone."""

    of_administrators = False
    list_per_page = 50

    # Django's own permissions are for whole tables, so they are not asked: any staff may look, and `get_queryset`
    # decides at which rows.
    def has_module_permission(self, request: HttpRequest) -> bool:
        user = request.user
        return bool(user.is_active and user.is_staff and (user.is_superuser or not self.of_administrators))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_add_permission = has_delete_permission = has_change_permission


class OfManagedProjects(ReadOnly, Titled):
    """Shows the rows of the projects that the user manages, to be read.

    `project_path` leads from a row to its project, `details` names what a row's page shows beside the columns of the
    list, `page` the workspace's page of a row and what of the row stands in its address.
    """

    project_path = "project"
    details: Sequence[str] = ()
    page: Sequence[str] = ()
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
        """Returns the address of the workspace's page for the row, by `page`; empty if it has none."""
        name, *parts = self.page
        return reverse(name, args=[attrgetter(part)(row) for part in parts])

    @admin.display(description=_("workspace"))
    def workspace(self, row: Any) -> SafeString:
        if not (address := self.page_of(row)):
            return SafeString("–")
        return format_html('<a class="underline" href="{}">{}</a>', address, _("Open in the workspace"))


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
