"""The layouts of annotations: what each rater has said, by response, and with all responses side by side."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Case, F, Func, JSONField, Max, OuterRef, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from annotator.exporting.columns import (
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
from annotator.exporting.copied import Lines, copied, moment, named_tiers, numbers_object, response_name
from annotator.exporting.filters import Filters
from annotator.models import Annotation, Project, Rating, Response, Verdict
from annotator.projects.pseudonyms import name_of

_OF_ANNOTATION = {
    "preference": INTEGER,
    "justification": TEXT,
    "active_seconds": NUMBER,
    "guideline_version": INTEGER,
    "origin": TEXT,
    "submitted_at": TIME,
    "counts": BOOLEAN,
    "verdict": TEXT,
    "extra": BOOLEAN,
}

_WRITTEN = ("domain", "language", "feedback", "edit", "edit_summary")


def annotation_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Lines:
    """Reads a row for each annotation and response, with ids as imported and pseudonyms of the raters.

    `counts` is false for annotations that a reviewer has rejected, for the work of excluded annotators, and for
    annotations that are `extra` because their task had no slot left. `verdict` is the reviewer's. `ranking` is the
    annotation's, in tiers, the best first.
    """
    by_segments = bool(project.aspects())
    ratings = filters.of_time(current_ratings(project, filters, unseen), "annotation__submitted_at")
    rows = ratings.order_by("response__task", "annotation", "response__position").values_list(
        "response__task__external_id",
        response_name("response__"),
        name_of("annotation__assignment__annotator", "response__task__project"),
        "annotation__revision",
        numbers_object("scores", project.attribute_keys()),
        "checks",
        "confidence",
        "safe",
        "unsafe_category",
        "response__position",
        *_of_annotation("annotation__"),
        named_tiers("annotation__ranking"),
        "annotation__domain",
        "annotation__language",
        "feedback",
        "edit",
        "edit_summary",
        *(_OF_SEGMENTS.values() if by_segments else ()),
    )
    return copied(project, rows, list(annotation_columns(project)), task="response__task", among=filters.among)


def _of_annotation(path: str) -> list[Any]:
    """Returns the columns of `_OF_ANNOTATION`; `path` leads from a row to its annotation, such as "annotation__"."""
    verdicts = Verdict.objects.filter(assignment=OuterRef(f"{path}assignment")).order_by("-pk")
    written = ("preference", "justification", "active_seconds", "guideline_version", "origin")
    return [
        *(F(f"{path}{name}") for name in written),
        moment(f"{path}submitted_at"),
        F(f"{path}assignment__counts"),
        Coalesce(Subquery(verdicts.values("decision")[:1]), Value("")),
        F(f"{path}assignment__extra"),
    ]


_COMMENTS = """(SELECT json_agg(json_build_object('start', c->0, 'end', c->1, 'text', c->2) ORDER BY place)
    FROM jsonb_array_elements(%(expressions)s) WITH ORDINALITY AS given (c, place))"""
_OF_SEGMENTS: Mapping[str, Any] = {
    "segments": Case(When(segment_scores__isnull=False, then=Coalesce("cut", "response__segments"))),
    "aspects": "annotation__aspects",
    "segment_scores": "segment_scores",
    "comments": Func(F("comments"), template=_COMMENTS, output_field=JSONField()),
}
_TYPES_OF_SEGMENTS: Mapping[str, Type] = {
    "segments": [[INTEGER]],
    "aspects": [TEXT],
    "segment_scores": [[INTEGER]],
    "comments": [{"start": INTEGER, "end": INTEGER, "text": TEXT}],
}
"""Only of projects that rate segments: ranges, the aspects, scores [segments][aspects], and comments on characters."""


def annotation_columns(project: Project) -> Mapping[str, Type]:
    scores = dict.fromkeys(project.attribute_keys(), INTEGER)
    head: dict[str, Type] = {"task": TEXT, "response": TEXT, "annotator": TEXT, "revision": INTEGER, "scores": scores}
    answers: dict[str, Type] = {"checks": [TEXT], "confidence": INTEGER, "safe": BOOLEAN, "unsafe_category": TEXT}
    return {
        **head,
        **answers,
        "position": INTEGER,
        **_OF_ANNOTATION,
        "ranking": [[TEXT]],
        **dict.fromkeys(_WRITTEN, TEXT),
        **(_TYPES_OF_SEGMENTS if project.aspects() else {}),
    }


def count_ratings(project: Project, filters: Filters) -> int:
    return int(counted_ratings(project, filters).count())


def wide_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a row for each annotation, with a column for each attribute of each response, such as helpfulness_1.

    Responses count from 1, as they were imported.
    """
    of_tasks = filters.of_tasks(Annotation.objects.current(), project, "assignment__task__")
    annotations = filters.of_time(of_tasks, "submitted_at").filter(assignment__task__project=project)
    ratings = Rating.objects.filter(annotation=OuterRef("pk")).order_by("response__position")
    said = [F("response__position"), response_name("response__"), numbers_object("scores", project.attribute_keys())]
    by_response = Func(*said, function="json_build_array", output_field=JSONField())
    rows = (
        annotations.exclude(assignment__task__in=unseen)
        .order_by("assignment__task", "pk")
        .values_list(
            "assignment__task__external_id",
            name_of("assignment__annotator", "assignment__task__project"),
            "revision",
            *_of_annotation(""),
            named_tiers("ranking"),
            ArraySubquery(ratings.values_list(by_response)),
        )
    )
    names = ["task", "annotator", "revision", *_OF_ANNOTATION, "ranking", "ratings"]
    for row in copied(project, rows, names, task="assignment__task", among=filters.among):
        if ratings := row.pop("ratings"):
            for position, response, scores in ratings:
                row[f"response_{position + 1}"] = response
                row |= {f"{key}_{position + 1}": score for key, score in scores.items()}
            yield row


def wide_columns(project: Project) -> Mapping[str, Type]:
    last = Response.objects.filter(task__project=project).aggregate(last=Max("position"))["last"]
    of_responses: dict[str, Type] = {}
    for number in range(1, (last or 0) + 2):
        of_responses[f"response_{number}"] = TEXT
        of_responses |= {f"{key}_{number}": INTEGER for key in project.attribute_keys()}
    head = {"task": TEXT, "annotator": TEXT, "revision": INTEGER}
    return {**head, **of_responses, **_OF_ANNOTATION, "ranking": [[TEXT]]}


def count_annotations(project: Project, filters: Filters) -> int:
    return int(counted_ratings(project, filters).values("annotation").distinct().count())
