"""The layout of scores: what the champion says about each response. For managers, who know which model wrote what."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from annotator.exporting.columns import INTEGER, NUMBER, TEXT, TIME, Type
from annotator.exporting.copied import Lines, copied, moment, numbers_object, response_name
from annotator.exporting.filters import Filters
from annotator.models import Project
from annotator.search.criteria import champion_scores


def score_rows(project: Project, filters: Filters, _unseen: QuerySet[Any]) -> Lines:
    """Reads a row for each response that the champion has scored: its reward, and the scores that make it."""
    keys = project.attribute_keys()
    rows = (
        _scores(project, filters)
        .order_by("response__task", "response__position")
        .values_list(
            "response__task__external_id",
            response_name("response__"),
            "response__model",
            "reward",
            numbers_object("scores", keys),
            "reward_model__version",
            moment("created_at"),
        )
    )
    return copied(project, rows, list(_columns(keys)), task="response__task", among=filters.among)


def score_columns(project: Project) -> Mapping[str, Type]:
    return _columns(project.attribute_keys())


def _columns(keys: Sequence[str]) -> dict[str, Type]:
    head: dict[str, Type] = {"task": TEXT, "response": TEXT, "model": TEXT, "reward": NUMBER}
    scores = dict.fromkeys(keys, NUMBER)
    return {**head, "scores": scores, "version": INTEGER, "scored_at": TIME}


def count_scores(project: Project, filters: Filters) -> int:
    return int(_scores(project, filters).count())


def _scores(project: Project, filters: Filters) -> Any:
    scores = filters.of_tasks(champion_scores().by_champion(project), project, "response__task__")
    return filters.of_time(scores, "created_at")
