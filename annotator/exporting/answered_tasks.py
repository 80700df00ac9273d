"""Reads tasks whole, with texts, labels in force, preference, pairs and votes, for layouts with a row for each task."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import orjson
from django.core.exceptions import EmptyResultSet
from django.db.models import QuerySet

from annotator.consensus.rankings import Pair, pairs_of, ranking_of, ranks_of
from annotator.exporting.copied import MOMENT
from annotator.exporting.filters import Filters
from annotator.exporting.parts import Select, copied_in_parts, copied_lines
from annotator.models import TIE, Project, Task
from annotator.models.label import IN_FORCE_OF_RESPONSE

# Named tuples: of each task a dozen of these are made, and a frozen dataclass takes several times as long to make.


class Answer(NamedTuple):
    """A response. `name` is its id as imported, or its number; `means` is its label in force, empty if it has none.

    `means` and `feedback`, which is what came with its file about it, are empty where they are not read.
    """

    pk: int
    name: str
    model: str
    text: str
    means: dict[str, float]
    feedback: Any = None


class Vote(NamedTuple):
    """What one rater who counts prefers, and why. `feedback` is that on each response, if the statement reads it."""

    strength: int
    justification: str
    domain: str = ""
    language: str = ""
    feedback: Sequence[str] = ()


class RatedBy(NamedTuple):
    """One current annotation, whether it counts or not, with its rater's pseudonym.

    `scores` are those of each response, by its id.
    """

    annotator: str
    preference: int | None
    justification: str
    active_seconds: float | None
    scores: Sequence[tuple[int, dict[str, int]]]


class RankedBy(NamedTuple):
    """One current annotation's ranking, in tiers of responses by their ids, with its rater's pseudonym."""

    annotator: str
    ranking: Sequence[Sequence[int]]
    justification: str
    submitted_at: str
    counts: bool


class AnsweredTask(NamedTuple):
    """A task. `preference` and `pairs` are those in force: the reviewer's, else the raters', else the imported ones.

    `pairs` are ids of responses, the better one first; None before the raters agree, or if their answers are dropped.
    `votes` and `rankings` are in the order of submission; they, `ratings` and `metadata` are empty where they are not
    read. `dropped` says that the raters' answers are too far apart for a label.
    """

    pk: int
    name: str
    conversation: list[dict[str, str]]
    prompt_hash: str
    language: str
    metadata: dict[str, Any]
    responses: Sequence[Answer]
    preference: int | None
    pairs: Sequence[Pair] | None
    votes: Sequence[Vote]
    ratings: Sequence[RatedBy] = ()
    rankings: Sequence[RankedBy] = ()
    dropped: bool = False


# Everything is looked up task by task, as in the snapshots (rewards/snapshots/lines.py). One JSON value for each task
# takes less time to send and to decode than a row of columns.
_SELECT = """
SELECT json_build_array(t.id, t.external_id, {conversation}, t.prompt_hash, t.language, {metadata},
    t.imported_preference, c.preference, c.pairs, coalesce(c.dropped_because, '') <> '', a.preference, a.ranking,
    (SELECT json_agg(json_build_array(r.id, r.external_id, r.position, r.model, {text}, {means}, {kept})
                      ORDER BY r.position)
     FROM annotator_response r {labels} WHERE r.task_id = t.id),
    {votes}, {ratings}, {rankings})
FROM ({exported}) t ({columns})
LEFT JOIN LATERAL (SELECT * FROM annotator_consensus c WHERE c.task_id = t.id LIMIT 1) c ON true
LEFT JOIN LATERAL (
    SELECT * FROM annotator_adjudication a WHERE a.task_id = t.id AND a.is_current LIMIT 1
) a ON true
WHERE {condition} ORDER BY t.id
"""
_COLUMNS = (
    "id",
    "project_id",
    "external_id",
    "conversation",
    "prompt_hash",
    "language",
    "metadata",
    "imported_preference",
)
_LONG_NUMBER = re.compile(r"\d{19}")
_LABELS = f"LEFT JOIN LATERAL ({IN_FORCE_OF_RESPONSE}) l ON true"
_VOTES = """(
    SELECT json_agg(json_build_array(n.preference, n.justification{written}) ORDER BY n.submitted_at, n.id)
    FROM annotator_assignment s JOIN annotator_annotation n ON n.assignment_id = s.id
    WHERE s.task_id = t.id AND s.counts AND n.is_current AND n.preference IS NOT NULL)"""
_WRITTEN = """, n.domain, n.language,
        (SELECT json_agg(g.feedback ORDER BY p.position) FROM annotator_rating g
         JOIN annotator_response p ON p.id = g.response_id WHERE g.annotation_id = n.id)"""
_RATINGS = """(
    SELECT json_agg(json_build_array(y.name, n.preference, n.justification, n.active_seconds, g.scores)
                    ORDER BY n.id)
    FROM annotator_assignment s JOIN annotator_annotation n ON n.assignment_id = s.id
    CROSS JOIN LATERAL (
        SELECT json_agg(json_build_array(g.response_id, g.scores)) AS scores FROM annotator_rating g
        WHERE g.annotation_id = n.id
    ) g
    LEFT JOIN annotator_pseudonym y ON y.user_id = s.annotator_id AND y.project_id = t.project_id
    WHERE s.task_id = t.id AND n.is_current AND g.scores IS NOT NULL{in_time})"""

_RANKINGS = f"""(
    SELECT json_agg(json_build_array(y.name, n.ranking, n.justification, {MOMENT % {"expressions": "n.submitted_at"}},
                                     s.counts) ORDER BY n.submitted_at, n.id)
    FROM annotator_assignment s JOIN annotator_annotation n ON n.assignment_id = s.id
    LEFT JOIN annotator_pseudonym y ON y.user_id = s.annotator_id AND y.project_id = t.project_id
    WHERE s.task_id = t.id AND n.is_current AND n.ranking IS NOT NULL)"""


@dataclass(frozen=True)
class Depth:
    """What is read of each task besides its preferences: the texts, and what else a layout has a use for.

    `written` reads what the voters wrote on each response, `ratings` and `rankings` what every rater said, whether it
    counts or not, and `kept` the feedback that came with the responses.
    """

    texts: bool = True
    labels: bool = False
    votes: bool = False
    written: bool = False
    ratings: bool = False
    rankings: bool = False
    metadata: bool = False
    kept: bool = False


COUNTED = Depth(texts=False)
"""Enough to count the tasks with a preference."""


@dataclass(frozen=True)
class Selection:
    """Tasks of an export, and the condition, as SQL with its values, that they must also meet to be read."""

    project: Project
    filters: Filters
    exported: QuerySet[Task]
    condition: str
    values: Sequence[Any]

    def without(self, unseen: QuerySet[Any]) -> "Selection":
        return replace(self, exported=self.exported.exclude(pk__in=unseen))


def answered_tasks(tasks: Selection, depth: Depth) -> Iterator[AnsweredTask]:
    """Yields the tasks in the order of their ids, a part of the project at a time."""

    def of_part(first: int, end: int) -> Select:
        return _select(tasks, tasks.exported.filter(pk__gte=first, pk__lt=end), depth)

    with suppress(EmptyResultSet):  # the query's own conditions exclude everything
        whole = tasks.filters.among is not None
        lines = (
            copied_lines(*_select(tasks, tasks.exported, depth)) if whole else copied_in_parts(tasks.project, of_part)
        )
        yield from map(_task, map(orjson.loads, lines))


def _select(tasks: Selection, exported: QuerySet[Task], depth: Depth) -> Select:
    sql, values = exported.values(*_COLUMNS).query.sql_with_params()
    in_time, times = _in_time("n.submitted_at", tasks.filters) if depth.ratings else ("", [])
    select = _SELECT.format(
        conversation="t.conversation" if depth.texts else "'[]'::json",
        text="r.text" if depth.texts else "''",
        metadata="t.metadata::text" if depth.metadata else "NULL",
        means="l.means" if depth.labels else "NULL",
        labels=_LABELS if depth.labels else "",
        kept="r.metadata -> 'feedback'" if depth.kept else "NULL",
        votes=_VOTES.format(written=_WRITTEN if depth.written else "") if depth.votes else "NULL",
        ratings=_RATINGS.format(in_time=in_time) if depth.ratings else "NULL",
        rankings=_RANKINGS if depth.rankings else "NULL",
        exported=sql,
        columns=", ".join(_COLUMNS),
        condition=tasks.condition,
    )
    return select, [*times, *values, *tasks.values]


def preferred_tasks(project: Project, filters: Filters) -> Selection:
    """Selects the tasks of the export that may have a preference or a ranking in force, by when it was made."""
    condition, values = _are_preferred(filters)
    return Selection(project, filters, _exported(project, filters), condition, values)


def preferred_or_kept_tasks(project: Project, filters: Filters) -> Selection:
    """Selects the tasks of `preferred_tasks` and those that came with what people said in HelpSteer3's fields."""
    preferred = preferred_tasks(project, filters)
    return (
        preferred if filters.ask_for_a_time() else replace(preferred, condition=f"({preferred.condition} OR {_KEPT})")
    )


_KEPT = """t.metadata ? 'overall_preference' OR EXISTS (
    SELECT FROM annotator_response r WHERE r.task_id = t.id AND r.metadata ? 'feedback' OFFSET 0)"""


def compared_tasks(project: Project, filters: Filters) -> Selection:
    """Selects the tasks of the export whose responses may be told apart, by a preference, a ranking or labels."""
    preferred, values = _are_preferred(filters)
    in_time, times = _in_time("l.made_at", filters)
    # OFFSET 0 has PostgreSQL look for the labels of this task: it would read those of all tasks for every part.
    labelled = f"""EXISTS (SELECT FROM annotator_response r JOIN annotator_label l ON l.response_id = r.id
        WHERE r.task_id = t.id{in_time} OFFSET 0)"""
    condition = f"({preferred} OR {labelled})"
    return Selection(project, filters, _exported(project, filters), condition, [*values, *times])


def ranked_tasks(project: Project, filters: Filters) -> Selection:
    """Selects the tasks of the export with a ranking, by when it was submitted."""
    in_time, times = _in_time("n.submitted_at", filters)
    condition = f"""EXISTS (SELECT FROM annotator_assignment s JOIN annotator_annotation n ON n.assignment_id = s.id
        WHERE s.task_id = t.id AND n.is_current AND n.ranking IS NOT NULL{in_time} OFFSET 0)"""
    return Selection(project, filters, _exported(project, filters), condition, times)


def rated_tasks(project: Project, filters: Filters) -> Selection:
    """Selects the tasks of the export with a rating, by when it was submitted."""
    in_time, times = _in_time("n.submitted_at", filters)
    condition = f"""EXISTS (SELECT FROM annotator_assignment s JOIN annotator_annotation n ON n.assignment_id = s.id
        JOIN annotator_rating g ON g.annotation_id = n.id WHERE s.task_id = t.id AND n.is_current{in_time} OFFSET 0)"""
    return Selection(project, filters, _exported(project, filters), condition, times)


def _exported(project: Project, filters: Filters) -> QuerySet[Task]:
    tasks: QuerySet[Task] = filters.of_tasks(Task.objects.filter(project=project), project)
    return tasks


def _are_preferred(filters: Filters) -> tuple[str, list[Any]]:
    agreed, agreed_times = _in_time("c.computed_at", filters)
    settled, settled_times = _in_time("a.made_at", filters)
    # Before the raters agree or a reviewer decides, `c` and `a` are null, and so are conditions on them.
    condition = f"""(c.dropped_because = '' AND (c.preference IS NOT NULL OR c.pairs <> '[]'){agreed}
        OR (a.preference IS NOT NULL OR a.ranking IS NOT NULL){settled}"""
    imported = "" if filters.ask_for_a_time() else " OR t.imported_preference IS NOT NULL"
    return f"{condition}{imported})", [*agreed_times, *settled_times]


def _in_time(column: str, filters: Filters) -> tuple[str, list[Any]]:
    """Returns a condition on a column of times, with AND before it, and its values."""
    conditions = [(f" AND {column} >= %s", filters.since), (f" AND {column} < %s", filters.until)]
    asked = [(condition, moment) for condition, moment in conditions if moment]
    return "".join(condition for condition, _ in asked), [moment for _, moment in asked]


def _task(row: Sequence[Any]) -> AnsweredTask:
    pk, name, conversation, prompt_hash, language, metadata, imported, agreed, pairs, dropped, settled, ranking = row[
        :12
    ]
    responses, votes, ratings, rankings = row[12:]
    return AnsweredTask(
        pk=pk,
        name=name,
        conversation=conversation,
        prompt_hash=prompt_hash,
        language=language,
        metadata=_metadata(metadata) if metadata else {},
        responses=[
            Answer(pk, imported_id or str(position + 1), model, text, means or {}, feedback)
            for pk, imported_id, position, model, text, means, feedback in responses or ()
        ],
        preference=_preference(settled, None if dropped else agreed, None if dropped else imported),
        pairs=pairs_of(ranking) if ranking else None if dropped or pairs is None else [(a, b) for a, b in pairs],
        votes=[Vote(*vote) for vote in votes] if votes else (),
        ratings=[RatedBy(*rating) for rating in ratings] if ratings else (),
        rankings=[RankedBy(*given) for given in rankings] if rankings else (),
        dropped=dropped,
    )


def _metadata(text: str) -> dict[str, Any]:
    # The slower decoder keeps whole numbers of more than 64 bits as they are.
    metadata: dict[str, Any] = json.loads(text) if _LONG_NUMBER.search(text) else orjson.loads(text)
    return metadata


def _preference(settled: int | None, agreed: int | None, imported: int | None) -> int | None:
    """Returns the first that there is; None where it says that neither response is valid."""
    strength = next((value for value in (settled, agreed, imported) if value is not None), None)
    return strength if strength is not None and -3 <= strength <= 3 else None


@dataclass(frozen=True)
class Compared:
    """Two responses of a task, and by how much one is better: strengths of a preference, tiers or levels."""

    chosen: Answer
    rejected: Answer
    margin: float
    by: str


def comparisons(task: AnsweredTask, attribute: str) -> list[Compared]:
    """Returns the pairs that the task tells apart: by a ranking, else by its preference, else by labels.

    Labels compare the `attribute`, as in arXiv 2406.08673, section 4. Ties make no pair.
    """
    by_id = {answer.pk: answer for answer in task.responses}
    if task.pairs:
        ranks = ranks_of(ranking_of(task.pairs, list(by_id)))
        # Where the pairs form a circle, the better of two may stand lower.
        return [
            Compared(by_id[better], by_id[worse], float(max(ranks[worse] - ranks[better], 1)), "ranking")
            for better, worse in task.pairs
        ]
    if task.preference is not None and len(task.responses) == 2:
        if task.preference == TIE:
            return []
        first, second = task.responses
        pair = (first, second) if task.preference < 0 else (second, first)
        return [Compared(*pair, float(abs(task.preference)), "preference")]
    rated = [answer for answer in task.responses if attribute in answer.means]
    return [
        Compared(chosen, rejected, chosen.means[attribute] - rejected.means[attribute], "labels")
        for chosen in rated
        for rejected in rated
        if chosen.means[attribute] > rejected.means[attribute]
    ]
