"""The layouts that Label Studio and Argilla import: tasks with annotations, and records with suggestions.

Questions are named by attribute and response, such as helpfulness_1; responses count from 1, as in `wide`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import orjson
from django.db.models import Max, QuerySet

from annotator.models import Annotation, Project, Response
from annotator.models.annotation import PREFERENCE_STATEMENTS
from annotator.outputs.exporting.answered_tasks import AnsweredTask, Depth, Reading, answered_tasks, task_lines
from annotator.outputs.exporting.columns import INTEGER, MESSAGES, NUMBER, TEXT, Row, Type
from annotator.outputs.exporting.copied import Lines, without_line_ends
from annotator.outputs.exporting.filters import Filters
from annotator.outputs.exporting.selections import compared_tasks, in_time, tasks_listed_in
from annotator.stages.consensus.rules import half_up

CONVERSATION = "conversation"
T = TypeVar("T")
# What people said comes as fields between the separators of ASCII, which JSON escapes in texts. Taking them apart takes
# half as long as decoding JSON, and PostgreSQL looks up the type of each value that it makes JSON of.
_GROUP, _RECORD, _FIELD = b"\x1d", b"\x1e", b"\x1f"
_ROW = f"""concat('{{"{CONVERSATION}":', t.conversation, responses.texts,
    ',"task":', to_json(t.external_id), ',"language":', to_json(t.language), '}}',
    chr(29), responses.numbers, chr(29), ratings.listed, chr(29))"""
_RESPONSES = """
    string_agg(concat(',"response_', r.position + 1, '":', to_json(r.text)), '' ORDER BY r.position) AS texts,
    string_agg(concat(r.id, chr(31), r.position + 1), chr(31) ORDER BY r.position) AS numbers"""
_ANNOTATIONS = "n.submitted_at, n.preference, n.justification, n.active_seconds, n.rubric_version"
_RATINGS = """
    SELECT n.task_id, string_agg(concat(
        y.name, chr(31), n.preference, chr(31),
        CASE WHEN n.justification <> '' THEN to_json(n.justification)::text END, chr(31),
        n.active_seconds, chr(31), g.scores
    ), chr(30) ORDER BY n.id) AS listed
    FROM annotations n LEFT JOIN (
        SELECT annotation_id, string_agg(concat(response_id, chr(31), scores), chr(31)) AS scores FROM annotator_rating
        WHERE annotation_id = ANY(ARRAY(SELECT id FROM annotations)) GROUP BY annotation_id
    ) g ON g.annotation_id = n.id
    LEFT JOIN raters y ON y.user_id = n.annotator_id
    WHERE true{within} GROUP BY n.task_id"""


def label_studio_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Lines:
    """Reads a row for each task with an annotation: its texts as data, and what each annotator said as results.

    Stars count from 1, as the levels do on pages.
    """
    within, times = in_time("n.submitted_at", filters)
    if filters.rubric_versions:
        within, times = f"{within} AND n.rubric_version = ANY(%s)", [*times, list(filters.rubric_versions)]
    ratings = (_RATINGS.format(within=within), times)
    tasks = tasks_listed_in("ratings", project, filters).without(unseen)
    rated = task_lines(tasks, Reading(_ROW, _RESPONSES, _ANNOTATIONS, sets={"ratings": ratings}))
    return Lines(map(_Lines(filters.keys(project)).line, rated))


def label_studio_columns(project: Project, _filters: Filters) -> Mapping[str, Type]:
    value: Type = {"rating": INTEGER, "choices": [TEXT], "text": [TEXT]}
    result: Type = {**dict.fromkeys(("id", "from_name", "to_name", "type"), TEXT), "value": value}
    data: Type = {**text_columns(project), "task": TEXT, "language": TEXT}
    return {"data": data, "annotations": [{"result": [result], "lead_time": NUMBER}]}


def count_rated_tasks(project: Project, filters: Filters) -> int:
    rated = filters.of_versions(Annotation.objects.current().for_project(project.pk))
    in_time = filters.of_time(filters.of_tasks(rated, project, "assignment__task__"), "submitted_at")
    return int(in_time.values("assignment__task").distinct().count())


def text_columns(project: Project) -> dict[str, Type]:
    return {CONVERSATION: MESSAGES, **{f"response_{number}": TEXT for number in numbers(project)}}


def numbers(project: Project) -> range:
    """Returns the numbers of responses that tasks of the project have."""
    last = Response.objects.filter(task__project=project).aggregate(last=Max("position"))["last"]
    return range(1, (last or 0) + 2)


class _Made(dict[bytes, T]):
    """What is made of a field, kept for its next occurrence: most fields occur again and again."""

    MOST = 4_096

    def __init__(self, make: Callable[[bytes], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, field: bytes) -> T:
        if len(self) == self.MOST:
            self.clear()
        made = self[field] = self._make(field)
        return made


class _Lines:
    """Makes lines of what was read of each task, put together from encoded results."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._by = _Made(lambda annotator: _written("annotator", annotator or b"null"))
        self._preferred = _Made(_preferred)
        self._stars = _Made(lambda number: _Made(partial(_stars, keys, number.decode())))

    def line(self, task: bytes) -> bytes:
        data, responses, ratings, _ = task.split(_GROUP)
        numbers = responses.split(_FIELD)
        ids, stars = tuple(numbers[::2]), [self._stars[number] for number in numbers[1::2]]
        annotations = [self._annotation(ids, stars, *rating.split(_FIELD)) for rating in ratings.split(_RECORD)]
        return without_line_ends(b'{"data":%b,"annotations":[%b]}\n' % (data, b",".join(annotations)))

    def _annotation(
        self,
        ids: tuple[bytes, ...],
        stars: Sequence[_Made[bytes]],
        annotator: bytes,
        preference: bytes,
        justification: bytes,
        active_seconds: bytes,
        *ratings: bytes,
    ) -> bytes:
        """Makes an annotation of its fields: of `ratings`, the ids of the responses and their scores, in turn."""
        if ratings == (b"",):  # a bare preference
            ratings = ()
        scores = ratings[1::2]
        if ratings[::2] != ids:  # as where somebody has rated only some
            by_response = dict(zip(ratings[::2], scores, strict=True))
            stars = [of_scores for response, of_scores in zip(ids, stars, strict=True) if response in by_response]
            scores = tuple(by_response[response] for response in ids if response in by_response)
        results = [self._by[annotator]]
        results += filter(None, map(dict.__getitem__, stars, scores))
        if preference:
            results.append(self._preferred[preference])
        if justification:
            results.append(_written("justification", justification))
        return b'{"result":[%b],"lead_time":%b}' % (b",".join(results), active_seconds or b"null")


def _stars(keys: Sequence[str], number: str, scores: bytes) -> bytes:
    """Makes the results of the response of this number from all its scores; nothing if there are none."""
    levels = orjson.loads(scores)
    results = [
        _result(f"{key}_{number}", f"response_{number}", "rating", rating=levels[key] + 1)
        for key in keys
        if key in levels
    ]
    return b",".join(results)


def _preferred(preference: bytes) -> bytes:
    return _result("preference", CONVERSATION, "choices", choices=[PREFERENCE_STATEMENTS[int(preference)]])


def _written(name: str, text: bytes) -> bytes:
    return _result(name, CONVERSATION, "textarea", text=[orjson.Fragment(text)])


def _result(name: str, of: str, kind: str, **value: Any) -> bytes:
    return orjson.dumps({"id": name, "from_name": name, "to_name": of, "type": kind, "value": value})


AGENT = "rewardloop"
"""Who suggests the labels."""


def argilla_rows(project: Project, filters: Filters, _unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a record for each task with a label or a preference, which become suggestions. Scores count from 1."""
    for task in answered_tasks(compared_tasks(project, filters), Depth(labels=True)):
        if suggestions := _suggestions(task):
            responses = {f"response_{number}": answer.text for number, answer in enumerate(task.responses, start=1)}
            yield {
                "id": task.name,
                "fields": {CONVERSATION: task.conversation, **responses},
                "metadata": {"language": task.language},
                "suggestions": suggestions,
            }


def argilla_columns(project: Project, filters: Filters) -> Mapping[str, Type]:
    questions = [f"{key}_{number}" for number in numbers(project) for key in filters.keys(project)]
    suggestions: Type = {
        **{question: {"value": INTEGER, "agent": TEXT} for question in questions},
        "preference": {"value": TEXT, "agent": TEXT},
    }
    return {"id": TEXT, "fields": text_columns(project), "metadata": {"language": TEXT}, "suggestions": suggestions}


def count_suggested(project: Project, filters: Filters) -> int:
    tasks = answered_tasks(compared_tasks(project, filters), Depth(texts=False, labels=True))
    return sum(1 for task in tasks if _suggestions(task))


def _suggestions(task: AnsweredTask) -> Row:
    scores = {
        f"{key}_{number}": {"value": half_up(mean) + 1, "agent": AGENT}
        for number, answer in enumerate(task.responses, start=1)
        for key, mean in answer.means.items()
    }
    if task.preference is not None and len(task.responses) == 2:
        scores["preference"] = {"value": PREFERENCE_STATEMENTS[task.preference], "agent": AGENT}
    return scores
