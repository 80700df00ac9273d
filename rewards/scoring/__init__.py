"""Scores every response with the champion, in short chunks, and answers small requests at once.

`pass_lanes` hands the chunks out, `chunks` scores one, `scoring_jobs` answers small requests, `model_cache` keeps
models in memory.
"""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from annotator.infrastructure.refusals import Refusal
from annotator.models import Project, Response
from rewards.models import RewardModel, Score, ScoringPass
from rewards.scoring.pass_lanes import start, start_due
from rewards.scoring.scoring_jobs import (
    MOST_ITEMS,
    ScoringFailed,
    ScoringTooSlow,
    answer,
    ask,
    resend_waiting,
    results_of,
)


def champion(project: Project) -> RewardModel:
    """Returns the project's champion; raises Refusal where it has none."""
    model = RewardModel.objects.filter(project=project, is_champion=True).first()
    if not model:
        text = _("%(project)s has no champion yet. Retrain it, or promote a model.")
        raise Refusal(text % {"project": project.name}, code="no_champion")
    return model


@dataclass(frozen=True)
class ScoringProgress:
    """The number of responses that a model has scored, of all in its project; `error` is why the last chunk failed."""

    scored: int
    total: int
    error: str = ""


@dataclass(frozen=True)
class Position:
    """How far a champion has come with the tasks of its project, in per cent; `error` is why the last chunk failed."""

    share: int
    error: str = ""


def position(model: RewardModel) -> Position:
    """Returns where the pass stands between the project's first task and its last, which costs the same for any number.

    `progress` counts the responses instead.
    """
    row = ScoringPass.objects.filter(reward_model=model).values_list("handed_out", "error").first()
    ids = model.project.tasks.order_by("project_id", "pk").values_list("pk", flat=True)
    first, last = ids.first(), ids.reverse().first()
    if row is None or first is None or last is None:
        return Position(0)
    handed_out, error = row
    if handed_out >= last:
        return Position(100, error)
    return Position(max(min(99, 100 * (handed_out - first + 1) // (last - first + 1)), 0), error)


def progress(model: RewardModel) -> ScoringProgress:
    """Counts the responses that the model has scored; those of retired tasks do not count."""
    current = Response.objects.filter(task__project=model.project_id).exclude(task__state="retired")
    scored = Score.objects.filter(reward_model=model).exclude(response__task__state="retired").count()
    error = ScoringPass.objects.filter(reward_model=model).values_list("error", flat=True).first()
    return ScoringProgress(scored, current.count(), error or "")
