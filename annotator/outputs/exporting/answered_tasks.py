"""Reads tasks whole, with texts, labels in force, preference, pairs and votes, for layouts with a row for each task."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson
from django.core.exceptions import EmptyResultSet
from django.db.models import QuerySet

from annotator.infrastructure.db.planning import by_merging_without_transaction
from annotator.models import TIE, Task
from annotator.models.in_force import LABEL_IN_FORCE, NOT_DROPPED, PAIRS_IN_FORCE, PREFERENCE_IN_FORCE
from annotator.outputs.exporting.copied import Select, copied_in_parts, copied_lines
from annotator.outputs.exporting.selections import RowSelection
from annotator.stages.consensus.rankings import Pair, pairs_in_force, ranking_of, ranks_of

AT_ONCE = 4_000
"""Tasks whose rows are read by one statement. Twice as many as elsewhere, as each takes milliseconds to plan."""

# A table that was joined without the ids of a part would be read as a whole.
_SELECT = """
WITH part AS MATERIALIZED ({exported}),
assignments AS MATERIALIZED (
    SELECT id, task_id, annotator_id, counts FROM annotator_assignment WHERE task_id = ANY(ARRAY(SELECT id FROM part))
),
annotations AS MATERIALIZED (
    SELECT s.task_id, s.annotator_id, s.counts, n.id, {annotations}
    FROM annotator_annotation n JOIN assignments s ON s.id = n.assignment_id
    WHERE n.assignment_id = ANY(ARRAY(SELECT id FROM assignments)) AND n.is_current
),
raters AS MATERIALIZED (
    SELECT user_id, to_json(name) AS name FROM annotator_pseudonym
    WHERE project_id = %s AND user_id = ANY(ARRAY(SELECT annotator_id FROM assignments))
),
chosen AS MATERIALIZED ({chosen})
SELECT {row} FROM annotator_task t
LEFT JOIN (
    SELECT r.task_id, {responses} FROM annotator_response r {labels}
    WHERE r.task_id = ANY(ARRAY(SELECT id FROM chosen)) GROUP BY r.task_id
) responses ON responses.task_id = t.id
{decisions}
{sets}
WHERE t.id = ANY(ARRAY(SELECT id FROM chosen)) {listed} ORDER BY t.id
"""
_DECISIONS = """
LEFT JOIN (
    SELECT * FROM annotator_consensus WHERE task_id = ANY(ARRAY(SELECT id FROM {tasks}))
) c ON c.task_id = t.id
LEFT JOIN (
    SELECT * FROM annotator_adjudication WHERE is_current AND task_id = ANY(ARRAY(SELECT id FROM {tasks}))
) a ON a.task_id = t.id
"""
_SET = "LEFT JOIN ({rows}) {name} ON {name}.task_id = t.id"
# So that the texts of other tasks are not read.
_MEETING = """
    SELECT t.id FROM annotator_task t
    {decisions}
    WHERE t.id = ANY(ARRAY(SELECT id FROM part)) AND {condition}
"""
_ANNOTATED = "SELECT DISTINCT task_id AS id FROM annotations"


@dataclass(frozen=True)
class Reading:
    """What is read of each task, in SQL.

    `row` is the one value of a task's row, made of its table `t`, its consensus `c` and current adjudication `a` (both
    null where there is none), the columns of `responses`, and those of `sets`. `responses` are columns made of all
    responses `r` of a task; `labels` joins something else to each of these. Each of the `sets`, by its name, selects a
    row for each `task_id`, with the column `listed`, from `annotations` and from `raters`, which have the pseudonym as
    JSON for each `user_id`; its values are those of its parameters. The annotations are the current ones, with the
    columns of `n` that `annotations` names, their `id`, and the `task_id`, `annotator_id` and `counts` of their
    assignments.
    """

    row: str
    responses: str
    annotations: str
    labels: str = ""
    sets: Mapping[str, Select] = field(default_factory=dict)


def task_lines(tasks: RowSelection, reading: Reading) -> Iterator[bytes]:
    """Yields what is read of each task as a line, in the order of the tasks' ids, a part of the project at a time."""

    def of_part(first: int, end: int) -> Select:
        return _select(tasks, tasks.exported.filter(pk__gte=first, pk__lt=end), reading)

    with suppress(EmptyResultSet):  # the query's own conditions exclude everything
        if tasks.filters.among is None:
            planned = by_merging_without_transaction
            yield from copied_in_parts(tasks.project, of_part, planned=planned, at_once=AT_ONCE)
        else:
            select = _select(tasks, tasks.exported, reading)
            with by_merging_without_transaction():
                yield from copied_lines(*select)


def _select(tasks: RowSelection, exported: QuerySet[Task], reading: Reading) -> Select:
    sql, values = exported.values("id").query.sql_with_params()
    meeting = _MEETING.format(decisions=_DECISIONS.format(tasks="part"), condition=tasks.condition)
    select = _SELECT.format(
        exported=sql,
        row=reading.row,
        responses=reading.responses,
        annotations=reading.annotations,
        labels=reading.labels,
        sets="\n".join(_SET.format(rows=rows, name=name) for name, (rows, _) in reading.sets.items()),
        decisions=_DECISIONS.format(tasks="chosen"),
        chosen=_ANNOTATED if tasks.listed_in else meeting,
        listed=f"AND {tasks.listed_in}.listed IS NOT NULL" if tasks.listed_in else "",
    )
    of_sets = [value for _, of_set in reading.sets.values() for value in of_set]
    return select, [*values, tasks.project.pk, *tasks.values, *of_sets]


# Named tuples: of each task a dozen of these are made, and a frozen dataclass takes several times as long to make.


class ExportedResponse(NamedTuple):
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


class AnsweredTask(NamedTuple):
    """A task. `preference` and `pairs` are those in force: the reviewer's, else the raters', else the imported ones.

    `pairs` are ids of responses, the better one first; None before the raters agree, or if their answers are dropped.
    `votes` are in the order of submission; they and `metadata` are empty where they are not read. `dropped` says that
    the raters' answers are too far apart for a label.
    """

    pk: int
    name: str
    conversation: list[dict[str, str]]
    prompt_hash: str
    language: str
    metadata: dict[str, Any]
    responses: Sequence[ExportedResponse]
    preference: int | None
    pairs: Sequence[Pair] | None
    votes: Sequence[Vote]
    dropped: bool = False


# One JSON value for each task takes less time to send and to decode than a row of columns.
_ROW = f"""json_build_array(t.id, t.external_id, {{conversation}}, t.prompt_hash, t.language, {{metadata}},
    {PREFERENCE_IN_FORCE}, {PAIRS_IN_FORCE}, a.ranking, NOT ({NOT_DROPPED}),
    responses.listed, {{votes}})"""
_RESPONSES = """json_agg(
    json_build_array(r.id, r.external_id, r.position, r.model, {text}, {means}, {kept}) ORDER BY r.position
) AS listed"""
_LONG_NUMBER = re.compile(r"\d{19}")
_LABELS = f"""LEFT JOIN (
    SELECT task_id, drop_reason FROM annotator_consensus WHERE task_id = ANY(ARRAY(SELECT id FROM chosen))
) c ON c.task_id = r.task_id
LEFT JOIN LATERAL ({LABEL_IN_FORCE}) l ON true"""
_VOTES = """
    SELECT n.task_id, json_agg(json_build_array(n.preference, n.justification{written}) ORDER BY n.submitted_at, n.id)
        AS listed
    FROM annotations n WHERE n.counts AND n.preference IS NOT NULL GROUP BY n.task_id"""
_WRITTEN = """, n.domain, n.language,
        (SELECT coalesce(json_agg(g.feedback ORDER BY
            (SELECT position FROM annotator_response p WHERE p.id = g.response_id)), '[]')
         FROM annotator_rating g WHERE g.annotation_id = n.id)"""


@dataclass(frozen=True)
class Depth:
    """What is read of each task besides its preferences: the texts, and what else a layout has a use for.

    `written` reads what the voters wrote on each response, and `kept` the feedback that came with the responses.
    """

    texts: bool = True
    labels: bool = False
    votes: bool = False
    written: bool = False
    metadata: bool = False
    kept: bool = False


COUNTED = Depth(texts=False)
"""Enough to count the tasks with a preference."""


def answered_tasks(tasks: RowSelection, depth: Depth) -> Iterator[AnsweredTask]:
    """Yields the tasks in the order of their ids, a part of the project at a time."""
    return map(_task, map(orjson.loads, task_lines(tasks, _reading(depth))))


def _reading(depth: Depth) -> Reading:
    return Reading(
        row=_ROW.format(
            conversation="t.conversation" if depth.texts else "'[]'::json",
            metadata="t.metadata::text" if depth.metadata else "NULL",
            votes="votes.listed" if depth.votes else "NULL",
        ),
        responses=_RESPONSES.format(
            text="r.text" if depth.texts else "''",
            means="l.means" if depth.labels else "NULL",
            kept="r.metadata -> 'feedback'" if depth.kept else "NULL",
        ),
        labels=_LABELS if depth.labels else "",
        annotations="n.submitted_at, n.preference, n.justification, n.domain, n.language",
        sets={"votes": (_VOTES.format(written=_WRITTEN if depth.written else ""), ())} if depth.votes else {},
    )


def _task(row: Sequence[Any]) -> AnsweredTask:
    pk, name, conversation, prompt_hash, language, metadata, preference, pairs, ranking, dropped, responses, votes = row
    return AnsweredTask(
        pk=pk,
        name=name,
        conversation=conversation,
        prompt_hash=prompt_hash,
        language=language,
        metadata=_metadata(metadata) if metadata else {},
        responses=[
            ExportedResponse(pk, imported_id or str(position + 1), model, text, means or {}, feedback)
            for pk, imported_id, position, model, text, means, feedback in responses or ()
        ],
        preference=preference,
        pairs=pairs_in_force(ranking, pairs),
        votes=[Vote(*vote) for vote in votes] if votes else (),
        dropped=dropped,
    )


def _metadata(text: str) -> dict[str, Any]:
    # The slower decoder keeps whole numbers of more than 64 bits as they are.
    metadata: dict[str, Any] = json.loads(text) if _LONG_NUMBER.search(text) else orjson.loads(text)
    return metadata


@dataclass(frozen=True)
class Compared:
    """Two responses of a task, and by how much one is better: strengths of a preference, tiers or levels."""

    chosen: ExportedResponse
    rejected: ExportedResponse
    margin: float
    by: str


def comparisons(task: AnsweredTask, attributes: Sequence[str]) -> list[Compared]:
    """Returns the pairs that the task tells apart: by a ranking, else by its preference, else by labels.

    Labels compare one attribute, as in arXiv 2406.08673, section 4: the first of `attributes` that two of them have, as
    labels of an earlier version of the rubric may lack the one that decides today. Ties make no pair.
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
    attribute, rated = next(
        (
            (key, rated)
            for key in attributes
            if len(rated := [answer for answer in task.responses if key in answer.means]) > 1
        ),
        ("", []),
    )
    return [
        Compared(chosen, rejected, chosen.means[attribute] - rejected.means[attribute], "labels")
        for chosen in rated
        for rejected in rated
        if chosen.means[attribute] > rejected.means[attribute]
    ]
