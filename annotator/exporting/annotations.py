"""The layouts of annotations: what each rater has said, by response, and with all responses side by side."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Case, Count, F, Func, JSONField, Max, OuterRef, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from annotator.exporting.columns import BOOLEAN, INTEGER, JSON, NUMBER, TEXT, TIME, Row, Type
from annotator.exporting.copied import Lines, copied, moment, named_tiers, numbers_object, response_name
from annotator.exporting.filters import Filters
from annotator.models import Annotation, Project, Rating, Response, Verdict
from annotator.projects.pseudonyms import name_of

_OF_ANNOTATION = {
    "preference": INTEGER,
    "justification": TEXT,
    "active_seconds": NUMBER,
    "guideline_version": INTEGER,
    "rubric_version": INTEGER,
    "origin": TEXT,
    "submitted_at": TIME,
    "counts": BOOLEAN,
    "verdict": TEXT,
    "extra": BOOLEAN,
}

_WRITTEN = ("domain", "language", "feedback", "edit", "edit_summary")
_ANSWERS: Mapping[str, Type] = {"checks": [TEXT], "confidence": INTEGER, "safe": BOOLEAN, "unsafe_category": TEXT}


def annotation_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Lines:
    """Reads a row for each annotation and response, with ids as imported and pseudonyms of the raters.

    An annotation that rates no response, such as a bare preference, has one row without a response. `scores` are what
    was asked under `rubric_version`. `counts` is false for annotations that a reviewer has rejected, for the work of
    excluded annotators, and for annotations that are `extra` because their task had no slot left. `verdict` is the
    reviewer's. `ranking` is the annotation's, in tiers, the best first.
    """
    response = "ratings__response__"
    annotations = _annotations(project, filters).exclude(assignment__task__in=unseen)
    rows = annotations.order_by("assignment__task", "pk", f"{response}position").values_list(
        "assignment__task__external_id",
        Case(When(ratings__isnull=False, then=response_name(response))),
        name_of("assignment__annotator", "assignment__task__project"),
        "revision",
        numbers_object("ratings__scores", filters.keys(project)),
        *(f"ratings__{name}" for name in _ANSWERS),
        f"{response}position",
        *_of_annotation(),
        named_tiers("ranking"),
        "domain",
        "language",
        "ratings__feedback",
        "ratings__edit",
        "ratings__edit_summary",
        "assignment__task__metadata",
        *(["ratings__response__metadata"] if filters.for_manager else ()),
        *(_OF_SEGMENTS.values() if filters.aspects(project) else ()),
    )
    names = list(annotation_columns(project, filters))
    return copied(project, rows, names, task="assignment__task", among=filters.among)


def _annotations(project: Project, filters: Filters) -> QuerySet[Annotation]:
    current = Annotation.objects.current().filter(assignment__task__project=project)
    of_tasks = filters.of_tasks(filters.of_versions(current), project, "assignment__task__")
    annotations: QuerySet[Annotation] = filters.of_time(of_tasks, "submitted_at")
    return annotations


def _of_annotation() -> list[Any]:
    """Returns the columns of `_OF_ANNOTATION`."""
    verdicts = Verdict.objects.filter(assignment=OuterRef("assignment")).order_by("-pk")
    written = ("preference", "justification", "active_seconds", "guideline_version", "rubric_version", "origin")
    return [
        *map(F, written),
        moment("submitted_at"),
        F("assignment__counts"),
        Coalesce(Subquery(verdicts.values("decision")[:1]), Value("")),
        F("assignment__extra"),
    ]


_COMMENTS = """(SELECT json_agg(json_build_object('start', c->0, 'end', c->1, 'text', c->2) ORDER BY place)
    FROM jsonb_array_elements(%(expressions)s) WITH ORDINALITY AS given (c, place))"""
_CUT = Coalesce("ratings__cut", "ratings__response__segments")
_OF_SEGMENTS: Mapping[str, Any] = {
    "segments": Case(When(ratings__segment_scores__isnull=False, then=_CUT)),
    "aspects": F("aspects"),
    "segment_scores": F("ratings__segment_scores"),
    "comments": Func(F("ratings__comments"), template=_COMMENTS, output_field=JSONField()),
}
_TYPES_OF_SEGMENTS: Mapping[str, Type] = {
    "segments": [[INTEGER]],
    "aspects": [TEXT],
    "segment_scores": [[INTEGER]],
    "comments": [{"start": INTEGER, "end": INTEGER, "text": TEXT}],
}
"""Only of projects that rate segments: ranges, the aspects, scores [segments][aspects], and comments on characters."""


def annotation_columns(project: Project, filters: Filters) -> Mapping[str, Type]:
    scores = dict.fromkeys(filters.keys(project), INTEGER)
    head: dict[str, Type] = {"task": TEXT, "response": TEXT, "annotator": TEXT, "revision": INTEGER, "scores": scores}
    return {
        **head,
        **_ANSWERS,
        "position": INTEGER,
        **_OF_ANNOTATION,
        "ranking": [[TEXT]],
        **dict.fromkeys(_WRITTEN, TEXT),
        "metadata": JSON,
        **({"response_metadata": JSON} if filters.for_manager else {}),
        **(_TYPES_OF_SEGMENTS if filters.aspects(project) else {}),
    }


def count_ratings(project: Project, filters: Filters) -> int:
    # The join counts an annotation without a rating once, as the layout does.
    return int(_annotations(project, filters).aggregate(rows=Count("pk"), ratings=Count("ratings"))["rows"])


def wide_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a row for each annotation, with a column for each attribute of each response, such as helpfulness_1.

    Responses count from 1, as they were imported. A bare preference has no columns of responses.
    """
    ratings = Rating.objects.filter(annotation=OuterRef("pk")).order_by("response__position")
    said = [F("response__position"), response_name("response__"), numbers_object("scores", filters.keys(project))]
    said += [F("response__metadata")] if filters.for_manager else []
    by_response = Func(*said, function="json_build_array", output_field=JSONField())
    rows = (
        _annotations(project, filters)
        .exclude(assignment__task__in=unseen)
        .order_by("assignment__task", "pk")
        .values_list(
            "assignment__task__external_id",
            name_of("assignment__annotator", "assignment__task__project"),
            "revision",
            *_of_annotation(),
            named_tiers("ranking"),
            "assignment__task__metadata",
            ArraySubquery(ratings.values_list(by_response)),
        )
    )
    names = ["task", "annotator", "revision", *_OF_ANNOTATION, "ranking", "metadata", "ratings"]
    for row in copied(project, rows, names, task="assignment__task", among=filters.among):
        for position, response, scores, *metadata in row.pop("ratings"):
            row[f"response_{position + 1}"] = response
            row |= {f"response_{position + 1}_metadata": of_response for of_response in metadata}
            row |= {f"{key}_{position + 1}": score for key, score in scores.items()}
        yield row


def wide_columns(project: Project, filters: Filters) -> Mapping[str, Type]:
    last = Response.objects.filter(task__project=project).aggregate(last=Max("position"))["last"]
    of_responses: dict[str, Type] = {}
    for number in range(1, (last or 0) + 2):
        of_responses[f"response_{number}"] = TEXT
        of_responses |= {f"response_{number}_metadata": JSON} if filters.for_manager else {}
        of_responses |= {f"{key}_{number}": INTEGER for key in filters.keys(project)}
    head = {"task": TEXT, "annotator": TEXT, "revision": INTEGER}
    return {**head, **of_responses, **_OF_ANNOTATION, "ranking": [[TEXT]], "metadata": JSON}


def count_annotations(project: Project, filters: Filters) -> int:
    return int(_annotations(project, filters).count())
