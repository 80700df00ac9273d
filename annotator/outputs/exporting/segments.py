"""The layouts of segments: a row for each segment and rater, a row for each response with lists, and steps for TRL."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db.models import F, Func, IntegerField, QuerySet, Sum
from django.db.models.functions import Coalesce

from annotator.models import Label, Project
from annotator.outputs.exporting.columns import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    Row,
    Type,
    counted_ratings,
    current_ratings,
)
from annotator.outputs.exporting.copied import copied, moment, numbers_object, prompt_text, response_name
from annotator.outputs.exporting.filters import Filters
from annotator.reading.pseudonyms import name_of

RATING = "rating"
"""The source of a row that one rater made; others are labels, whose source is the label's."""
_CUT = Coalesce("cut", "response__segments")


def aspects_of(project: Project, filters: Filters) -> list[str]:
    return [aspect.key for aspect in filters.aspects(project)]


def segment_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a row for each segment and rater, then one for each segment with a label.

    `start` and `end` count characters of the response, from 0 and without the end. A score is null where the aspect
    does not apply. `scores` of a label are its means, rounded to whole numbers.
    """
    aspects = aspects_of(project, filters)
    for row in _ratings(project, filters, unseen):
        yield from _rows_of(row | {"source": RATING}, aspects)
    for row in _labelled(project, filters):
        yield from _rows_of(row | {"annotator": None, "counts": True}, aspects)


def _rows_of(row: Row, aspects: Sequence[str]) -> Iterator[Row]:
    means = row.get("means")
    names_of_means = [f"{aspect}_mean" for aspect in aspects]
    places = [row["aspects"].index(aspect) if aspect in row["aspects"] else -1 for aspect in aspects]
    for index, ((start, end), values) in enumerate(zip(row["cut"], row["scores"], strict=True)):
        yield {
            "task": row["task"],
            "response": row["response"],
            "segment": index,
            "start": start,
            "end": end,
            "text": row["text"][start:end],
            "annotator": row["annotator"],
            "source": row["source"],
            "scores": _by_aspect(aspects, places, values),
            "means": _by_aspect(names_of_means, places, means[index]) if means else {},
            "counts": row["counts"],
            "rubric_version": row["rubric_version"],
            "at": row["at"],
        }


def _by_aspect(names: Sequence[str], places: Sequence[int], values: Sequence[Any]) -> dict[str, Any]:
    return {name: None if place < 0 else values[place] for name, place in zip(names, places, strict=True)}


def segment_columns(project: Project, filters: Filters) -> Mapping[str, Type]:
    aspects = aspects_of(project, filters)
    head: dict[str, Type] = {"task": TEXT, "response": TEXT, "segment": INTEGER, "start": INTEGER, "end": INTEGER}
    scores = dict.fromkeys(aspects, INTEGER)
    means = {f"{aspect}_mean": NUMBER for aspect in aspects}
    tail: dict[str, Type] = {"scores": scores, "means": means, "counts": BOOLEAN, "rubric_version": INTEGER}
    return {**head, "text": TEXT, "annotator": TEXT, "source": TEXT, **tail, "at": TIME}


def count_segments(project: Project, filters: Filters) -> int:
    ratings = counted_ratings(project, filters).exclude(segment_scores=None)
    return _how_many(ratings) + _how_many(_labels(project, filters).order_by())


def _how_many(rows: QuerySet[Any]) -> int:
    length = Func(F("segment_scores"), function="jsonb_array_length", output_field=IntegerField())
    return int(rows.aggregate(number=Sum(length))["number"] or 0)


def _ratings(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Iterator[Row]:
    ratings = filters.of_time(current_ratings(project, filters, unseen), "annotation__submitted_at")
    rows = (
        ratings.exclude(segment_scores=None)
        .order_by("response__task", "annotation", "response__position")
        .values_list(
            "response__task__external_id",
            response_name("response__"),
            "response__text",
            _CUT,
            name_of("annotation__assignment__annotator", "response__task__project"),
            "annotation__aspects",
            "segment_scores",
            "annotation__assignment__counts",
            "annotation__rubric_version",
            moment("annotation__submitted_at"),
        )
    )
    names = ["task", "response", "text", "cut", "annotator", "aspects", "scores", "counts", "rubric_version", "at"]
    return iter(copied(project, rows, names, task="response__task", among=filters.among))


def _labels(project: Project, filters: Filters) -> QuerySet[Label]:
    # By the task, whose ids bound each part: by its own project, all labels might be read for each of them.
    of_project = Label.objects.in_force_while_in_use().filter(response__task__project=project)
    labels = filters.of_labels(of_project)
    chosen: QuerySet[Label] = filters.of_tasks(labels, project, "response__task__").exclude(segment_scores=None)
    return chosen.order_by("response__task", "response__position")


def _labelled(project: Project, filters: Filters) -> Iterator[Row]:
    keys = filters.keys(project)
    columns: dict[str, Any] = {
        "task": "response__task__external_id",
        "response": response_name("response__"),
        "text": "response__text",
        "cut": _CUT,
        "aspects": "aspects",
        "scores": "segment_scores",
        "means": "segment_means",
        "source": "source",
        "rubric_version": "rubric_version",
        "at": moment("made_at"),
        "prompt": prompt_text("response__task__conversation"),
        "whole": numbers_object("scores", keys),
    }
    rows = _labels(project, filters).values_list(*columns.values())
    return iter(copied(project, rows, list(columns), task="response__task", among=filters.among))


# A row for each response ----------------------------------------------------------------------------------


def helpsteer2d_rows(project: Project, filters: Filters, _unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a row for each response whose segments have labels, with a list for each aspect, in their order."""
    aspects = aspects_of(project, filters)
    for row in _labelled(project, filters):
        columns = dict(zip(row["aspects"], zip(*row["scores"], strict=True), strict=True)) if row["scores"] else {}
        yield {
            "prompt": row["prompt"],
            "response": row["text"],
            "segments": [row["text"][start:end] for start, end in row["cut"]],
            "ranges": row["cut"],
            **{aspect: list(columns.get(aspect, [None] * len(row["cut"]))) for aspect in aspects},
            **row["whole"],
        }


def helpsteer2d_columns(project: Project, filters: Filters) -> Mapping[str, Type]:
    texts: dict[str, Type] = {"prompt": TEXT, "response": TEXT, "segments": [TEXT], "ranges": [[INTEGER]]}
    lists: dict[str, Type] = {aspect: [INTEGER] for aspect in aspects_of(project, filters)}
    return {**texts, **lists, **dict.fromkeys(filters.keys(project), INTEGER)}


def count_segmented(project: Project, filters: Filters) -> int:
    return int(_labels(project, filters).order_by().count())


# Steps for TRL --------------------------------------------------------------------------------------------


def stepwise_rows(project: Project, filters: Filters, _unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields TRL's stepwise supervision: a row for each response, with its segments and whether each is good.

    A segment is good if its mean on the deciding aspect lies in the upper half of the scale, or in its middle. A
    response with a segment to which this aspect does not apply is left out. Where people rated under a version of the
    rubric without this aspect, the first one of theirs takes its place.
    """
    aspects = sorted(filters.aspects(project), key=lambda one: one.key != project.spread_attribute)
    for row in _labelled(project, filters):
        deciding = next((one for one in aspects if one.key in row["aspects"]), None)
        if deciding is None:
            continue
        place, middle = row["aspects"].index(deciding.key), (len(deciding.levels) - 1) / 2
        means = [values[place] for values in row["means"]]
        if None not in means:
            texts = [row["text"][start:end] for start, end in row["cut"]]
            yield {"prompt": row["prompt"], "completions": texts, "labels": [mean >= middle for mean in means]}


def stepwise_columns(_project: Project, _filters: Filters) -> Mapping[str, Type]:
    return {"prompt": TEXT, "completions": [TEXT], "labels": [BOOLEAN]}
