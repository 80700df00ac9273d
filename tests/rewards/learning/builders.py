"""Plain builders of snapshots: the longer of two responses is the more helpful one, with seeded noise."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ATTRIBUTES = ("helpfulness", "verbosity")
Row = dict[str, Any]


def make_row(number: int, *, responses: Sequence[Row], prompt: str = "") -> Row:
    content = prompt or f"question {number}?"
    prompt_hash = hashlib.sha256(content.encode()).hexdigest()
    turns = [{"role": "user", "content": content}]
    common = {"task": f"t{number}", "prompt_hash": prompt_hash, "conversation": turns}
    return {**common, "responses": list(responses), "preference": None}


def make_response(name: str, text: str, scores: Mapping[str, float]) -> Row:
    labels = {key: round(value) for key, value in scores.items()}
    return {"id": name, "text": text, "scores": dict(scores), "labels": labels, "ratings": [labels, labels]}


def make_rows(count: int, *, seed: int = 0) -> list[Row]:
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        responses = []
        for side in "ab":
            good = rng.randrange(5)
            text = "ok " * (1 + 2 * good) if good else "no"
            scores = {"helpfulness": min(4.0, max(0.0, good + rng.choice([-1, 0, 0, 1]) / 3)), "verbosity": float(good)}
            responses.append(make_response(f"t{number}{side}", text.strip(), scores))
        rows.append(make_row(number, responses=responses))
    return rows


def write_jsonl(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def make_snapshot(directory: Path, *, train: Sequence[Row], validation: Sequence[Row]) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for name, rows in (("train.jsonl", train), ("validation.jsonl", validation)):
        write_jsonl(directory / name, rows)
    write_manifest(directory)
    return directory


def write_manifest(directory: Path) -> None:
    names = ("train.jsonl", "validation.jsonl")
    files = {name: hashlib.sha256((directory / name).read_bytes()).hexdigest() for name in names}
    manifest = {"format": 1, "project": "p", "content_hash": "c0ffee", "attributes": list(ATTRIBUTES), "files": files}
    (directory / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def make_run(directory: Path, *, backbone: Path, tasks: int = 24, **config: Any) -> Path:
    """A directory that `train` can be called on."""
    rows = make_rows(tasks)
    snapshot = make_snapshot(directory / "snapshot", train=rows[: -tasks // 4], validation=rows[-tasks // 4 :])
    # Five more models would be trained for the folds, which hardly any test looks at.
    small = {"batch_tokens": 256, "threads": 1, "cross_fit_minutes": 0}
    given = {"snapshot": str(snapshot), "backbone": str(backbone), **small, **config}
    run = directory / "run"
    run.mkdir(parents=True)
    (run / "config.json").write_text(json.dumps(given), encoding="utf-8")
    return run


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def read_events(run: Path) -> list[Row]:
    return [json.loads(line) for line in (run / "progress.jsonl").read_text(encoding="utf-8").splitlines()]
