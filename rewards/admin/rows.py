"""The rows of the machine half, to be read: snapshots, runs, models, policies and scores."""

from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from annotator.admin import FoundByTask, ManagedOnly, OfManagedProjects
from annotator.admin.rows import page_of_task
from annotator.templatetags.scales import level
from rewards import reasons
from rewards.models import Policy, RewardModel, Score, Snapshot, TrainingRun

admin.site.index_title = _("Overview")


@admin.register(Snapshot)
class SnapshotAdmin(OfManagedProjects):
    list_display = ["__str__", "project", "train_tasks", "validation_tasks", "labels", "created_at"]
    details = ["content_hash", "redacted_tasks", "deleted_tasks", "erased_at"]
    list_filter = [("project", ManagedOnly)]
    list_select_related = ["project"]

    def page_of(self, row: Any) -> str:
        """Returns the address of the newest model that learnt from the snapshot, or of the project's models."""
        newest = RewardModel.objects.filter(run__snapshot=row).order_by("-version").values_list("pk", flat=True).first()
        slug = row.project.slug
        return reverse("model-version", args=[slug, newest]) if newest else reverse("models", args=[slug])


@admin.register(TrainingRun)
class TrainingRunAdmin(OfManagedProjects):
    page = ("run", "project.slug", "pk")
    list_display = ["id", "project", "kind", "state", "why", "attempt", "created_at", "finished_at"]
    details = ["snapshot", "requested_by", "config_hash", "seed", "code_version", "worker"]
    list_filter = ["kind", "state", ("project", ManagedOnly)]
    list_select_related = ["project"]

    @admin.display(description=_("reason"))
    def why(self, run: TrainingRun) -> str:
        return reasons.in_words(run.reason)


@admin.register(Score)
class ScoreAdmin(FoundByTask):
    task_path = "response__task"
    project_path = "reward_model__project"
    list_display = ["task", "response", "rounded", "uncertain", "by_attribute", "reward_model"]
    list_filter = [("reward_model__project", ManagedOnly), "reward_model__is_champion"]
    search_fields = ["response__task__external_id"]
    list_select_related = ["response__task__project", "reward_model__project"]
    # Rewards of different models do not compare, and those of all models in order would be sorted for each page.
    ordering = ["-pk"]
    sortable_by = ()
    show_full_result_count = False

    def page_of(self, row: Any) -> str:
        return page_of_task(row.response.task)

    @admin.display(description=_("task"))
    def task(self, score: Score) -> str:
        return score.response.task.external_id

    @admin.display(description=_("reward"))
    def rounded(self, score: Score) -> str:
        return f"{score.reward:.2f}"

    @admin.display(description=_("uncertainty"))
    def uncertain(self, score: Score) -> str:
        return "–" if score.uncertainty is None else f"{score.uncertainty:.3f}"

    @admin.display(description=_("expected levels"))
    def by_attribute(self, score: Score) -> str:
        return ", ".join(f"{key} {level(score.scores[key]):.2f}" for key in score.reward_model.attributes)


@admin.register(RewardModel)
class RewardModelAdmin(OfManagedProjects):
    page = ("model-version", "project.slug", "pk")
    list_display = ["__str__", "project", "is_champion", "created_at", "promoted_at"]
    details = ["version", "run", "parent", "attribute_weights", "license"]
    list_filter = [("project", ManagedOnly), "is_champion"]
    list_select_related = ["project"]


@admin.register(Policy)
class PolicyAdmin(OfManagedProjects):
    page = ("policy", "project.slug", "pk")
    list_display = ["__str__", "project", "state", "base", "method", "created_at", "offered_at"]
    details = ["version", "run", "judge", "artifact_hash"]
    list_filter = [("project", ManagedOnly), "state"]
    list_select_related = ["project"]
