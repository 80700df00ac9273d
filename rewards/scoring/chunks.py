"""Scores the responses of a few whole tasks. What has a score is left alone, so a chunk may run twice without harm.

The cost does not depend on how many responses the model has scored: every read follows an index within the chunk.
"""

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from django.conf import settings

from annotator.infrastructure.db.statements import Statement
from annotator.infrastructure.storage import store
from annotator.models import Project, Response
from annotator.stages.annotation import stored_cuts
from annotator.stages.segmenting import Range
from rewards.learning.data import Item, turns_of
from rewards.models import RewardModel

if TYPE_CHECKING:
    from rewards.learning import score

CHUNK_SECONDS = 1.0
"""The time that a chunk should take: a small request waits for no more than one chunk."""
FEWEST_TASKS, MOST_TASKS = 8, 512
_loading = threading.Lock()


class Pace:
    """The number of tasks that this worker scores in CHUNK_SECONDS, learnt from chunk to chunk."""

    def __init__(self) -> None:
        self.tasks = FEWEST_TASKS

    @contextmanager
    def timed(self, tasks: int) -> Iterator[None]:
        """Measures the time in which so many tasks are scored; for 0 it learns nothing."""
        began = time.monotonic()
        yield
        if not tasks:
            return
        fitting = tasks * CHUNK_SECONDS / max(time.monotonic() - began, 1e-3)
        # No more than doubled at once, as the next tasks may be longer.
        self.tasks = int(min(max(fitting, FEWEST_TASKS), 2 * self.tasks, MOST_TASKS))


pace = Pace()


def scorer_of(model: RewardModel) -> "score.Scorer":
    """Returns the loaded model; the SCORE_MODELS_KEPT models that were used last stay in memory."""
    # lru_cache lets two threads compute the same entry: the model would be in memory twice while it loads.
    with _loading:
        return _loaded(str(store.bring(model.directory())))


@lru_cache(maxsize=settings.SCORE_MODELS_KEPT)
def _loaded(directory: str) -> "score.Scorer":
    from rewards.learning.score import load  # noqa: PLC0415  it imports torch

    return load(Path(directory), precision=settings.SCORE_PRECISION)


def as_items(items: Sequence[Mapping[str, Any]]) -> list[Item]:
    """Returns items as they come in a request's JSON as items of the learning core."""
    return [
        Item(
            str(number),
            turns_of(item["conversation"]),
            item["response"],
            tuple((start, end) for start, end in item.get("segments", ())),
        )
        for number, item in enumerate(items)
    ]


class Scorer(Protocol):
    """The part of rewards.learning.score.Scorer that is needed here, declared without importing torch."""

    @property
    def precision(self) -> str: ...

    def in_precision(self, name: str) -> "Scorer": ...

    def encode(self, item: Item) -> Any: ...

    def key(self, encoded: Any) -> UUID: ...

    def score_encoded(self, encoded: Sequence[Any]) -> Sequence[Any]: ...


@dataclass(frozen=True)
class Chunk:
    """The tasks of the model's project with ids from `first` to `last`, both included."""

    model: RewardModel
    first: int
    last: int

    def parameters(self) -> dict[str, int]:
        return {
            "model": self.model.pk,
            "project": self.model.project_id,
            "first": self.first,
            "last": self.last,
        }


@dataclass(frozen=True)
class GivenScores:
    """A response's scores by attribute, its reward and the reward's standard deviation.

    `segments` are the scores of its segments by aspect; one of which the model has read no token has none.
    """

    scores: Mapping[str, float]
    reward: float
    uncertainty: float | None
    segments: Sequence[Sequence[float | None]] | None = None


def score_chunk(chunk: Chunk, scorer: Scorer, *, now: datetime) -> int:
    """Scores the chunk's responses that have no score, or one of a text that was redacted since; returns how many."""
    unscored = _UNSCORED.rows(**chunk.parameters())
    if not unscored:
        return 0
    scorer = _in_one_precision(chunk.model, scorer)
    aspects: Sequence[str] = chunk.model.manifest.get("aspects") or ()
    cuts = _cuts(chunk.model.project, [row[0] for row in unscored]) if aspects else {}
    encoded = [scorer.encode(item) for item in _items(unscored, cuts)]
    keys = [scorer.key(sample) for sample in encoded]
    rows = _KNOWN.rows(model=chunk.model.pk, keys=list(set(keys)))
    stored = {
        key: GivenScores(json.loads(scores), reward, uncertainty, json.loads(segments) if segments else None)
        for key, scores, reward, uncertainty, segments in rows
    }
    # Equal tokens give equal scores, so each text is read once, and a task's responses share one pass over the prompt.
    fresh = {key: sample for key, sample in zip(keys, encoded, strict=True) if key not in stored}
    for key, result in zip(fresh, scorer.score_encoded(list(fresh.values())), strict=True):
        segments = [[of_one.get(aspect) for aspect in aspects] for of_one in vars(result).get("segments") or ()]
        stored[key] = GivenScores(result.scores, result.reward, result.uncertainty, segments or None)
    _store(chunk.model, {row[0]: key for row, key in zip(unscored, keys, strict=True)}, stored, now)
    return len(unscored)


def _in_one_precision(model: RewardModel, scorer: Scorer) -> Scorer:
    """Returns the scorer in the precision of all of the model's stored scores, which the first chunk settles.

    Workers on other processors would choose another one, and responses would be ranked by rounding. Scores from before
    anybody noted it may be mixed; such a model stays without.
    """
    if not model.score_precision:
        rows = RewardModel.objects.filter(pk=model.pk)
        # One conditional UPDATE decides between lanes that begin at the same time.
        rows.filter(score_precision="", scored=0).update(score_precision=scorer.precision)
        model.score_precision = rows.values_list("score_precision", flat=True).first() or ""
    return scorer.in_precision(model.score_precision or scorer.precision)


# A score from before its task was redacted belongs to another text. None of the statements here is prepared: PostgreSQL
# may plan a prepared one for average values, and these depend on how many ids and keys a chunk holds.
_UNSCORED = Statement(
    """
SELECT r.id, r.task_id, r.text FROM annotator_task t
JOIN annotator_response r ON r.task_id = t.id
LEFT JOIN rewards_score s ON s.reward_model_id = %(model)s AND s.response_id = r.id
WHERE t.project_id = %(project)s AND t.id BETWEEN %(first)s AND %(last)s AND t.state <> 'retired'
    AND (s.id IS NULL OR s.created_at < t.redacted_at)
ORDER BY t.id, r.position
""",
    prepared=False,
)
_CONVERSATIONS = Statement("SELECT id, conversation FROM annotator_task WHERE id = ANY(%(tasks)s)", prepared=False)


def _cuts(project: Project, responses: Sequence[int]) -> Mapping[int, tuple[Range, ...]]:
    """Returns the segments of the responses; those that nobody has been given to rate are cut now."""
    rows = Response.objects.filter(pk__in=responses).select_related("task").defer("task__conversation")
    cuts: dict[int, tuple[Range, ...]] = {}
    # A task's responses share the room for segments.
    for _task, of_task in groupby(rows.order_by("task", "position"), key=attrgetter("task_id")):
        together = list(of_task)
        cuts |= stored_cuts(project, together[0].task, together)
    return cuts


def _items(responses: Sequence[tuple[int, int, str]], cuts: Mapping[int, tuple[Range, ...]]) -> list[Item]:
    rows = _CONVERSATIONS.rows(tasks=sorted({task for _, task, _ in responses}))
    conversations = {task: turns_of(json.loads(turns)) for task, turns in rows}
    return [
        Item(str(response), conversations[task], text, cuts.get(response, ())) for response, task, text in responses
    ]


_KNOWN = Statement(
    """
SELECT DISTINCT ON (token_key) token_key, scores, reward, uncertainty, segment_scores::text FROM rewards_score
WHERE reward_model_id = %(model)s AND token_key = ANY(%(keys)s)
""",
    prepared=False,
)


# The join leaves out responses that were deleted while the model read them, whose rows would break the foreign key.
# ON CONFLICT overwrites, because a chunk may be scored twice: by a lane that was thought lost and by its successor.
_STORE = Statement(
    """
INSERT INTO rewards_score
    (reward_model_id, response_id, scores, reward, uncertainty, token_key, segment_scores, created_at)
SELECT %(model)s, r.id, new.scores::jsonb, new.reward, new.uncertainty, new.key, new.segments::jsonb, %(now)s
FROM unnest(%(responses)s::bigint[], %(scores)s::text[], %(rewards)s::float8[], %(uncertainties)s::float8[],
            %(keys)s::uuid[], %(segments)s::text[]) AS new (response, scores, reward, uncertainty, key, segments)
JOIN annotator_response r ON r.id = new.response
ON CONFLICT (reward_model_id, response_id) DO UPDATE SET scores = excluded.scores, reward = excluded.reward,
    uncertainty = excluded.uncertainty, token_key = excluded.token_key, segment_scores = excluded.segment_scores,
    created_at = excluded.created_at
""",
    prepared=False,
)


def _store(model: RewardModel, keys: Mapping[int, UUID], by_key: Mapping[UUID, GivenScores], now: datetime) -> None:
    """Stores the scores of responses, by id with the key of their tokens, in one statement."""
    results = [by_key[key] for key in keys.values()]
    _STORE.run(
        model=model.pk,
        now=now,
        responses=list(keys),
        keys=list(keys.values()),
        scores=[json.dumps(result.scores) for result in results],
        rewards=[result.reward for result in results],
        uncertainties=[result.uncertainty for result in results],
        segments=[json.dumps(result.segments) if result.segments else None for result in results],
    )
