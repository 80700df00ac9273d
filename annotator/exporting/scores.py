"""The layout of scores: what the champion says about each response. For managers, who know which model wrote what."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import F, QuerySet

from annotator.exporting.columns import CHUNK, INTEGER, NUMBER, TEXT, TIME, Row, Type, response_name
from annotator.exporting.filters import Filters
from annotator.models import Project
from annotator.search.criteria import champion_scores


def score_rows(project: Project, filters: Filters, _unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a row for each response that the champion has scored: its reward, and the scores that make it."""
    rows = (
        _scores(project, filters)
        .order_by("response__task", "response__position")
        .values(
            "reward",
            "scores",
            task=F("response__task__external_id"),
            imported_id=F("response__external_id"),
            position=F("response__position"),
            of_model=F("response__model"),
            version=F("reward_model__version"),
            scored_at=F("created_at"),
        )
    )
    keys = project.attribute_keys()
    for row in rows.iterator(chunk_size=CHUNK):
        yield {
            "task": row["task"],
            "response": response_name(row["imported_id"], row["position"]),
            "model": row["of_model"],
            "reward": row["reward"],
            "scores": {key: row["scores"][key] for key in keys if key in row["scores"]},
            "version": row["version"],
            "scored_at": row["scored_at"],
        }


def score_columns(project: Project) -> Mapping[str, Type]:
    head: dict[str, Type] = {"task": TEXT, "response": TEXT, "model": TEXT, "reward": NUMBER}
    scores = dict.fromkeys(project.attribute_keys(), NUMBER)
    return {**head, "scores": scores, "version": INTEGER, "scored_at": TIME}


def count_scores(project: Project, filters: Filters) -> int:
    return int(_scores(project, filters).count())


def _scores(project: Project, filters: Filters) -> Any:
    scores = filters.of_tasks(champion_scores().by_champion(project), project, "response__task__")
    return filters.of_time(scores, "created_at")
