"""Reads tasks whole, with texts, labels in force, preference, pairs and votes, for layouts with a row for each task."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat
from typing import Any

import orjson
from django.db.models import Q, QuerySet

from annotator.consensus.rankings import Pair, pairs_of, ranking_of, ranks_of
from annotator.db.statements import Statement
from annotator.exporting.filters import Filters
from annotator.models import TIE, Adjudication, Consensus, Label, Project, Rating, Task
from annotator.models.label import IN_FORCE_OF_RESPONSE

FIRST, AT_ONCE, COUNTED_AT_ONCE = 120, 250, 5_000
"""Tasks that are read by one statement: the first and the following ones with all their texts, or without texts."""


@dataclass(frozen=True)
class Answer:
    """A response; `means` is its label in force, empty if it has none. `name` is its id as imported, or its number."""

    pk: int
    name: str
    model: str
    text: str
    means: dict[str, float]


@dataclass(frozen=True)
class Vote:
    """What one rater who counts prefers, and why. `feedback` is that on each response, if the statement reads it."""

    strength: int
    justification: str
    domain: str = ""
    language: str = ""
    feedback: Sequence[str] = ()


@dataclass(frozen=True)
class AnsweredTask:
    """A task. `preference` and `pairs` are those in force: the reviewer's, else the raters', else the imported ones.

    `pairs` are ids of responses, the better one first. `votes` are in the order of submission.
    """

    pk: int
    name: str
    conversation: list[dict[str, str]]
    prompt_hash: str
    language: str
    metadata: dict[str, Any]
    responses: Sequence[Answer]
    preference: int | None
    pairs: Sequence[Pair]
    votes: Sequence[Vote]


# Everything is looked up task by task, as in the snapshots (rewards/snapshots/lines.py).
_READ = """
SELECT t.id, t.external_id, {conversation}, t.prompt_hash, t.language, t.metadata, t.imported_preference, c.preference,
       c.pairs, coalesce(c.dropped_because, '') <> '', a.preference, a.ranking,
       (SELECT json_agg(json_build_array(r.id, r.external_id, r.position, r.model, {text}, l.means) ORDER BY r.position)
        FROM annotator_response r LEFT JOIN LATERAL ({in_force}) l ON true WHERE r.task_id = t.id),
       (SELECT json_agg(json_build_array(n.preference, n.justification{written}) ORDER BY n.submitted_at, n.id)
        FROM annotator_assignment s JOIN annotator_annotation n ON n.assignment_id = s.id
        WHERE {votes} AND s.task_id = t.id AND s.counts AND n.is_current AND n.preference IS NOT NULL)
FROM annotator_task t
LEFT JOIN LATERAL (SELECT * FROM annotator_consensus c WHERE c.task_id = t.id LIMIT 1) c ON true
LEFT JOIN LATERAL (
    SELECT * FROM annotator_adjudication a WHERE a.task_id = t.id AND a.is_current LIMIT 1
) a ON true
WHERE t.id = ANY(%(tasks)s) ORDER BY t.id
"""
_WRITTEN = """, n.domain, n.language,
        (SELECT json_agg(g.feedback ORDER BY p.position) FROM annotator_rating g
         JOIN annotator_response p ON p.id = g.response_id WHERE g.annotation_id = n.id)"""


def _statement(
    *, conversation: str = "t.conversation", text: str = "r.text", votes: str = "true", written: str = ""
) -> Statement:
    in_force = IN_FORCE_OF_RESPONSE
    return Statement(
        _READ.format(conversation=conversation, text=text, votes=votes, written=written, in_force=in_force),
        prepared=False,
    )


WHOLE = _statement()
WITH_FEEDBACK = _statement(written=_WRITTEN)
"""Reads what the raters wrote on each response as well, which takes longer."""
COUNTED = _statement(conversation="'[]'", text="''", votes="false")
"""Reads neither texts nor votes: enough to count the tasks."""


@dataclass(frozen=True)
class Selection:
    """Tasks of an export, and the condition that those with some ids must also meet to be read."""

    exported: QuerySet[Task]
    condition: Callable[[Sequence[int]], Q]

    def without(self, unseen: QuerySet[Any]) -> "Selection":
        return replace(self, exported=self.exported.exclude(pk__in=unseen))

    def ids(self, *, after: int, most: int) -> tuple[list[int], int | None]:
        """Returns the ids of those among the next `most` tasks that meet the condition, and the last id looked at."""
        looked_at = list(self.exported.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[:most])
        chosen = Task.objects.filter(self.condition(looked_at), pk__in=looked_at).order_by("pk")
        return list(chosen.values_list("pk", flat=True)), looked_at[-1] if len(looked_at) == most else None


def answered_tasks(tasks: Selection, read: Statement = WHOLE) -> Iterator[AnsweredTask]:
    """Yields the tasks in the order of their ids, some at a time, as the statement reads them."""
    for ids in id_batches(tasks, read):
        yield from tasks_of(ids, read)


def id_batches(tasks: Selection, read: Statement = WHOLE) -> Iterator[list[int]]:
    """Yields the ids of the tasks that are to be read by one statement each."""
    # A page shows the first rows only.
    sizes = chain([FIRST], repeat(AT_ONCE)) if read is not COUNTED else repeat(COUNTED_AT_ONCE)
    after: int | None = 0
    for size in sizes:
        if after is None:
            break
        ids, after = tasks.ids(after=after, most=size)
        if ids:
            yield ids


def tasks_of(ids: Sequence[int], read: Statement = WHOLE) -> Iterator[AnsweredTask]:
    """Reads the tasks with these ids, in the order of the ids."""
    return map(_task, read.rows(tasks=list(ids)))


def preferred_tasks(project: Project, filters: Filters) -> Selection:
    """Selects the tasks of the export that may have a preference or a ranking in force, by when it was made."""
    return Selection(_exported(project, filters), partial(_are_preferred, filters))


def compared_tasks(project: Project, filters: Filters) -> Selection:
    """Selects the tasks of the export whose responses may be told apart, by a preference, a ranking or labels."""

    def are_compared(ids: Sequence[int]) -> Q:
        labels = filters.of_time(Label.objects.filter(response__task__in=ids), "made_at")
        return Q(pk__in=labels.values("response__task")) | _are_preferred(filters, ids)

    return Selection(_exported(project, filters), are_compared)


def rated_tasks(project: Project, filters: Filters) -> Selection:
    """Selects the tasks of the export with a rating, by when it was submitted."""

    def are_rated(ids: Sequence[int]) -> Q:
        current = Rating.objects.filter(response__task__in=ids, annotation__is_current=True)
        return Q(pk__in=filters.of_time(current, "annotation__submitted_at").values("response__task"))

    return Selection(_exported(project, filters), are_rated)


def _exported(project: Project, filters: Filters) -> QuerySet[Task]:
    tasks: QuerySet[Task] = filters.of_tasks(Task.objects.filter(project=project), project)
    return tasks


def _are_preferred(filters: Filters, ids: Sequence[int]) -> Q:
    # By the ids, not by the task outside: PostgreSQL would read the preferences of all tasks for every part.
    agreed = Consensus.objects.filter(task__in=ids, dropped_because="")
    agreed = filters.of_time(agreed.filter(Q(preference__isnull=False) | ~Q(pairs=[])), "computed_at")
    settled = Adjudication.objects.filter(task__in=ids, is_current=True)
    settled = filters.of_time(settled.filter(Q(preference__isnull=False) | Q(ranking__isnull=False)), "made_at")
    then = Q(pk__in=agreed.values("task")) | Q(pk__in=settled.values("task"))
    return then if filters.ask_for_a_time() else then | Q(imported_preference__isnull=False)


def _task(row: Sequence[Any]) -> AnsweredTask:
    (pk, name, conversation, prompt_hash, language, metadata), answers, lists = row[:6], row[6:12], row[12:]
    imported, agreed, pairs, dropped, settled, ranking = answers
    responses, votes = (_json(value) or [] for value in lists)
    ranking = _json(ranking)
    return AnsweredTask(
        pk=pk,
        name=name,
        conversation=_json(conversation),
        prompt_hash=prompt_hash,
        language=language,
        metadata=_metadata(metadata),
        responses=[
            Answer(pk, imported_id or str(position + 1), model, text, means or {})
            for pk, imported_id, position, model, text, means in responses
        ],
        preference=_preference(settled, None if dropped else agreed, None if dropped else imported),
        pairs=pairs_of(ranking) if ranking else () if dropped else [(a, b) for a, b in _json(pairs) or []],
        votes=[Vote(*vote) for vote in votes],
    )


def _preference(settled: int | None, agreed: int | None, imported: int | None) -> int | None:
    """Returns the first that there is; None where it says that neither response is valid."""
    strength = next((value for value in (settled, agreed, imported) if value is not None), None)
    return strength if strength is not None and -3 <= strength <= 3 else None


def _json(value: Any) -> Any:
    # Django has psycopg return JSON as text.
    return orjson.loads(value) if isinstance(value, str) else value


def _metadata(value: Any) -> dict[str, Any]:
    # By the slower decoder, which keeps whole numbers of more than 64 bits as they are.
    return (json.loads(value) if isinstance(value, str) else value) or {}


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
