"""What the models say about tasks, for the human half, which asks by settings.CHAMPION_SCORES."""

from django.db import connection
from django.db.models import Count, Exists, F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from annotator.infrastructure.db.retries import in_transaction
from annotator.models import Project, Task
from annotator.reading.search.criteria import Difference, GivenReward, only
from rewards.models import RewardModel, Score

FEW = 15_000


def with_rewards(tasks: QuerySet[Task], project: Project, *, least: float | None, most: float | None) -> QuerySet[Task]:
    """Selects tasks of which the champion gives at least one response a reward from `least` to `most`."""
    scores = by_champion(project)
    if least is not None:
        scores = scores.filter(reward__gte=least)
    if most is not None:
        scores = scores.filter(reward__lte=most)
    # The index of rewards is asked first. If it names few, the tasks need not be looked at one by one.
    named = list(scores.values_list("response__task", flat=True)[: FEW + 1])
    if len(named) <= FEW:
        return only(tasks, named)
    return tasks.filter(Exists(scores.filter(response__task=OuterRef("pk"))))


def rewards_of(project: Project, tasks: list[int]) -> dict[int, float]:
    """Returns the champion's rewards of the tasks' responses, by response."""
    champion = {"reward_model__project": project, "reward_model__is_champion": True}
    scores = Score.objects.filter(**champion, response__task__in=tasks)
    return dict(scores.values_list("response", "reward"))


def by_champion(project: Project) -> QuerySet[Score]:
    """Returns the champion's scores of all responses of the project."""
    # Read first: PostgreSQL plans better with the number than with a subquery.
    return Score.objects.filter(
        reward_model__in=list(project.reward_models.filter(is_champion=True).values_list("pk", flat=True))
    )


def scores_of(task: Task) -> list[GivenReward]:
    """Returns every reward that a model of the project gave one of the task's responses, the earliest first."""
    scores = Score.objects.filter(response__task=task).select_related("reward_model").order_by("created_at", "pk")
    return [
        GivenReward(
            response=score.response_id,
            reward=score.reward,
            version=score.reward_model.version,
            by_champion=score.reward_model.is_champion,
            at=score.created_at,
            segments=score.segment_scores or (),
        )
        for score in scores.defer("scores", "reward_model__manifest")
    ]


# How many there are -----------------------------------------------------------------------------------------


def score_count_differences(project: Project) -> list[Difference]:
    """Returns the models whose stored number of scores is not what counting them gives."""
    scores = Score.objects.filter(reward_model=OuterRef("pk")).values("reward_model")
    number = Coalesce(Subquery(scores.annotate(number=Count("pk")).values("number")), 0)
    models = RewardModel.objects.filter(project=project).annotate(counted=number).exclude(scored=F("counted"))
    return [
        Difference(f"model version {version}", "scored", stored, counted)
        for version, stored, counted in models.order_by("pk").values_list("version", "scored", "counted")
    ]


# Adds the difference instead of setting the number, so that a score that is stored meanwhile is not lost.
_RECOUNT = """
UPDATE rewards_rewardmodel m SET scored = m.scored + counted.difference FROM (
    SELECT m.id, (SELECT count(*) FROM rewards_score s WHERE s.reward_model_id = m.id) - m.scored AS difference
    FROM rewards_rewardmodel m WHERE m.project_id = %s
) counted WHERE counted.id = m.id AND counted.difference <> 0
"""


@in_transaction
def recount_scores(project: Project) -> None:
    """Stores how many responses each model of the project has scored."""
    with connection.cursor() as cursor:
        cursor.execute(_RECOUNT, [project.pk])
