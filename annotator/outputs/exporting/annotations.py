"""The layouts of annotations: what each rater has said by response, with all side by side, ranked, or as evidence."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

import orjson
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Case, Count, F, Func, JSONField, Max, OuterRef, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from annotator.models import Annotation, Project, Rating, Response, Verdict
from annotator.models.in_force import PAIRS_IN_FORCE
from annotator.outputs.exporting.answered_tasks import Reading, task_lines
from annotator.outputs.exporting.columns import (
    BOOLEAN,
    INTEGER,
    JSON,
    MESSAGES,
    NUMBER,
    TEXT,
    TIME,
    Row,
    Type,
    counted_ratings,
    current_ratings,
)
from annotator.outputs.exporting.copied import (
    MOMENT,
    Lines,
    copied,
    moment,
    named_tiers,
    numbers_object,
    prompt_text,
    response_name,
    without_line_ends,
)
from annotator.outputs.exporting.filters import Filters
from annotator.outputs.exporting.selections import in_time, tasks_listed_in
from annotator.reading.pseudonyms import name_of
from annotator.stages.consensus.rankings import pairs_in_force, ranking_of

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
    reviewer's. `evidence` holds the characters of the response for which attributes have their scores. `ranking` is the
    annotation's, in tiers, the best first.
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
        Func(F("ratings__evidence"), template=_EVIDENCE, output_field=JSONField()),
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
# Most ratings have none, and are not looked into.
_EVIDENCE = """CASE WHEN %(expressions)s <> '[]' THEN (
    SELECT json_agg(json_build_object('attribute', e->0, 'start', e->1, 'end', e->2, 'note', e->3) ORDER BY place)
    FROM jsonb_array_elements(%(expressions)s) WITH ORDINALITY AS given (e, place)) ELSE '[]' END"""
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
        "evidence": [{"attribute": TEXT, "start": INTEGER, "end": INTEGER, "note": TEXT}],
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


# Before the line's end stands what leaves as it is. JSON has no line ends.
_ROW = f"""concat('{{"task":', to_json(t.external_id), ',"conversation":', t.conversation, ',"responses":',
    responses.listed, E'\\n', json_build_array(responses.names, rankings.listed, {PAIRS_IN_FORCE}, a.ranking))"""
_NAME = "coalesce(nullif(r.external_id, ''), (r.position + 1)::text)"
_RESPONSES = f"""
    json_agg(json_build_object('id', {_NAME}, 'text', r.text) ORDER BY r.position) AS listed,
    json_agg(json_build_array(r.id, {_NAME}) ORDER BY r.position) AS names"""
_ANNOTATIONS = "n.submitted_at, n.ranking, n.justification"
_MOMENT = MOMENT % {"expressions": "n.submitted_at"}
_RANKINGS = f"""
    SELECT n.task_id, json_agg(json_build_object(
        'annotator', y.name, 'ranking', n.ranking, 'justification', n.justification, 'submitted_at', {_MOMENT},
        'counts', n.counts
    ) ORDER BY n.submitted_at, n.id) AS listed
    FROM annotations n LEFT JOIN raters y ON y.user_id = n.annotator_id
    WHERE n.ranking IS NOT NULL GROUP BY n.task_id HAVING count(*) FILTER (WHERE true{{within}}) > 0"""


def ranking_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Lines:
    """Reads a row for each ranked task: conversation, responses, the combined ranking and each annotator's ranking.

    `pairs` holds the pairs on which the rankings agree, the better response first. `ranking` is the reviewer's if there
    is one, otherwise the order by wins minus losses in `pairs`; it is null if the task yields no labels. A time
    selects the tasks that were ranked in it, and their lists are complete.
    """
    if not _ranked(project).exists():
        return Lines(iter(()))
    within, times = in_time("n.submitted_at", filters)
    rankings = (_RANKINGS.format(within=within), times)
    tasks = tasks_listed_in("rankings", project, filters).without(unseen)
    return Lines(map(_line, task_lines(tasks, Reading(_ROW, _RESPONSES, _ANNOTATIONS, sets={"rankings": rankings}))))


def _line(line: bytes) -> bytes:
    head, answers = line.split(b"\n", 1)
    responses, rankings, agreed, settled = orjson.loads(answers)
    names = dict(responses)
    pairs = pairs_in_force(settled, agreed)
    ranking = None if pairs is None else _named(ranking_of(pairs, list(names)), names)
    for one in rankings:
        one["ranking"] = _named(one["ranking"], names)
    named = {"ranking": ranking, "pairs": _named(pairs or (), names), "rankings": rankings}
    return without_line_ends(b"%b,%b\n" % (head, orjson.dumps(named)[1:]))


def _named(tiers: Iterable[Iterable[int]], names: Mapping[int, str]) -> list[list[str]]:
    return [[names[response] for response in tier] for tier in tiers]


def ranking_columns(_project: Project, _filters: Filters) -> Mapping[str, Type]:
    responses = [{"id": TEXT, "text": TEXT}]
    by_people = {"annotator": TEXT, "ranking": [[TEXT]], "justification": TEXT, "submitted_at": TIME, "counts": BOOLEAN}
    head = {"task": TEXT, "conversation": MESSAGES, "responses": responses, "ranking": [[TEXT]], "pairs": [[TEXT]]}
    return {**head, "rankings": [by_people]}


def count_ranked(project: Project, filters: Filters) -> int:
    ranked = filters.of_tasks(_ranked(project), project, "assignment__task__")
    in_time = filters.of_time(ranked, "submitted_at")
    return int(in_time.values("assignment__task").distinct().count())


def _ranked(project: Project) -> QuerySet[Annotation]:
    return Annotation.objects.current().for_project(project.pk).filter(ranking__isnull=False)


# Evidence, in the form of FineGrainedRLHF (arXiv 2306.01693): a row for each response, with its spans ---------

_OF_EVIDENCE: Mapping[str, Any] = {
    "task": "response__task__external_id",
    "position": "response__position",
    "prompt": prompt_text("response__task__conversation"),
    "response": "response__text",
    "evidence": "evidence",
    "scores": "scores",
}


def span_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a row for each response that has evidence of ratings that count, in the order of tasks and responses.

    A span holds characters of the response, from 0 and without the end, and the score that its attribute has for them.
    """
    ratings = filters.of_time(current_ratings(project, filters, unseen), "annotation__submitted_at")
    found = ratings.filter(annotation__assignment__counts=True).exclude(evidence=[])
    person = name_of("annotation__assignment__annotator", "response__task__project")
    rows = found.order_by("response__task", "response__position", "annotation").values_list(
        *_OF_EVIDENCE.values(), person
    )
    lines = copied(project, rows, [*_OF_EVIDENCE, "annotator"], task="response__task", among=filters.among)
    for (task, position), alike in groupby(iter(lines), key=itemgetter("task", "position")):
        given = list(alike)
        yield {
            "id": f"{task}:{position}",
            "prompt": given[0]["prompt"],
            "response": given[0]["response"],
            "spans": [span for row in given for span in _spans(row)],
        }


def _spans(row: Row) -> Iterator[Row]:
    for attribute, start, end, note in row["evidence"]:
        yield {
            "start": start,
            "end": end,
            "text": row["response"][start:end],
            "aspect": attribute,
            "score": row["scores"].get(attribute),
            "note": note,
            "annotator": row["annotator"],
        }


def span_columns(_project: Project, _filters: Filters) -> Mapping[str, Type]:
    place: dict[str, Type] = {"start": INTEGER, "end": INTEGER, "text": TEXT}
    span: dict[str, Type] = {**place, "aspect": TEXT, "score": INTEGER, "note": TEXT, "annotator": TEXT}
    return {"id": TEXT, "prompt": TEXT, "response": TEXT, "spans": [span]}


def count_with_evidence(project: Project, filters: Filters) -> int:
    ratings = counted_ratings(project, filters).filter(annotation__assignment__counts=True).exclude(evidence=[])
    return int(ratings.order_by().values("response").distinct().count())
