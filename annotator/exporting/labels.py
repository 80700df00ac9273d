"""The layouts of labels: HelpSteer2's rows, and the ratings behind them side by side (docs/formats.md)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import F, Q, QuerySet, Value
from django.db.models.fields.json import KeyTransform

from annotator.exporting.columns import INTEGER, NUMBER, TEXT, TIME, Row, Type, counted_ratings, current_ratings
from annotator.exporting.copied import Lines, copied, moment, numbers_of, prompt_text, response_name
from annotator.exporting.filters import Filters
from annotator.importing.prompts import is_held_out
from annotator.models import Label, Project


def helpsteer2_rows(project: Project, filters: Filters, _unseen: QuerySet[Any]) -> Lines:
    """Reads a row for each labelled response, with a whole number for each attribute. A task's rows are adjacent."""
    return copied(project, *helpsteer2_query(project, filters), task="response__task", among=filters.among, sparse=True)


def rows_of_a_side(project: Project, filters: Filters, _unseen: QuerySet[Any], *, held_out: bool) -> Iterator[Row]:
    """Yields the rows of `helpsteer2_rows` whose prompts snapshots hold out, or those of the others."""
    rows, names = helpsteer2_query(project, filters, prompt_hash=F("response__task__prompt_hash"))
    for row in copied(project, rows, names, task="response__task", among=filters.among, sparse=True):
        if is_held_out(row.pop("prompt_hash"), project.validation_share) == held_out:
            yield row


def helpsteer2_query(project: Project, filters: Filters, **more: Any) -> tuple[QuerySet[Any, Any], list[str]]:
    """Returns the query of `helpsteer2_rows` and the names of its columns; `more` are further columns by name."""
    keys = project.attribute_keys()
    scores = numbers_of("scores", keys)
    prompt = prompt_text("response__task__conversation")
    rows = _labels(project, filters).values_list(prompt, "response__text", *scores, *more.values())
    return rows, ["prompt", "response", *keys, *more]


def _labels(project: Project, filters: Filters) -> QuerySet[Label]:
    labels = filters.of_labels(Label.objects.in_force_while_in_use().for_project(project.pk))
    chosen: QuerySet[Label] = filters.of_tasks(labels, project, "response__task__")
    return chosen.order_by("response__task", "response__position")


def helpsteer2_columns(project: Project) -> Mapping[str, Type]:
    return {"prompt": TEXT, "response": TEXT, **dict.fromkeys(project.attribute_keys(), INTEGER)}


def label_rows(project: Project, filters: Filters, _unseen: QuerySet[Any]) -> Lines:
    """Reads a row for each labelled response with its texts, ids and model, and each attribute's score and mean.

    A score is the mean, rounded to a whole number; halves are rounded up.
    """
    keys = project.attribute_keys()
    rows = _labels(project, filters).values_list(
        "response__task__external_id",
        response_name("response__"),
        "response__task__language",
        "response__model",
        prompt_text("response__task__conversation"),
        "response__text",
        *numbers_of("scores", keys),
        *numbers_of("means", keys),
        "source",
        moment("made_at"),
    )
    return copied(project, rows, list(_label_columns(keys)), task="response__task", among=filters.among, sparse=True)


def label_columns(project: Project) -> Mapping[str, Type]:
    return _label_columns(project.attribute_keys())


def _label_columns(keys: Sequence[str]) -> dict[str, Type]:
    texts = dict.fromkeys(("task", "response", "language", "model", "prompt", "text"), TEXT)
    means = {f"{key}_mean": NUMBER for key in keys}
    return {**texts, **dict.fromkeys(keys, INTEGER), **means, "source": TEXT, "made_at": TIME}


def count_labels(project: Project, filters: Filters) -> int:
    return int(_labels(project, filters).order_by().count())


def disagreement_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Lines:
    """Reads a row for each rated response. Each attribute is a list with one rating for each rater that counts.

    The raters have the same order in all lists of a row. A time selects the responses that were rated in it, and their
    lists are complete.
    """
    rows, names = disagreement_query(project, filters, unseen)
    return copied(project, rows, names, task="response__task", among=filters.among)


def disagreement_query(
    project: Project, filters: Filters, unseen: QuerySet[Any], **more: Any
) -> tuple[QuerySet[Any, Any], list[str]]:
    """Returns the query of `disagreement_rows` and the names of its columns; `more` are further columns by name."""
    ratings = current_ratings(project, filters, unseen).filter(annotation__assignment__counts=True)
    if filters.ask_for_a_time():
        news = filters.of_time(ratings, "annotation__submitted_at")
        ratings = ratings.filter(response__in=news.values("response"))
    keys = project.attribute_keys()
    lists = {
        f"list_{number}": ArrayAgg(
            KeyTransform(key, "scores"),
            filter=Q(scores__has_key=key),
            order_by=("annotation__submitted_at", "annotation"),
            default=Value([]),
        )
        for number, key in enumerate(keys)
    }
    others = {f"more_{number}": column for number, column in enumerate(more.values())}
    by_response = ratings.annotate(prompt=prompt_text("response__task__conversation"), **others).values(
        "prompt", "response__text", *others
    )
    rows = by_response.annotate(**lists).values_list("prompt", "response__text", *lists, *others)
    return rows.order_by("response__task", "response__position"), ["prompt", "response", *keys, *more]


def disagreement_columns(project: Project) -> Mapping[str, Type]:
    return {"prompt": TEXT, "response": TEXT, **{key: [INTEGER] for key in project.attribute_keys()}}


def count_rated(project: Project, filters: Filters) -> int:
    counting = counted_ratings(project, filters).filter(annotation__assignment__counts=True)
    return int(counting.values("response").distinct().count())
