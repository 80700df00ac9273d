"""The admin of the machine half: snapshots, runs and models, all read-only, with buttons for what may be done."""

import json
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotator.admin import FoundByTask, ManagedOnly, OfManagedProjects
from annotator.storage.hidden_paths import value_without_places
from annotator.templatetags.scales import level
from rewards import champions, learning_curve, reasons, registry, run_report, scoring
from rewards.admin.dashboard import headline
from rewards.evaluation import VALIDATION, newest_by_name
from rewards.models import ACTIVE_STATES, Evaluation, Policy, RewardModel, RunState, Score, Snapshot, TrainingRun
from rewards.policies import policy_report

REFRESH_SECONDS = 5
"""The seconds after which the page of an active run loads itself again."""

admin.site.index_title = _("Overview")


@admin.register(Snapshot)
class SnapshotAdmin(OfManagedProjects):
    read_only = True
    list_display = ["__str__", "project", "train_tasks", "validation_tasks", "labels", "to_be_forgotten", "created_at"]
    list_filter = [("project", ManagedOnly)]
    list_select_related = ["project"]
    fields = ["project", "content_hash", "path", "manifest", "created_at"]
    change_form_outer_before_template = "admin/_snapshot.html"

    @admin.display(description=_("tasks to be forgotten"))
    def to_be_forgotten(self, snapshot: Snapshot) -> str:
        """Returns the number of the snapshot's tasks that were redacted or deleted since."""
        return gettext("erased") if snapshot.erased_at else str(snapshot.redacted_tasks + snapshot.deleted_tasks or "")

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        snapshot = self.get_object(request, object_id)
        versions = RewardModel.objects.filter(run__snapshot=snapshot).order_by("version") if snapshot else []
        extra = {"snapshot": snapshot, "versions": versions}
        extra["held_out"] = run_report.held_out(snapshot.manifest) if isinstance(snapshot, Snapshot) else ""
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **extra})


@admin.register(TrainingRun)
class TrainingRunAdmin(OfManagedProjects):
    read_only = True
    list_display = ["id", "project", "kind", "state", "why", "attempt", "created_at", "finished_at"]
    list_filter = ["kind", "state", ("project", ManagedOnly)]
    list_select_related = ["project"]
    fields = [
        "project",
        "kind",
        "snapshot",
        "why",
        "requested_by",
        "settings",
        "config_hash",
        "seed",
        "code_version",
        "attempt",
        "worker",
    ]
    change_form_outer_before_template = "admin/_training_run.html"

    @admin.display(description=_("reason"))
    def why(self, run: TrainingRun) -> str:
        return reasons.in_words(run.reason)

    @admin.display(description=_("settings"))
    def settings(self, run: TrainingRun) -> str:
        """Returns the settings as JSON, without folders of this machine, which runs of older versions hold."""
        return json.dumps(value_without_places(run.config))

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        run = self.get_object(request, object_id)
        extra = _shown(run) if isinstance(run, TrainingRun) else {}
        answer = super().change_view(request, object_id, form_url, {**(extra_context or {}), **extra})
        if extra.get("active") and not extra.get("waits"):
            answer["Refresh"] = str(REFRESH_SECONDS)
        return answer


def _champions_metrics(model: RewardModel | None) -> dict[str, Any] | None:
    """Returns the measures of the champion that the model was judged against, on the same held-out rows."""
    if model is None or model.parent_id is None:
        return None
    hashes = model.evaluations.filter(name=VALIDATION).values("data_hash")
    same = Evaluation.objects.filter(reward_model=model.parent_id, name=VALIDATION, data_hash__in=hashes)
    metrics: dict[str, Any] | None = same.order_by("-pk").values_list("metrics", flat=True).first()
    return metrics


def _shown(run: TrainingRun) -> dict[str, Any]:
    """Returns what the page of a run shows above its fields."""
    model = RewardModel.objects.filter(run=run).first()
    return {
        "run": run,
        "active": run.state in ACTIVE_STATES,
        "waits": run.waits_for_decision(),
        "ended_badly": run.state in (RunState.FAILED, RunState.CANCELLED),
        "in_words": run_report.in_words(run.verdict),
        "verdict": run_report.verdict(run.verdict),
        "winner": run_report.winner(run.metrics),
        "held_out": run_report.held_out(run.snapshot.manifest) if run.snapshot else "",
        "curve": run_report.losses(run.losses),
        "curve_axes": run_report.axes(gettext("step"), gettext("loss")),
        "model": model,
        "policy": Policy.objects.filter(run=run).first(),
        "outlook": learning_curve.summary(run.metrics),
        "fine_tuned_outlook": learning_curve.summary(run.metrics, name="fine_tuned_curve"),
        "side_by_side": run_report.side_by_side(
            run.metrics, run.project.attribute_keys(), champion=_champions_metrics(model)
        ),
    }


@admin.register(Score)
class ScoreAdmin(FoundByTask):
    read_only = True
    task_path = "response__task"
    project_path = "reward_model__project"
    list_display = ["task", "response", "rounded", "uncertain", "by_attribute", "reward_model"]
    list_filter = [("reward_model__project", ManagedOnly), "reward_model__is_champion"]
    search_fields = ["response__task__external_id"]
    list_select_related = ["response__task", "reward_model__project"]
    # Rewards of different models do not compare, and those of all models in order would be sorted for each page.
    ordering = ["-pk"]
    sortable_by = ()
    show_full_result_count = False

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
    read_only = True
    list_display = ["__str__", "project", "champion", "created_at", "promoted_at"]
    list_filter = [("project", ManagedOnly), "is_champion"]
    list_select_related = ["project"]
    fields = ["project", "version", "run", "is_champion", "attribute_weights", "path"]
    change_form_outer_before_template = "admin/_reward_model.html"

    @admin.display(boolean=True, ordering="is_champion", description=_("champion"))
    def champion(self, model: RewardModel) -> bool:
        return model.is_champion

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        model = self.get_object(request, object_id)
        newest = newest_by_name(model.evaluations.all()) if isinstance(model, RewardModel) else {}
        headlines = {name: headline(evaluation, model.attributes) for name, evaluation in newest.items()}
        evaluations = [(name, summary) for name, summary in headlines.items() if summary]
        extra = {"model": model, "evaluations": evaluations, **(_origin(model) if model else {})}
        extra["against"] = champions.against(model) if isinstance(model, RewardModel) else ""
        extra["scoring"] = scoring.position(model) if isinstance(model, RewardModel) else None
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **extra})


@admin.register(Policy)
class PolicyAdmin(OfManagedProjects):
    read_only = True
    list_display = ["__str__", "project", "state", "win_rate", "base", "method", "created_at", "offered_at"]
    list_filter = [("project", ManagedOnly), "state"]
    list_select_related = ["project"]
    fields = ["project", "version", "run", "base", "method", "judge", "artifact_hash", "path"]
    change_form_outer_before_template = "admin/_policy.html"

    @admin.display(description=_("win rate"))
    def win_rate(self, policy: Policy) -> str:
        figure = policy_report.win_rate(policy)
        return f"{figure.value} ({figure.interval})" if figure else "–"

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        policy = self.get_object(request, object_id)
        extra: dict[str, Any] = {"policy": policy}
        if isinstance(policy, Policy):
            extra |= {
                "state": policy_report.state_of(policy),
                "reason": reasons.in_words(policy.reason),
                "figures": list(policy_report.figures(policy)),
                "lineage": policy_report.origin(policy),
                "erased": policy.is_erased(),
            }
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **extra})


def _origin(model: RewardModel) -> dict[str, Any]:
    """Returns the names and values of a model's origin for its page."""
    lineage = registry.lineage(model)
    parent = lineage["parent"]
    against = gettext("version %(version)s") % {"version": parent} if parent else gettext("no champion yet")
    names = {
        gettext("Snapshot"): lineage["snapshot"],
        gettext("Settings"): lineage["config_hash"],
        gettext("Code"): lineage["code_version"],
        gettext("Template"): lineage["template_hash"],
        gettext("Rendering"): lineage["rendering"],
        gettext("Language model"): lineage["backbone"],
        gettext("Seed"): str(lineage["seed"]),
        gettext("Compared with"): against,
    }
    files = sorted(lineage["files"].items())
    outlook = learning_curve.summary(model.run.metrics)
    return {"lineage": names.items(), "files": files, "snapshot": model.run.snapshot, "outlook": outlook}
