"""Sends the champion over all its project's responses in lanes, one for each worker, chunk after chunk.

The rows are the truth. Redis carries one short message a lane, so that small requests get their turn at once. A message
that is lost, or whose worker was killed, is noticed by its lane's age and sent again.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import redis
from django.db import transaction
from django.db.models import Q

from annotator.infrastructure import audit
from annotator.infrastructure.background import failures, heartbeats, messages
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.db.statements import Statement
from annotator.infrastructure.storage import disk_space
from annotator.infrastructure.storage.hidden_paths import without_places
from annotator.models import Project
from rewards.models import RewardModel, ScoringLane, ScoringPass
from rewards.scoring.chunks import Chunk, pace, score_chunk, scorer_of

MOST_LANES = 64
LOST_AFTER = timedelta(minutes=2)
"""A lane without a sign for this long is lost. A big model takes long to load; a chunk scored twice does no harm."""
LOOK_AGAIN_AFTER = timedelta(hours=1)
"""After this time all tasks are passed again: imports may commit behind a pass, and redacted texts need new scores."""
LOOK_AHEAD = 2_000
"""The most tasks that one turn passes, so that a turn over scored tasks is short too."""
LAST = 9
"""The priority of a lane's message: small requests have 0, and Redis hands out smaller ones first."""


@dataclass(frozen=True)
class Turn:
    """A turn of a lane that this worker alone has; `chunk` is None where only scored tasks were passed.

    `tasks` counts the tasks to score. It is 0 where a lost worker had the chunk before, and may have scored some of it.
    """

    lane: int
    number: int
    chunk: Chunk | None
    tasks: int = 0


def start(model: RewardModel, *, now: datetime) -> None:
    """Sends the model over its project's responses from the first task on.

    Raises:
        Refusal: nobody listens to the queue `score`.
    """
    heartbeats.require("score")
    disk_space.require_room()
    with transaction.atomic():
        audit.record("scoring.started", f"model version {model.version}", project=model.project)
        wake(model, now=now, anew=True)


def start_due(*, now: datetime) -> int:
    """Wakes the lanes of every champion that has tasks ahead or a lost lane; returns how many champions.

    On a disk that is nearly full nothing is woken, and lanes rest after their current chunk.
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


# The cost does not grow with the tasks: the row comparison follows the index to the task after the last one handed out.
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
    """Makes a lane for each worker and sends a message to those that rest or are lost.

    A lost lane takes up the chunk that it had. With `anew` a model whose lanes all rest begins at the first task.
    """
    ScoringPass.objects.get_or_create(reward_model=model, defaults={"began_at": now})
    # The pass is locked before its lanes, here and in `take`: in the other order two workers could wait for each other.
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
    # The next turn's number makes an older message, or a worker that comes back, fail to take or finish its turn.
    for lane in lanes.filter(asleep).order_by("number").select_for_update():
        lane.turn, lane.moved_at = lane.turn + 1, now
        lane.save(update_fields=["turn", "moved_at"])
        send(lane.pk, lane.turn)


def wanted() -> int:
    """Returns how many lanes to keep: one for each score worker, or one if Redis cannot be asked."""
    try:
        listening = heartbeats.listening()["score"].workers
    except redis.RedisError:
        return 1
    return min(max(listening, 1), MOST_LANES)


def send(lane: int, turn: int) -> None:
    """Sends the message of a lane's turn once the transaction is committed, so that a worker finds the row."""
    messages.send_on_commit("rewards.tasks.score_chunk", [lane, turn], priority=LAST)


# A turn ----------------------------------------------------------------------------------------------------


@transaction.atomic
def take(lane_id: int, number: int, *, now: datetime, tasks: int) -> Turn | None:
    """Takes the turn with at most so many tasks.

    Returns None where another worker has taken it, and where the lane rests: there are no more tasks, another model is
    the champion, or the disk is nearly full.
    """
    # The pass is locked before its lanes, as in `wake`: in the other order two workers could wait for each other.
    ScoringPass.objects.select_for_update(of=["self"]).filter(lanes=lane_id).first()
    # One conditional UPDATE decides: of two workers with the same message one changes the row.
    if not ScoringLane.objects.filter(pk=lane_id, turn=number).update(turn=number + 1, moved_at=now):
        return None
    lane = ScoringLane.objects.select_related("scoring_pass__reward_model").get(pk=lane_id)
    goes_on = lane.scoring_pass.reward_model.is_champion and not disk_space.shortages()
    turn = _with_chunk(lane, tasks) if goes_on else None
    if turn is None:
        ScoringLane.objects.filter(pk=lane_id).update(moved_at=None, first_task=None, last_task=None)
    return turn


def _with_chunk(lane: ScoringLane, tasks: int) -> Turn | None:
    """Returns a turn with the chunk that the lane still has from a lost turn, or else with the next tasks."""
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
    """Returns the next tasks that lack a score, which may be none of the LOOK_AHEAD next; None after the last task."""
    # Lanes take their portions one after another, so that no two get the same tasks.
    progress = ScoringPass.objects.select_for_update().get(reward_model=model)
    values = {"model": model.pk, "project": model.project_id, "after": progress.handed_out}
    ((passed, portion),) = _NEXT.rows(**values, look=LOOK_AHEAD, tasks=tasks)
    if passed is None:
        return None
    # A full portion may end before the tasks that were looked at; those after it are for the next lane.
    progress.handed_out = portion[-1] if len(portion) == tasks else passed
    progress.save(update_fields=["handed_out"])
    return list(portion)


# Each task is looked at by itself (LATERAL, LIMIT 1), in the index's order, until there are enough. As one join every
# turn would read all responses. MATERIALIZED keeps the limit of the look ahead from being merged into that query.
_NEXT = Statement(
    """
WITH ahead AS MATERIALIZED (
    SELECT max(id) AS last FROM (
        SELECT t.id FROM annotator_task t
        WHERE t.project_id = %(project)s AND t.id > %(after)s ORDER BY t.id LIMIT %(look)s
    ) AS next_tasks
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
    """Scores the turn's chunk; returns how many responses."""
    if turn.chunk is None:
        return 0
    # Loaded before the clock starts: a first load of minutes would teach the pace that tasks are slow.
    scorer = scorer_of(turn.chunk.model)
    with pace.timed(turn.tasks):
        return score_chunk(turn.chunk, scorer, now=database_now())


def finish(turn: Turn, *, now: datetime) -> None:
    """Sends the lane its next turn, unless it was thought lost and has gone on with another worker."""
    # The condition spares a write to the pass, which all lanes share, after every chunk.
    ScoringPass.objects.filter(lanes=turn.lane).exclude(error="").update(error="")
    done = ScoringLane.objects.filter(pk=turn.lane, turn=turn.number)
    if done.update(first_task=None, last_task=None, moved_at=now):
        send(turn.lane, turn.number)


def hand_on(turn: Turn) -> None:
    """Gives the turn to another worker, which takes up the chunk that the lane still has."""
    heartbeats.hand_on("rewards.tasks.score_chunk", [turn.lane, turn.number], priority=LAST)


def note_failure(turn: Turn, error: str) -> None:
    """Notes why the chunk failed, for the page of the model; the lane is found again when it counts as lost."""
    ScoringPass.objects.filter(lanes=turn.lane).update(error=without_places(error))
