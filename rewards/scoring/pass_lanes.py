"""The champion over all its project's responses: as many lanes as there are workers, each one chunk after the other.

The rows are the truth. Redis carries one short message a lane, so that small requests get their turn at once; a message
that is lost, or whose worker was killed, is found by its lane's age and sent anew.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import redis
from django.db import transaction
from django.db.models import Q

from annotator import audit
from annotator.background import failures, heartbeats, messages
from annotator.db.clock import database_now
from annotator.db.statements import Statement
from annotator.models import Project
from annotator.storage import disk_space
from annotator.storage.hidden_paths import without_places
from rewards.models import RewardModel, ScoringLane, ScoringPass
from rewards.scoring.chunks import Chunk, score_chunk
from rewards.scoring.model_cache import scorer_of

MOST_LANES = 64
LOST_AFTER = timedelta(minutes=2)
"""Without a sign from a lane. A big model takes long to load; a chunk that is scored twice does no harm."""
LOOK_AGAIN_AFTER = timedelta(hours=1)
"""All tasks are passed once more: an import may commit behind us, and redacted texts need new scores."""
LOOK_AHEAD = 2_000
"""Tasks that one turn passes at most, so that a turn over scored ones is short too."""
CHUNK_SECONDS = 1.0
"""What a chunk should take: a small request waits for no more than one."""
FEWEST_TASKS, MOST_TASKS = 8, 512
LAST = 9
"""A message's priority: small requests have 0, and Redis hands out what is smaller first."""


@dataclass(frozen=True)
class Turn:
    """A lane's turn, ours alone; `chunk` is None where only scored tasks were passed.

    `tasks` is 0 where the chunk was another's before us, who may have scored a part of it.
    """

    lane: int
    number: int
    chunk: Chunk | None
    tasks: int = 0


class Pace:
    """How many tasks this worker scores in CHUNK_SECONDS, learnt from chunk to chunk."""

    def __init__(self) -> None:
        self.tasks = FEWEST_TASKS

    @contextmanager
    def timed(self, tasks: int) -> Iterator[None]:
        began = time.monotonic()
        yield
        if not tasks:
            return
        fitting = tasks * CHUNK_SECONDS / max(time.monotonic() - began, 1e-3)
        # By no more than double at once: the next tasks may be longer.
        self.tasks = int(min(max(fitting, FEWEST_TASKS), 2 * self.tasks, MOST_TASKS))


pace = Pace()


def start(model: RewardModel, *, now: datetime) -> None:
    """Sends the model over its project's responses from the first task on.

    Raises:
        NoWorker: nobody listens to the queue `score`.
    """
    heartbeats.require("score")
    disk_space.require_room()
    with transaction.atomic():
        audit.record("scoring.started", f"model version {model.version}", project=model.project)
        wake(model, now=now, anew=True)


def start_due(*, now: datetime) -> int:
    """Wakes the lanes of every champion that has tasks ahead, or a lane that is lost; returns how many champions.

    On a disk that is nearly full nothing is woken, and lanes rest after the chunk that they have in hand.
    """
    if disk_space.shortages():
        return 0
    due = _DUE.rows(lost=now - LOST_AFTER, again=now - LOOK_AGAIN_AFTER)
    models = RewardModel.objects.filter(pk__in=[model for (model,) in due]).select_related("project")
    champions = {model.project: model for model in models}

    def wake_champion(project: Project) -> int:
        wake(champions[project], now=now)
        return 1

    return failures.each_project("start_due_scoring", champions, wake_champion)


# Costs the same however many tasks there are: the index knows what follows on the last one handed out.
_DUE = Statement("""
SELECT m.id FROM rewards_rewardmodel m LEFT JOIN rewards_scoringpass p ON p.reward_model_id = m.id
WHERE m.is_champion AND (
    p.id IS NULL OR p.began_at < %(again)s
    OR m.project_id = (
        SELECT t.project_id FROM annotator_task t WHERE (t.project_id, t.id) > (m.project_id, p.handed_out)
        ORDER BY t.project_id, t.id LIMIT 1
    )
    OR EXISTS (SELECT FROM rewards_scoringlane l WHERE l.scoring_pass_id = p.id AND l.moved_at < %(lost)s)
)
""")


@transaction.atomic
def wake(model: RewardModel, *, now: datetime, anew: bool = False) -> None:
    """A lane for each worker: those that rest or are lost get a message. What a lost one had in hand it takes up."""
    ScoringPass.objects.get_or_create(reward_model=model, defaults={"began_at": now})
    scoring_pass = ScoringPass.objects.select_for_update().get(reward_model=model)
    lanes = scoring_pass.lanes.all()
    if not lanes.filter(moved_at__isnull=False).exists() and (anew or scoring_pass.began_at < now - LOOK_AGAIN_AFTER):
        scoring_pass.handed_out, scoring_pass.began_at = 0, now
        scoring_pass.save(update_fields=["handed_out", "began_at"])
    numbers = range(1, wanted() + 1)
    ScoringLane.objects.bulk_create(
        [ScoringLane(scoring_pass=scoring_pass, number=number) for number in numbers], ignore_conflicts=True
    )
    asleep = Q(moved_at__isnull=True, number__in=numbers) | Q(moved_at__lt=now - LOST_AFTER)
    for lane in lanes.filter(asleep).order_by("number").select_for_update():
        lane.turn, lane.moved_at = lane.turn + 1, now
        lane.save(update_fields=["turn", "moved_at"])
        send(lane.pk, lane.turn)


def wanted() -> int:
    """How many lanes to keep: one for each score worker, or one if Redis cannot tell."""
    try:
        listening = heartbeats.listening()["score"].workers
    except redis.RedisError:
        return 1
    return min(max(listening, 1), MOST_LANES)


def send(lane: int, turn: int) -> None:
    messages.send_on_commit("rewards.tasks.score_chunk", [lane, turn], priority=LAST)


# A turn ----------------------------------------------------------------------------------------------------


@transaction.atomic
def take(lane_id: int, number: int, *, now: datetime, tasks: int) -> Turn | None:
    """Takes the turn unless somebody has, with at most so many tasks. None where the lane has come to its end."""
    # The pass before its lanes, as waking locks them: else each could wait for the other.
    ScoringPass.objects.select_for_update(of=["self"]).filter(lanes=lane_id).first()
    if not ScoringLane.objects.filter(pk=lane_id, turn=number).update(turn=number + 1, moved_at=now):
        return None
    lane = ScoringLane.objects.select_related("scoring_pass__reward_model").get(pk=lane_id)
    goes_on = lane.scoring_pass.reward_model.is_champion and not disk_space.shortages()
    turn = _with_chunk(lane, tasks) if goes_on else None
    if turn is None:
        ScoringLane.objects.filter(pk=lane_id).update(moved_at=None, first_task=None, last_task=None)
    return turn


def _with_chunk(lane: ScoringLane, tasks: int) -> Turn | None:
    """What the lane has still in hand, from a turn that was lost, or else the next tasks."""
    model = lane.scoring_pass.reward_model
    if lane.first_task is not None and lane.last_task is not None:
        return Turn(lane.pk, lane.turn, Chunk(model, lane.first_task, lane.last_task))
    portion = _hand_out(model, tasks) if lane.number <= wanted() else None
    if not portion:
        return None if portion is None else Turn(lane.pk, lane.turn, None)
    lane.first_task, lane.last_task = portion[0], portion[-1]
    lane.save(update_fields=["first_task", "last_task"])
    return Turn(lane.pk, lane.turn, Chunk(model, portion[0], portion[-1]), tasks=len(portion))


def _hand_out(model: RewardModel, tasks: int) -> list[int] | None:
    """The next tasks that lack a score, perhaps none of those just ahead; None at the end of all tasks."""
    progress = ScoringPass.objects.select_for_update().get(reward_model=model)
    values = {"model": model.pk, "project": model.project_id, "after": progress.handed_out}
    ((passed, portion),) = _NEXT.rows(**values, look=LOOK_AHEAD, tasks=tasks)
    if passed is None:
        return None
    progress.handed_out = portion[-1] if len(portion) == tasks else passed
    progress.save(update_fields=["handed_out"])
    return list(portion)


# Each task is looked at by itself (LATERAL, LIMIT 1), in the index's order, until there are enough: joined as a whole,
# every turn would read all responses.
_NEXT = Statement(
    """
WITH ahead AS MATERIALIZED (
    SELECT max(id) AS last FROM (
        SELECT t.id FROM annotator_task t
        WHERE t.project_id = %(project)s AND t.id > %(after)s ORDER BY t.id LIMIT %(look)s
    ) AS each
)
SELECT ahead.last, ARRAY(
    SELECT t.id FROM annotator_task t CROSS JOIN LATERAL (
        SELECT r.id FROM annotator_response r WHERE r.task_id = t.id AND NOT EXISTS (
            SELECT FROM rewards_score s WHERE s.reward_model_id = %(model)s AND s.response_id = r.id
                AND (t.redacted_at IS NULL OR s.created_at >= t.redacted_at)
        ) LIMIT 1
    ) AS unscored
    WHERE t.project_id = %(project)s AND t.id > %(after)s AND t.id <= ahead.last AND t.state <> 'retired'
    ORDER BY t.id LIMIT %(tasks)s
) FROM ahead
""",
    prepared=False,
)


def score(turn: Turn) -> int:
    """Scores what the turn has in hand; returns how many responses."""
    if turn.chunk is None:
        return 0
    scorer = scorer_of(turn.chunk.model)  # loaded before the time is taken
    with pace.timed(turn.tasks):
        return score_chunk(turn.chunk, scorer, now=database_now())


def finish(turn: Turn, *, now: datetime) -> None:
    """Hands the lane on, unless it was thought lost and has gone on without us."""
    ScoringPass.objects.filter(lanes=turn.lane).exclude(error="").update(error="")
    done = ScoringLane.objects.filter(pk=turn.lane, turn=turn.number)
    if done.update(first_task=None, last_task=None, moved_at=now):
        send(turn.lane, turn.number)


def note_failure(turn: Turn, error: str) -> None:
    ScoringPass.objects.filter(lanes=turn.lane).update(error=without_places(error))
