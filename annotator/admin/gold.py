"""Gold tasks and the experts' ratings. They come by import; what the experts say is mended here, and nowhere else."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db import transaction
from django.db.models import Count, Q
from django.http import HttpRequest
from django.utils.translation import gettext_lazy
from unfold.admin import StackedInline
from unfold.widgets import UnfoldAdminSelectWidget

from annotator.admin.scoping import ManagedOnly, OfManagedProjects, Recorded
from annotator.models import Assignment, Attribute, ExpertRating, Gold, Project
from annotator.pages.projects.seen import SeenFieldsForm
from annotator.templatetags.scales import level


class ExpertRatingForm(SeenFieldsForm):
    """Asks for a level of each attribute and stores scores. A subclass names the project's attributes."""

    attributes: ClassVar[Sequence[Attribute]] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for attribute in self.attributes:
            self.initial.setdefault(_field(attribute), (self.instance.scores or {}).get(attribute.key))

    def save(self, commit: bool = True) -> Any:
        names = {attribute.key: _field(attribute) for attribute in self.attributes}
        changed, given, stored = set(self.changed_data), self.cleaned_data, self.initial
        self.instance.scores = {key: (given if name in changed else stored)[name] for key, name in names.items()}
        return super().save(commit)


def _field(attribute: Attribute) -> str:
    return f"level_{attribute.key}"


def _levels(attribute: Attribute) -> forms.TypedChoiceField:
    choices = [(score, f"{level(score)}: {text}") for score, text in enumerate(attribute.shown_levels)]
    return forms.TypedChoiceField(
        choices=choices, coerce=int, label=attribute.shown_name, widget=UnfoldAdminSelectWidget
    )


class ExpertRatingInline(StackedInline):
    model = ExpertRating
    extra = 0
    readonly_fields = ["text"]
    can_delete = False

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["text", *map(_field, _attributes(obj)), "explanation"]

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        attributes = _attributes(obj)
        fields: dict[str, Any] = {_field(attribute): _levels(attribute) for attribute in attributes}
        # A class for each request: which fields the form has depends on the project's rubric.
        form = type("LevelsForm", (ExpertRatingForm,), {"attributes": attributes, **fields})
        return super().get_formset(request, obj, form=form, **kwargs)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description=gettext_lazy("response"))
    def text(self, rating: ExpertRating) -> str:
        return rating.response.text


def _attributes(gold: Gold | None) -> Sequence[Attribute]:
    return gold.task.project.attributes_for() if gold else ()


@admin.register(Gold)
class GoldAdmin(OfManagedProjects, Recorded):
    project_path = "task__project"
    recorded_as = "gold"
    list_display = ["task", "project", "use", "rated"]
    list_filter = ["use", ("task__project", ManagedOnly)]
    search_fields = ["task__external_id"]
    list_select_related = ["task__project"]
    inlines = [ExpertRatingInline]

    def get_queryset(self, request: HttpRequest) -> Any:
        submitted = Q(task__assignments__state=Assignment.State.SUBMITTED)
        return super().get_queryset(request).annotate(submitted=Count("task__assignments", filter=submitted))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["task", "use"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["task"]

    def recorded_name(self, row: Gold) -> str:
        return row.task.external_id

    def recorded_project(self, row: Gold) -> Project:
        return row.task.project

    @transaction.atomic
    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        before = dict(form.instance.ratings.values_list("pk", "scores"))
        super().save_formset(request, form, formset, change)
        for rating, fields in formset.changed_objects:
            # The entry says only that the explanation changed, not how: it may repeat the response's text.
            changed = {"scores": [before[rating.pk], rating.scores]}
            self.record_change("rating_changed", form.instance, fields=fields, changed=changed)

    @admin.display(ordering="task__project", description=gettext_lazy("project"))
    def project(self, gold: Gold) -> str:
        return gold.task.project.name

    @admin.display(description=gettext_lazy("number of ratings"))
    def rated(self, gold: Any) -> int:
        return int(gold.submitted)
