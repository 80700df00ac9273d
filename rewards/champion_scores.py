"""What the champion says about tasks, for the human half's pages, which ask by settings.CHAMPION_SCORES."""

from datetime import datetime

from django.db.models import Exists, Min, OuterRef, QuerySet

from annotator.models import Project, Task
from rewards.models import Score


def with_rewards(tasks: QuerySet[Task], project: Project, *, least: float | None, most: float | None) -> QuerySet[Task]:
    """Selects tasks of which the champion gives at least one response a reward from `least` to `most`."""
    scores = Score.objects.filter(reward_model__in=_champion(project), response__task=OuterRef("pk"))
    if least is not None:
        scores = scores.filter(reward__gte=least)
    if most is not None:
        scores = scores.filter(reward__lte=most)
    return tasks.filter(Exists(scores))


def rewards_of(project: Project, tasks: list[int]) -> dict[int, float]:
    """Returns the champion's rewards of the tasks' responses, by response."""
    scores = Score.objects.filter(reward_model__in=_champion(project), response__task__in=tasks)
    return dict(scores.values_list("response", "reward"))


def scored(task: Task) -> list[tuple[datetime, int]]:
    """Returns when which version of the project's models scored the task, the earliest first."""
    scores = Score.objects.filter(response__task=task).values("reward_model__version").annotate(at=Min("created_at"))
    return sorted((row["at"], row["reward_model__version"]) for row in scores)


def _champion(project: Project) -> list[int]:
    # Read first: PostgreSQL plans better with the number than with a subquery.
    return list(project.reward_models.filter(is_champion=True).values_list("pk", flat=True))
