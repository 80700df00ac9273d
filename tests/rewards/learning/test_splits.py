from __future__ import annotations

from pathlib import Path

from rewards.learning.data import read_tasks
from rewards.learning.splits import carve_dev
from tests.rewards.learning.builders import make_rows, write_jsonl


def test_dev_prompts_are_not_fitted_on(tmp_path: Path) -> None:
    tasks = list(read_tasks(write_jsonl(tmp_path / "t.jsonl", make_rows(20) + make_rows(20, seed=1))))
    fit, dev = carve_dev(tasks, 0.15)
    assert len(dev) == 6
    assert not {task.prompt_hash for task in fit} & {task.prompt_hash for task in dev}


def test_a_single_prompt_leaves_dev_empty(tmp_path: Path) -> None:
    tasks = list(read_tasks(write_jsonl(tmp_path / "t.jsonl", make_rows(1))))
    assert carve_dev(tasks, 0.5) == (tasks, [])
