"""The layouts of labels: HelpSteer2's rows, and the ratings behind them side by side (docs/formats.md)."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from django.db.models import QuerySet

from annotator.exporting.columns import (
    CHUNK,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    Row,
    Type,
    counted_ratings,
    current_ratings,
    ordered,
    response_name,
)
from annotator.exporting.filters import Filters
from annotator.importing.prompts import is_held_out, prompt_from_messages
from annotator.models import Label, Project

_HASH = ("response__task__prompt_hash",)


def helpsteer2_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a row for each labelled response, with a whole number for each attribute. A task's rows are adjacent."""
    return labelled_rows(project, filters, unseen)


def labelled_rows(
    project: Project, filters: Filters, _unseen: QuerySet[Any], *, held_out: bool | None = None
) -> Iterator[Row]:
    """Yields the rows of `helpsteer2_rows`, or those of them whose prompts snapshots hold out, or those of the rest."""
    labels = Label.objects.in_force_while_in_use().for_project(project.pk)
    chosen = filters.of_tasks(filters.of_labels(labels), project, "response__task__")
    rows = chosen.order_by("response__task", "response__position").values_list(
        "response__task__conversation", "response__text", "scores", *_HASH[held_out is None :]
    )
    keys = project.attribute_keys()
    # Here as below, iterator() reads by a cursor on the server, so the rows never lie in memory together.
    for conversation, text, scores, *prompt in rows.iterator(chunk_size=CHUNK):
        if held_out is None or is_held_out(prompt[0], project.validation_share) == held_out:
            yield {"prompt": prompt_from_messages(conversation), "response": text, **ordered(scores, keys)}


def helpsteer2_columns(project: Project) -> Mapping[str, Type]:
    return {"prompt": TEXT, "response": TEXT, **dict.fromkeys(project.attribute_keys(), INTEGER)}


def label_rows(project: Project, filters: Filters, _unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a row for each labelled response with its texts, ids and model, and each attribute's score and mean.

    A score is the mean, rounded to a whole number; halves are rounded up.
    """
    labels = Label.objects.in_force_while_in_use().for_project(project.pk)
    chosen = filters.of_tasks(filters.of_labels(labels), project, "response__task__")
    rows = chosen.order_by("response__task", "response__position").values_list(
        "response__task__external_id",
        "response__external_id",
        "response__position",
        "response__task__language",
        "response__model",
        "response__task__conversation",
        "response__text",
        "scores",
        "means",
        "source",
        "made_at",
    )
    keys = project.attribute_keys()
    for task, imported, position, language, model, messages, text, scores, means, source, at in rows.iterator(CHUNK):
        means_by_name = {f"{key}_mean": mean for key, mean in ordered(means, keys).items()}
        yield {
            "task": task,
            "response": response_name(imported, position),
            "language": language,
            "model": model,
            "prompt": prompt_from_messages(messages),
            "text": text,
            **ordered(scores, keys),
            **means_by_name,
            "source": source,
            "made_at": at,
        }


def label_columns(project: Project) -> Mapping[str, Type]:
    keys = project.attribute_keys()
    texts = dict.fromkeys(("task", "response", "language", "model", "prompt", "text"), TEXT)
    means = {f"{key}_mean": NUMBER for key in keys}
    return {**texts, **dict.fromkeys(keys, INTEGER), **means, "source": TEXT, "made_at": TIME}


def count_labels(project: Project, filters: Filters) -> int:
    labels = filters.of_labels(Label.objects.in_force_while_in_use().for_project(project.pk))
    return int(filters.of_tasks(labels, project, "response__task__").count())


def disagreement_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a row for each rated response. Each attribute is a list with one rating for each rater that counts.

    The raters have the same order in all lists of a row. A time selects the responses that were rated in it, and their
    lists are complete.
    """
    ratings = current_ratings(project, filters, unseen).filter(annotation__assignment__counts=True)
    if filters.ask_for_a_time():
        news = filters.of_time(ratings, "annotation__submitted_at")
        ratings = ratings.filter(response__in=news.values("response"))
    ordered = ratings.order_by("response__task", "response__position", "annotation__submitted_at", "annotation")
    rows = ordered.values_list("response", "response__task__conversation", "response__text", "scores")
    keys = project.attribute_keys()
    for _, group in groupby(rows.iterator(chunk_size=CHUNK), key=lambda row: row[0]):
        raters = list(group)
        lists = {key: [row[3][key] for row in raters if key in row[3]] for key in keys}
        yield {"prompt": prompt_from_messages(raters[0][1]), "response": raters[0][2], **lists}


def disagreement_columns(project: Project) -> Mapping[str, Type]:
    return {"prompt": TEXT, "response": TEXT, **{key: [INTEGER] for key in project.attribute_keys()}}


def count_rated(project: Project, filters: Filters) -> int:
    counting = counted_ratings(project, filters).filter(annotation__assignment__counts=True)
    return int(counting.values("response").distinct().count())
