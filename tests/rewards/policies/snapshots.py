"""Snapshots as the builder leaves them, with or without segments, and a champion: none of them needs a label."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from annotator.infrastructure.storage import artifacts
from annotator.models import Project
from rewards.models import Policy, RewardModel, RunKind, RunState, Snapshot, TrainingRun
from rewards.reasons import coded
from tests.rewards.scored import make_model

Row = dict[str, Any]
ASPECTS = ("correctness", "clarity")
ATTRIBUTES = ("helpfulness", "verbosity")
JUDGEMENT = {
    "prompts": 80,
    "ties": 2,
    "win_rate": 0.64,
    "win_rate_interval": [0.531, 0.744],
    "length_controlled": 0.6,
    "length_controlled_interval": [0.5, 0.7],
    "kl_per_token": 0.08,
    "kl_per_token_interval": [0.05, 0.11],
    "reward": {"policy": 2.5, "base": 2.1},
    "tokens": {"policy": 96.5, "base": 88.1},
    "ended": {"policy": 0.9, "base": 0.8},
    "champion": 3,
}


def make_response(number: int, text: str, scores: Mapping[str, float], **more: Any) -> Row:
    labels = {name: round(score) for name, score in scores.items()}
    return {"id": str(number), "text": text, "scores": dict(scores), "labels": labels, "ratings": [], **more}


def make_task(number: int, responses: Sequence[Row], **more: Any) -> Row:
    turns = [{"role": "user", "content": f"Question {number}?"}]
    prompt_hash = hashlib.sha256(f"Question {number}?".encode()).hexdigest()
    common = {"task": f"t{number}", "prompt_hash": prompt_hash, "conversation": turns, "preference": None}
    return {**common, "responses": list(responses), **more}


def in_segments(*parts: tuple[str, Sequence[float | None]]) -> Row:
    """The text of a response, its ranges and their scores."""
    ranges, text = [], ""
    for part, _scores in parts:
        ranges.append([len(text), len(text) + len(part)])
        text += part
    return {"text": text, "segments": ranges, "segment_scores": [list(scores) for _part, scores in parts]}


def judged_task(number: int) -> Row:
    """The better response says yes, and both have segments."""
    good = in_segments(("yes. ", (4, 3)), ("yes.", (4, 4)))
    bad = in_segments(("no. ", (0, 2)), ("no.", (1, 1)))
    responses = [
        make_response(2 * number, bad.pop("text"), {"helpfulness": 0, "verbosity": 1}, **bad),
        make_response(2 * number + 1, good.pop("text"), {"helpfulness": 4, "verbosity": 1}, **good),
    ]
    return make_task(number, responses)


def write_snapshot(folder: Path, train: Sequence[Row], validation: Sequence[Row], **manifest: Any) -> dict[str, Any]:
    folder.mkdir(parents=True)
    files = {}
    for name, rows in (("train.jsonl", train), ("validation.jsonl", validation)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        files[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    content_hash = hashlib.sha256(json.dumps(files).encode()).hexdigest()
    written = {"format": 1, "content_hash": content_hash, "attributes": list(ATTRIBUTES), "files": files, **manifest}
    (folder / "manifest.json").write_text(json.dumps(written))
    return written


def make_snapshot(project: Project, *, train: int = 8, validation: int = 12, **manifest: Any) -> Snapshot:
    """One of judged tasks, in the artifacts' folder."""
    artifacts.mark_new()
    snapshot = Snapshot(project=project, train_tasks=train, validation_tasks=validation, labels=2 * train)
    snapshot.path = f"snapshots/project.{project.pk}/{train}-{validation}"
    tasks = [judged_task(number) for number in range(train + validation)]
    parts = {"aspects": list(ASPECTS), **manifest}
    snapshot.manifest = write_snapshot(snapshot.directory(), tasks[:train], tasks[train:], **parts)
    snapshot.content_hash = snapshot.manifest["content_hash"]
    snapshot.save()
    return snapshot


def make_champion(project: Project, snapshot: Snapshot | None) -> RewardModel:
    """One whose files are there, as far as a run looks."""
    weights = {"helpfulness": 1.0, "verbosity": -0.5}
    model = make_model(project, is_champion=True, attributes=list(ATTRIBUTES), attribute_weights=weights)
    model.run.snapshot = snapshot
    model.run.save(update_fields=["snapshot"])
    model.path = f"runs/{model.run_id}/model"
    model.save(update_fields=["path"])
    model.directory().mkdir(parents=True)
    (model.directory() / "reward_model.json").write_text("{}")
    return model


def make_policy(project: Project, **fields: Any) -> Policy:
    """One that nobody has judged, without files."""
    config = {"policy": "small", "method": "dpo"}
    run = TrainingRun.objects.create(
        project=project, kind=RunKind.POLICY, state=RunState.DONE, reason="a test", config=config
    )
    given = {"base": "small", "method": "dpo", "path": "runs/none/policy", "artifact_hash": "c0ffee", "manifest": {}}
    reason = {"reason": coded("no_champion"), "version": run.pk}
    return Policy.objects.create(project=project, run=run, **given | reason | fields)
