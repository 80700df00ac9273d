"""Writes an audit entry for what a form of the admin changes. Stage functions record what they do by themselves."""

from typing import Any

from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.text import capfirst
from unfold.admin import ModelAdmin

from annotator import audit
from annotator.forms.seen import SeenFieldsForm
from annotator.models import Project


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
        if changed := audit.differences(before, after) | _of_lists(form):
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


def _of_lists(form: Any) -> dict[str, audit.JSON]:
    """Returns what a form changed about lists of other rows, such as an account's permissions."""
    fields = {field.name for field in form.instance._meta.many_to_many} & set(form.changed_data)
    before = {name: [str(item) for item in form.initial.get(name, [])] for name in fields}
    return {name: [before[name], [str(item) for item in form.cleaned_data[name]]] for name in sorted(fields)}
