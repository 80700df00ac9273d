"""Stage 10 exports labels and annotations in every layout and format, row by row, in constant memory."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import F, OuterRef, Prefetch, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from annotator import audit
from annotator.consensus.rankings import Pair, pairs_of, ranking_of
from annotator.exporting.filters import EVERYTHING, Filters
from annotator.exporting.spreadsheets import csv_lines
from annotator.importing.prompts import prompt_from_messages
from annotator.models import Adjudication, Annotation, Consensus, Label, Project, Rating, Task, User, Verdict
from annotator.projects.pseudonyms import Pseudonyms
from annotator.refusals import Refusal
from annotator.review.blindness import tasks_held_by

Row = dict[str, Any]
CHUNK = 500
TASKS = 100
"""Ranked tasks that are read at a time, with all their texts."""
FORMATS = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}


class UnknownExport(Refusal):
    """The layout or format does not exist; the message lists those that do."""

    status = 400
    code = "unknown_export"


def export(
    project: Project, *, layout: str, format: str, filters: Filters = EVERYTHING, by: User | None = None
) -> Iterator[bytes]:
    """Streams the project's rows in the layout, encoded in the format.

    Other people's single ratings of a task are left out while the person `by` is rating that task.

    Raises:
        UnknownExport: There is no such layout or format; raised before the first byte.
    """
    # This function is no generator: a refusal has to come, and the audit entry be written, before the answer begins.
    require_known(layout=layout, format=format)
    chosen = {"layout": layout, "format": format, **filters.for_audit()}
    audit.record("labels.exported", f"layout {layout}", project=project, **chosen)
    return encoded(LAYOUTS[layout](project, filters, tasks_held_by(by)), project, layout=layout, format=format)


def require_known(*, layout: str, format: str) -> None:
    """Raises UnknownExport unless there are such a layout and such a format."""
    if layout not in LAYOUTS:
        text = _("There is no layout '%(layout)s'. Layouts: %(known)s.")
        raise UnknownExport(text % {"layout": layout, "known": ", ".join(LAYOUTS)})
    if format not in FORMATS:
        text = _("There is no format '%(format)s'. Formats: %(known)s.")
        raise UnknownExport(text % {"format": format, "known": ", ".join(FORMATS)})


def encoded(rows: Iterator[Row], project: Project, *, layout: str, format: str) -> Iterator[bytes]:
    """Yields rows of the layout as the bytes of a file."""
    return csv_lines(_flat(rows), _columns(project, layout)) if format == "csv" else _json_lines(rows)


# Layouts ---------------------------------------------------------------------------------------------------


def helpsteer2_rows(project: Project, filters: Filters, _unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a row for each labelled response, with a whole number for each attribute. A task's rows are adjacent."""
    labels = Label.objects.in_force_while_in_use().for_project(project.pk)
    chosen = filters.of_tasks(filters.of_time(labels, "made_at"), project, "response__task__")
    rows = chosen.order_by("response__task", "response__position").values_list(
        "response__task__conversation", "response__text", "scores"
    )
    keys = project.attribute_keys()
    # Here as below, iterator() reads by a cursor on the server, so the rows never lie in memory together.
    for conversation, text, scores in rows.iterator(chunk_size=CHUNK):
        yield {"prompt": prompt_from_messages(conversation), "response": text, **_ordered(scores, keys)}


def disagreement_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a row for each rated response. Each attribute is a list with one rating for each rater that counts.

    The raters have the same order in all lists of a row. A time selects the responses that were rated in it, and their
    lists are complete.
    """
    ratings = _current_ratings(project, filters, unseen).filter(annotation__assignment__counts=True)
    if filters.ask_for_a_time():
        news = filters.of_time(ratings, "annotation__submitted_at")
        ratings = ratings.filter(response__in=news.values("response"))
    ordered = ratings.order_by("response__task", "response__position", "annotation__submitted_at", "annotation")
    rows = ordered.values_list("response", "response__task__conversation", "response__text", "scores")
    keys = project.attribute_keys()
    for _response, group in groupby(rows.iterator(chunk_size=CHUNK), key=lambda row: row[0]):
        raters = list(group)
        lists = {key: [row[3][key] for row in raters if key in row[3]] for key in keys}
        yield {"prompt": prompt_from_messages(raters[0][1]), "response": raters[0][2], **lists}


def annotation_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a row for each annotation and response, with ids as imported and pseudonyms of the raters.

    `counts` is false for annotations that a reviewer has rejected, for the work of excluded annotators, and for
    annotations that are `extra` because their task had no slot left. `verdict` is the reviewer's. `ranking` is the
    annotation's, in tiers, the best first.
    """
    ratings = filters.of_time(_current_ratings(project, filters, unseen), "annotation__submitted_at")
    rows = ratings.order_by("response__task", "annotation", "response__position").values(
        "scores",
        "checks",
        "confidence",
        "safe",
        "unsafe_category",
        "annotation",
        response_pk=F("response"),
        ranking=F("annotation__ranking"),
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
    for _annotation, group in groupby(rows.iterator(chunk_size=CHUNK), key=itemgetter("annotation")):
        rated = list(group)
        names = {
            row["response_pk"]: _response_name(row.pop("response_id_as_imported"), row["position"]) for row in rated
        }
        for row in rated:
            del row["annotation"]
            scores = _ordered(row.pop("scores"), keys)
            order = {"task": row.pop("task"), "response": names[row.pop("response_pk")]}
            rater = {"annotator": pseudonyms[row.pop("annotator")], "revision": row.pop("revision"), "scores": scores}
            yield order | rater | row | {"ranking": _named_tiers(row["ranking"], names)}


def ranking_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a row for each ranked task: conversation, responses, the combined ranking and each annotator's ranking.

    `pairs` holds the pairs on which the rankings agree, the better response first. `ranking` is the reviewer's if there
    is one, otherwise the order by wins minus losses in `pairs`; it is null if the task yields no labels. A time
    selects the tasks that were ranked in it, and their lists are complete.
    """
    current = Annotation.objects.current().for_project(project.pk).filter(ranking__isnull=False)
    ranked = filters.of_tasks(current, project, "assignment__task__").exclude(assignment__task__in=unseen)
    if filters.ask_for_a_time():
        news = filters.of_time(ranked, "submitted_at")
        ranked = ranked.filter(assignment__task__in=news.values("assignment__task"))
    rows = ranked.order_by("assignment__task", "submitted_at", "pk").values(
        "ranking",
        "justification",
        "submitted_at",
        task=F("assignment__task"),
        annotator=F("assignment__annotator"),
        counts=F("assignment__counts"),
    )
    pseudonyms = Pseudonyms(project.pk)
    by_task = groupby(rows.iterator(chunk_size=CHUNK), key=itemgetter("task"))
    # A part at a time: prefetching the responses needs a list of tasks, and the list of all would not fit in memory.
    tasks = ((task, list(group)) for task, group in by_task)
    while ranked_annotations := dict(islice(tasks, TASKS)):
        for task in _ranked_tasks(ranked_annotations):
            responses = list(task.responses.all())
            names = {response.pk: _response_name(response.external_id, response.position) for response in responses}
            pairs = _pairs_in_force(task)
            yield {
                "task": task.external_id,
                "conversation": task.conversation,
                "responses": [{"id": names[response.pk], "text": response.text} for response in responses],
                "ranking": None if pairs is None else _named_tiers(ranking_of(pairs, list(names)), names),
                "pairs": [[names[better], names[worse]] for better, worse in pairs or ()],
                "rankings": [
                    {
                        "annotator": pseudonyms[annotation["annotator"]],
                        "ranking": _named_tiers(annotation["ranking"], names),
                        "justification": annotation["justification"],
                        "submitted_at": annotation["submitted_at"],
                        "counts": annotation["counts"],
                    }
                    for annotation in ranked_annotations[task.pk]
                ],
            }


def _ranked_tasks(chosen: Iterable[int]) -> QuerySet[Task]:
    settled = Adjudication.objects.filter(is_current=True)
    tasks = Task.objects.filter(pk__in=list(chosen)).order_by("pk").select_related("consensus")
    return tasks.prefetch_related("responses", Prefetch("adjudications", settled, to_attr="settled"))


def _pairs_in_force(task: Any) -> Sequence[Pair] | None:
    """Returns the reviewer's pairs, else those of the consensus; None for a task that is dropped or not settled yet."""
    if task.settled and task.settled[0].ranking:
        return pairs_of(task.settled[0].ranking)
    # A task that is not settled has no consensus, and asking for it raises an AttributeError.
    consensus: Consensus | None = getattr(task, "consensus", None)
    return consensus.pairs if consensus and not consensus.dropped_because else None


def _response_name(imported: str, position: int) -> str:
    """Returns the response's id as imported, or else its number, counted from 1."""
    return imported or str(position + 1)


def _named_tiers(ranking: Any, names: Mapping[int, str]) -> list[list[str]] | None:
    return ranking and [[names[response] for response in tier] for tier in ranking]


_verdict = Verdict.objects.filter(assignment=OuterRef("annotation__assignment")).order_by("-pk").values("decision")[:1]


def _current_ratings(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Any:
    current = Annotation.objects.current().for_project(project.pk)
    ratings = filters.of_tasks(Rating.objects.filter(annotation__in=current), project, "response__task__")
    return ratings.exclude(response__task__in=unseen)


def _ordered(scores: dict[str, int], keys: Sequence[str]) -> dict[str, int]:
    return {key: scores[key] for key in keys if key in scores}


LAYOUTS: dict[str, Callable[[Project, Filters, QuerySet[Any]], Iterator[Row]]] = {
    "helpsteer2": helpsteer2_rows,
    "disagreements": disagreement_rows,
    "annotations": annotation_rows,
    "rankings": ranking_rows,
}


# Formats ---------------------------------------------------------------------------------------------------

_LINE_ENDS = {ord(character): json.dumps(character)[1:-1] for character in "\u0085\u2028\u2029"}
"""Line ends that are valid within JSON texts. Readers that split a file into lines would break a row there."""


def _json_lines(rows: Iterable[Row]) -> Iterator[bytes]:
    for row in rows:
        yield json.dumps(row, ensure_ascii=False, cls=DjangoJSONEncoder).translate(_LINE_ENDS).encode() + b"\n"


def _columns(project: Project, layout: str) -> list[str]:
    # The header is written before any row is read, so it cannot depend on the rows.
    keys = project.attribute_keys()
    if layout == "rankings":
        return ["task", "conversation", "responses", "ranking", "pairs", "rankings"]
    if layout != "annotations":
        return ["prompt", "response", *keys]
    head = ["task", "response", "annotator", "revision", *keys]
    answers = ["checks", "confidence", "safe", "unsafe_category", "preference", "justification"]
    provenance = ["active_seconds", "guideline_version", "origin", "submitted_at"]
    return [*head, *answers, "position", *provenance, "counts", "verdict", "extra", "ranking"]


def _flat(rows: Iterable[Row]) -> Iterator[Row]:
    """Turns the scores into a column for each attribute, and lists into JSON texts."""
    for row in rows:
        flat = row | row.get("scores", {})
        flat.pop("scores", None)
        yield {
            key: json.dumps(value, cls=DjangoJSONEncoder) if isinstance(value, list) else value
            for key, value in flat.items()
        }
