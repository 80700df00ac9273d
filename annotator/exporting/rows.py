"""Stage 10: labels and annotations out, row by row, in constant memory."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import F, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from annotator import audit
from annotator.exporting.spreadsheets import csv_lines
from annotator.importing.prompts import prompt_from_messages
from annotator.models import Annotation, Label, Project, Rating, User, Verdict
from annotator.projects.pseudonyms import Pseudonyms
from annotator.refusals import Refusal
from annotator.review.blindness import tasks_held_by

Row = dict[str, Any]
CHUNK = 500
FORMATS = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}


class UnknownExport(Refusal):
    """No such layout or format; the message lists those that exist."""

    status = 400
    code = "unknown_export"


def export(
    project: Project, *, layout: str, format: str, since: datetime | None = None, by: User | None = None
) -> Iterator[bytes]:
    """Streams the project's rows in the layout, encoded in the format.

    Single ratings of tasks that the person is rating are left out of what they get.

    Raises:
        UnknownExport: before the first byte.
    """
    if layout not in LAYOUTS:
        raise UnknownExport(f"There is no layout {layout!r}. Layouts: {', '.join(LAYOUTS)}.")
    if format not in FORMATS:
        raise UnknownExport(f"There is no format {format!r}. Formats: {', '.join(FORMATS)}.")
    moment = since.isoformat() if since else None
    audit.record("labels.exported", f"layout {layout}", project=project, layout=layout, format=format, since=moment)
    rows = LAYOUTS[layout](project, since, tasks_held_by(by))
    return csv_lines(_flat(rows), _columns(project, layout)) if format == "csv" else _json_lines(rows)


# Layouts ---------------------------------------------------------------------------------------------------


def helpsteer2_rows(project: Project, since: datetime | None, _unseen: QuerySet[Any]) -> Iterator[Row]:
    """A row per labelled response: prompt, response and one whole number per attribute; a task's rows together."""
    labels = _since(Label.objects.in_force().for_project(project.pk), "made_at", since)
    rows = labels.order_by("response__task", "response__position").values_list(
        "response__task__conversation", "response__text", "scores"
    )
    keys = project.attribute_keys()
    for conversation, text, scores in rows.iterator(chunk_size=CHUNK):
        yield {"prompt": prompt_from_messages(conversation), "response": text, **_ordered(scores, keys)}


def disagreement_rows(project: Project, since: datetime | None, unseen: QuerySet[Any]) -> Iterator[Row]:
    """A row per rated response: each attribute a list with one rating a rater that counts, raters in the same order.

    `since` picks the responses with a new rating; their lists are whole.
    """
    ratings = _current_ratings(project, unseen).filter(annotation__assignment__counts=True)
    if since:
        news = _since(ratings, "annotation__submitted_at", since)
        ratings = ratings.filter(response__in=news.values("response"))
    ordered = ratings.order_by("response__task", "response__position", "annotation__submitted_at", "annotation")
    rows = ordered.values_list("response", "response__task__conversation", "response__text", "scores")
    keys = project.attribute_keys()
    for _, group in groupby(rows.iterator(chunk_size=CHUNK), key=lambda row: row[0]):
        raters = list(group)
        lists = {key: [row[3][key] for row in raters if key in row[3]] for key in keys}
        yield {"prompt": prompt_from_messages(raters[0][1]), "response": raters[0][2], **lists}


def annotation_rows(project: Project, since: datetime | None, unseen: QuerySet[Any]) -> Iterator[Row]:
    """A row per annotation and response, with ids as imported and raters by pseudonym.

    `counts` is false for what a reviewer has rejected, for the work of the excluded, and for what is `extra`: its task
    had no room left. `verdict` is the reviewer's.
    """
    ratings = _since(_current_ratings(project, unseen), "annotation__submitted_at", since)
    rows = ratings.order_by("response__task", "annotation", "response__position").values(
        "scores",
        "checks",
        "confidence",
        "safe",
        "unsafe_category",
        task=F("response__task__external_id"),
        response_id_as_imported=F("response__external_id"),
        position=F("response__position"),
        annotator=F("annotation__assignment__annotator"),
        revision=F("annotation__revision"),
        preference=F("annotation__preference"),
        justification=F("annotation__justification"),
        active_seconds=F("annotation__active_seconds"),
        guideline_version=F("annotation__guideline_version"),
        origin=F("annotation__origin"),
        submitted_at=F("annotation__submitted_at"),
        counts=F("annotation__assignment__counts"),
        verdict=Coalesce(Subquery(_verdict), Value("")),
        extra=F("annotation__assignment__extra"),
    )
    keys, pseudonyms = project.attribute_keys(), Pseudonyms(project.pk)
    for row in rows.iterator(chunk_size=CHUNK):
        imported = row.pop("response_id_as_imported")
        scores = _ordered(row.pop("scores"), keys)
        order = {"task": row.pop("task"), "response": imported or str(row["position"] + 1)}
        yield (
            order
            | {"annotator": pseudonyms[row.pop("annotator")], "revision": row.pop("revision"), "scores": scores}
            | row
        )


_verdict = Verdict.objects.filter(assignment=OuterRef("annotation__assignment")).order_by("-pk").values("decision")[:1]


def _current_ratings(project: Project, unseen: QuerySet[Any]) -> Any:
    current = Annotation.objects.current().for_project(project.pk)
    ratings = Rating.objects.filter(annotation__in=current, response__task__state__in=["open", "complete"])
    return ratings.exclude(response__task__in=unseen)


def _since(queryset: Any, field: str, since: datetime | None) -> Any:
    return queryset.filter(**{f"{field}__gte": since}) if since else queryset


def _ordered(scores: dict[str, int], keys: Sequence[str]) -> dict[str, int]:
    return {key: scores[key] for key in keys if key in scores}


LAYOUTS: dict[str, Callable[[Project, datetime | None, QuerySet[Any]], Iterator[Row]]] = {
    "helpsteer2": helpsteer2_rows,
    "disagreements": disagreement_rows,
    "annotations": annotation_rows,
}


# Formats ---------------------------------------------------------------------------------------------------

_LINE_ENDS = {ord(each): json.dumps(each)[1:-1] for each in "\u0085\u2028\u2029"}
"""JSON may hold these as they are, and readers that split a text into lines break there."""


def _json_lines(rows: Iterable[Row]) -> Iterator[bytes]:
    for row in rows:
        yield json.dumps(row, ensure_ascii=False, cls=DjangoJSONEncoder).translate(_LINE_ENDS).encode() + b"\n"


def _columns(project: Project, layout: str) -> list[str]:
    keys = project.attribute_keys()
    if layout != "annotations":
        return ["prompt", "response", *keys]
    head = ["task", "response", "annotator", "revision", *keys]
    answers = ["checks", "confidence", "safe", "unsafe_category", "preference", "justification"]
    made = ["active_seconds", "guideline_version", "origin", "submitted_at"]
    return [*head, *answers, "position", *made, "counts", "verdict", "extra"]


def _flat(rows: Iterable[Row]) -> Iterator[Row]:
    """Scores become a column each; lists stay JSON."""
    for row in rows:
        flat = row | row.get("scores", {})
        flat.pop("scores", None)
        yield {key: json.dumps(value) if isinstance(value, list) else value for key, value in flat.items()}
