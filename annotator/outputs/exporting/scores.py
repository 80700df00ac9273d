"""The layout of scores: what the champion says about each response. For managers, who know which model wrote what."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Case, F, QuerySet, When
from django.db.models.fields.json import KeyTransform

from annotator.models import Project
from annotator.outputs.exporting.columns import INTEGER, NUMBER, TEXT, TIME, Type
from annotator.outputs.exporting.copied import Lines, copied, moment, numbers_object, response_name
from annotator.outputs.exporting.filters import Filters
from annotator.reading.search.criteria import champion_scores


def score_rows(project: Project, filters: Filters, _unseen: QuerySet[Any]) -> Lines:
    """Reads a row for each response that the champion has scored: its reward, and the scores that make it."""
    keys = _keys(project, filters)
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
            *(_OF_SEGMENTS.values() if _by_segment(project, filters) else ()),
        )
    )
    return copied(project, rows, list(score_columns(project, filters)), task="response__task", among=filters.among)


_OF_SEGMENTS: Mapping[str, Any] = {
    "segments": Case(When(segment_scores__isnull=False, then=F("response__segments"))),
    "aspects": KeyTransform("aspects", "reward_model__manifest"),
    "segment_scores": "segment_scores",
}


def _keys(project: Project, filters: Filters) -> list[str]:
    """Returns what a champion may score: the attributes of whichever version of the rubric it has learnt."""
    # A model that has learnt from segments alone scores a response by their means, aspect by aspect.
    return filters.keys(project) or [aspect.key for aspect in filters.aspects(project)]


def _by_segment(project: Project, filters: Filters) -> bool:
    """Returns whether the project's champion may score segments: of the rubric's aspects, or learnt from words."""
    champions = project.reward_models.filter(is_champion=True, manifest__has_key="aspects")
    return bool(filters.aspects(project)) or project.learn_evidence or champions.exists()


def score_columns(project: Project, filters: Filters) -> Mapping[str, Type]:
    head: dict[str, Type] = {"task": TEXT, "response": TEXT, "model": TEXT, "reward": NUMBER}
    of_segments: dict[str, Type] = {"segments": [[INTEGER]], "aspects": [TEXT], "segment_scores": [[NUMBER]]}
    scores = dict.fromkeys(_keys(project, filters), NUMBER)
    tail: dict[str, Type] = {"scores": scores, "version": INTEGER, "scored_at": TIME}
    return {**head, **tail, **(of_segments if _by_segment(project, filters) else {})}


def count_scores(project: Project, filters: Filters) -> int:
    return int(_scores(project, filters).count())


def _scores(project: Project, filters: Filters) -> Any:
    scores = filters.of_tasks(champion_scores().by_champion(project), project, "response__task__")
    return filters.of_time(scores, "created_at")
