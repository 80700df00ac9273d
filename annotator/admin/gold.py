"""Gold tasks and the experts' ratings. They come by import; what the experts say can be mended here."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest
from unfold.admin import StackedInline

from annotator.admin.scoping import ManagedOnly, OfManagedProjects
from annotator.importing.field_checks import BadRow
from annotator.importing.gold_rows import expert_of
from annotator.models import ExpertRating, Gold


class ExpertRatingForm(forms.ModelForm):  # type: ignore[type-arg]
    """Holds the scores to the project's attributes."""

    def clean_scores(self) -> Any:
        scores = self.cleaned_data["scores"]
        attributes = self.instance.gold.task.project.attribute_keys()
        try:
            expert_of({"scores": scores}, "The rating", attributes)
        except BadRow as wrong:
            raise forms.ValidationError(str(wrong)) from wrong
        return scores


class ExpertRatingInline(StackedInline):
    model = ExpertRating
    form = ExpertRatingForm
    extra = 0
    fields = ["text", "scores", "explanation"]
    readonly_fields = ["text"]
    can_delete = False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description="response")
    def text(self, rating: ExpertRating) -> str:
        return rating.response.text


@admin.register(Gold)
class GoldAdmin(OfManagedProjects):
    project_path = "task__project"
    recorded_as = "gold"
    list_display = ["task", "project", "use", "rated"]
    list_filter = ["use", ("task__project", ManagedOnly)]
    search_fields = ["task__external_id"]
    list_select_related = ["task__project"]
    fields = ["task", "use"]
    readonly_fields = ["task"]
    inlines = [ExpertRatingInline]

    def recorded_name(self, row: Gold) -> str:
        return row.task.external_id

    @transaction.atomic
    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        before = dict(form.instance.ratings.values_list("pk", "scores"))
        super().save_formset(request, form, formset, change)
        for rating, fields in formset.changed_objects:
            # Of the explanation only that it changed: it may repeat the response.
            changed = {"scores": [before[rating.pk], rating.scores]}
            self.record_change("rating_changed", form.instance, fields=fields, changed=changed)

    @admin.display(ordering="task__project")
    def project(self, gold: Gold) -> str:
        return gold.task.project.name

    @admin.display(description="rated by")
    def rated(self, gold: Gold) -> int:
        return gold.task.assignments.submitted().count()
