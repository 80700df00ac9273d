"""The values of the machine half's fields in the examples of the OpenAPI schema (annotator/api/example_values.py)."""

from typing import Any

from annotator.api.example_values import AT, HASH

BLUE = "Why is the sky blue?"
BETTER = (
    "Sunlight is scattered by the molecules of the air, and blue light much more than red light. So blue light reaches "
    "your eyes from every part of the sky."
)
WORSE = "Because it reflects the ocean."
"""The demo's first model orders these two as people would: their rewards were 4.76 and 3.92."""

REQUESTS: dict[str, Any] = {
    "PolicyRunRequest": {"config": {"policy": "small", "method": "dpo_2d", "beta": 0.1}, "reason": "more segments"},
    "RunRequest": {"config": {"epochs": 3}, "reason": "more labels"},
    "ScoreRequest": {
        "project": "mine",
        "items": [
            {"conversation": [{"role": "user", "content": BLUE}], "response": BETTER},
            {"conversation": [{"role": "user", "content": BLUE}], "response": WORSE},
        ],
    },
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "EvaluationJob": {"state": "queued", "evaluation": None},
    "PolicyRun": {"state": "queued", "snapshot": "", "losses": [], "metrics": {}, "progress": {}, "policy": None}
    | {"started_at": None, "heartbeat_at": None, "worker": ""},
    "SnapshotJob": {"state": "queued", "tasks": 0, "snapshot": None},
    "RequestedRun": {"state": "queued", "snapshot": "", "losses": [], "metrics": {}, "progress": {}, "verdict": {}}
    | {"reward_model": None, "started_at": None, "heartbeat_at": None, "worker": "", "judged_on": ""},
}
ACCEPTED["TrainingRun"] = ACCEPTED["RequestedRun"]

VALUES: dict[str, Any] = {
    "RankedModel.model": "model-a",
    "Result.scores": {"helpfulness": 3.49, "correctness": 3.62},
    "Rewards.scores": [4.15],
    "ComparisonRow.reason": "",
    "TrainingRun.reason": "more labels",
    "train_tasks": 715,
    "validation_tasks": 80,
    "manifest": {"format": 1, "project": "mine", "content_hash": HASH},
    "redacted_tasks": 0,
    "deleted_tasks": 0,
    "marked_at": None,
    "erased_at": None,
    "SnapshotJob.state": "done",
    "code": "",
    "snapshot": HASH,
    "TrainingRun.state": "promoted",
    "PolicyRun.reason": "more segments",
    "Result.segments": [{"clarity": 3.6}, {"clarity": 1.2}],
    "PolicyRun.state": "done",
    "PolicyRun.config": {"policy": "small", "method": "dpo_2d", "beta": 0.1},
    "PolicyRun.metrics": {"held_out": {"loss": 0.61, "reward_accuracy": 0.7}, "rows": {"tasks": 715, "rows": 640}},
    "policy": 4,
    "Policy.version": 2,
    "Policy.base": "small",
    "Policy.method": "dpo_2d",
    "Policy.state": "offered",
    "Policy.reason": "Offered: on 80 prompts the champion prefers its answers to those of its base in 64.0 per cent, "
    "and the interval begins at 53.1 per cent, above a draw at 50.",
    "judge": 3,
    "judgement": {
        "prompts": 80,
        "win_rate": 0.64,
        "win_rate_interval": [0.531, 0.744],
        "length_controlled": 0.6,
        "kl_per_token": 0.08,
        "tokens": {"policy": 96.5, "base": 88.1},
    },
    "Policy.lineage": {"snapshot": HASH, "run": 14, "base": "small", "artifact_hash": HASH},
    "offered_at": AT,
    "?state": "done",
    "config": {"backbone": "minilm", "epochs": 3},
    "config_hash": HASH,
    "code_version": "0.1.0",
    "seed": 17,
    "attempt": 1,
    "worker": "train@rate-1",
    "progress": {"stage": "evaluate", "step": 120, "steps": 120},
    "losses": [{"step": 120, "loss": 0.41}],
    "metrics": {"helpfulness": {"spearman": 0.71}, "pairs": {"accuracy": 0.74, "n": 80}},
    "verdict": {"promote": True, "because": "better on the held-out prompts"},
    "judged_on": "These 80 prompts are held out: the model itself is judged on them.",
    "unchanged_since": None,
    "log": "",
    "reward_model": 3,
    "run": 12,
    "RewardModel.attributes": ["helpfulness", "correctness"],
    "Promoted.attributes": ["helpfulness", "correctness"],
    "attribute_weights": {"helpfulness": 0.65, "correctness": 0.8},
    "is_champion": True,
    "scored": 2400,
    "score_precision": "float32",
    "evaluations": {"held-out": {"pairs": {"accuracy": 0.74, "n": 80}}},
    "learnt_labels": 640,
    "held_out_labels": 160,
    "measured_on": "Measured on 80 held-out prompts, from which this version has not learnt.",
    "beside_length": "",
    "lineage": {"snapshot": HASH, "run": 12, "parent": 2},
    "marked": False,
    "erased": False,
    "promoted_at": AT,
    "scores_wait": "",
    "confirm": True,
    "intact": True,
    "problems": [],
    "data_hash": HASH,
    "Evaluation.name": "rewardbench2",
    "EvaluationJob.name": "rewardbench2",
    "EvaluationRequest.name": "rewardbench2",
    "EvaluationRequest.file": "rewardbench2.parquet",
    "EvaluationJob.file_name": "rewardbench2.parquet",
    "EvaluationJob.state": "done",
    "evaluation": 21,
    "ComparisonRow.evaluation": "rewardbench2",
    "champion": True,
    "part": "",
    "measure": "pair accuracy",
    "value": 0.74,
    "low": 0.64,
    "high": 0.83,
    "n": 80,
    "prompts": 80,
    "RankedModel.by": "people",
    "RewardRequest.query": ["user: Name a prime above 10.\nassistant: 11 is one."],
    "RewardRequest.prompts": ["user: Name a prime above 10.\n"],
    "rewards": [4.15],
    "extra_logs": {"helpfulness": [3.49]},
    "reward": 4.15,
    "uncertainty": 0.08,
    "ScoringJob.state": "queued",
    "ScoringJob.results": None,
    "?name": "rewardbench2",
    "?model": 3,
    "?project__slug": "mine",
    "ModelFile.path": "reward/model.safetensors",
    "model": 3,
    "Result.precision": "float32",
}
