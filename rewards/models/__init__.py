"""Tables of the machine half: snapshots, runs, models, evaluations and scores."""

from rewards.models.runs import (
    ACTIVE_STATES,
    WORKING_STATES,
    Policy,
    RewardModel,
    RunKind,
    RunQuerySet,
    RunState,
    TrainingRun,
)
from rewards.models.scores import (
    Evaluation,
    EvaluationJob,
    EvaluationJobQuerySet,
    Score,
    ScoringJob,
    ScoringLane,
    ScoringPass,
)
from rewards.models.snapshots import OwnerlessFolder, Snapshot, SnapshotJob, SnapshotTask
