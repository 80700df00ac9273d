"""Has the project's champion compare a policy's answers to held-out prompts with those of its base.

The prompts are those of the snapshot's validation part from which the champion has not learnt either: whoever has
learnt from a prompt is no witness of what is said to it.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rewards import run_steps
from rewards.learning.aligning.win_rates import win_rates
from rewards.learning.data import read_tasks
from rewards.models import RewardModel, Snapshot, TrainingRun
from rewards.policies.offers import FEWEST_PROMPTS
from rewards.policies.policy_settings import ROWS, source_of
from rewards.policies.rows import write_rows
from rewards.trainer_process import TrainerFailed, supervise

MOST_PROMPTS = 400
"""The most prompts that are answered: with so many, the interval reaches about 5 percentage points to each side."""
FOLDER, SCORES = "judging", "scores"
DIGITS = 6


class TooFewPrompts(Exception):
    """There are not enough prompts that neither has learnt from; the number is the argument."""


def judgement(run: TrainingRun, snapshot: Snapshot, champion: RewardModel) -> dict[str, Any]:
    """Returns the figures of the policy in the run's folder, by the champion's rewards of its answers.

    Raises:
        TooFewPrompts: chance would decide.
        TrainerFailed, TookTooLong, PutDown, LostRun: as `supervise` does.
    """
    folder = run.directory() / FOLDER
    prompts = held_out_prompts(snapshot, champion)
    if len(prompts) < FEWEST_PROMPTS:
        raise TooFewPrompts(len(prompts))
    write_rows(folder / "prompts.jsonl", prompts)
    config = {name: value for name, value in run.config.items() if name not in ("requested", "aspect_weights")}
    places = {"policy": str(run.directory() / "policy"), "reference": source_of(run.config["policy"]), "data": ROWS}
    (folder / "config.json").write_text(json.dumps({**config, **places}))
    supervise(run, "answer", folder)
    answered = json.loads((folder / "metrics.json").read_text())
    rewards = _rewards(run, champion, folder, {row["id"]: row["conversation"] for row in prompts})
    return figures(_answers(folder), rewards) | {
        "kl_per_token": _rounded(answered["divergence"]["kl_per_token"]),
        "kl_per_token_interval": (answered["divergence"].get("intervals") or {}).get("kl_per_token"),
        "ended": {name: answered[name]["ended"] for name in ("policy", "base")},
        "champion": champion.version,
    }


def held_out_prompts(snapshot: Snapshot, champion: RewardModel) -> list[dict[str, Any]]:
    """Returns the prompts that judge, each once, in an order that a hash of the prompt gives; none where nobody knows.

    Nobody knows what a champion has learnt from whose snapshot was erased.
    """
    learnt = run_steps.learnt_prompts(champion)
    if learnt is None:
        return []
    turns: dict[str, list[dict[str, str]]] = {}
    for task in read_tasks(snapshot.directory() / "validation.jsonl"):
        if task.prompt_hash not in learnt and task.conversation[-1].role != "assistant":
            turns[task.prompt_hash] = [{"role": turn.role, "content": turn.content} for turn in task.conversation]
    order = sorted(turns, key=lambda prompt: hashlib.sha256(f"judging:{prompt}".encode()).digest())
    return [{"id": prompt, "conversation": turns[prompt]} for prompt in order[:MOST_PROMPTS]]


def _answers(folder: Path) -> list[dict[str, Any]]:
    with (folder / "answers.jsonl").open() as lines:
        return [json.loads(line) for line in lines]


def _rewards(
    run: TrainingRun, champion: RewardModel, folder: Path, conversations: Mapping[str, Any]
) -> dict[str, dict[str, float]]:
    """Returns the champion's reward of both answers, by the prompt's id."""
    work = folder / SCORES
    work.mkdir(exist_ok=True)
    write_rows(work / "items.jsonl", _items(_answers(folder), conversations))
    # With as many processes as its training: a model of which each held a part may fit into no single one.
    processes = champion.run.config.get("processes", 0)
    config = {"model": str(champion.directory()), "threads": run.config.get("threads", 0), "processes": processes}
    (work / "config.json").write_text(json.dumps(config))
    try:
        supervise(run, "score", work)
    except TrainerFailed as failed:
        text = f"The champion, version {champion.version}, could not judge the policy. {failed}"
        raise TrainerFailed(text) from failed
    rewards: dict[str, dict[str, float]] = {}
    with (work / "scores.jsonl").open() as lines:
        for row in map(json.loads, lines):
            whose, _colon, prompt = row["id"].partition(":")
            rewards.setdefault(prompt, {})[whose] = row["reward"]
    return rewards


def _items(answers: Iterable[Mapping[str, Any]], conversations: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for row in answers:
        for whose in ("policy", "base"):
            conversation = conversations[row["id"]]
            yield {"id": f"{whose}:{row['id']}", "conversation": conversation, "response": row[whose]["text"]}


def figures(answers: Iterable[Mapping[str, Any]], rewards: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """Returns the win rates, mean rewards and mean lengths of answers by the rewards of both, by the prompt's id."""
    rows = list(answers)
    ours, theirs = (np.array([rewards[row["id"]][whose] for row in rows]) for whose in ("policy", "base"))
    tokens = {whose: np.array([float(row[whose]["tokens"]) for row in rows]) for whose in ("policy", "base")}
    rates = win_rates(ours, theirs, longer_by=tokens["policy"] - tokens["base"])
    return {
        **vars(rates),
        "win_rate": _rounded(rates.win_rate),
        "length_controlled": _rounded(rates.length_controlled),
        "reward": {"policy": _rounded(ours.mean()), "base": _rounded(theirs.mean())},
        "tokens": {whose: _rounded(values.mean()) for whose, values in tokens.items()},
    }


def remove_texts(run: TrainingRun) -> None:
    """Removes what the run wrote down of people's texts, once it has been used."""
    shutil.rmtree(run.directory() / FOLDER, ignore_errors=True)
    shutil.rmtree((run.directory() / ROWS).parent, ignore_errors=True)


def _rounded(value: float) -> float:
    return round(float(value), DIGITS)
