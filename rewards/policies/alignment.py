"""Takes one claimed policy run from snapshot to judgement: writes its rows, runs the aligner, has the policy judged."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from django.db import transaction

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.db.retries import outlasting_outages
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage import store, working_copies
from annotator.models import Project
from rewards import announcements
from rewards.learning.aligning.align_config import BY_SEGMENT
from rewards.learning.aligning.win_rates import win_rates
from rewards.learning.data import read_tasks
from rewards.models import Policy, RewardModel, RunState, Snapshot, TrainingRun
from rewards.policies import policy_registry, policy_runs, rows
from rewards.policies.policy_registry import FEWEST_PROMPTS, Decision
from rewards.policies.rows import write_rows
from rewards.runs import policy_settings, run_settings
from rewards.runs.policy_settings import ROWS, source_of
from rewards.trainer import mirroring, owned_runs, run_steps
from rewards.trainer.trainer_process import TrainerFailed, supervise

MOST_PROMPTS = 400
"""The most prompts that are answered: with so many, the interval reaches about 5 percentage points to each side."""
FOLDER, SCORES = "judging", "scores"
DIGITS = 6
LEFT_OUT = {
    rows.TIES: "%s in which nobody prefers a response",
    rows.UNSCORED: "%s without the scores that the method reads",
    rows.UNUSABLE: "%s without a text to learn",
}


def carry_out(run: TrainingRun) -> Policy:
    """Takes a claimed run to its end and returns the new policy.

    Every write is fenced by the attempt, and waits while the database restarts.

    Raises:
        Refusal: the run cannot succeed.
        NothingNew: the run would only repeat another one.
        LostRun: another attempt owns the run, or it was cancelled.
        Postponed: the worker is being stopped, or the aligner was killed; the run goes on later.
    """
    with run_steps.full_disk_named():
        run_steps.check_files(run)
        snapshot = run.snapshot or run_steps.new_snapshot(run, refuse_repetition=policy_runs.refuse_repetition)
        owned_runs.write(run, snapshot=snapshot, code_version=policy_runs.code_version(), heartbeat_at=database_now())
        mirroring.brought(run)
        store.bring(snapshot.directory())
        counts = _prepared(run, snapshot)
        owned_runs.write(run, state=RunState.TRAINING, heartbeat_at=database_now())
        with working_copies.using(Path(source_of(run.config["policy"]))):
            supervise(run, "align", run.directory())
        metrics = json.loads((run.directory() / "metrics.json").read_text())
        # The row has the thinned curve.
        metrics["training"].pop("losses", None)
        metrics["rows"] = {"tasks": counts.tasks, "rows": counts.rows, "left_out": dict(counts.left_out)}
        owned_runs.write(run, state=RunState.EVALUATING, metrics=metrics, heartbeat_at=database_now())
        champion = run_steps.champion_of(run.project)
        store.bring(snapshot.directory())
        judgement, decision = _judged(run, snapshot, champion)
        mirroring.keep(run)
        policy = _register(run, champion if judgement else None, judgement, decision)
        store.discard(*(run.directory() / name for name in store.OF_WORK))
        return policy


def _prepared(run: TrainingRun, snapshot: Snapshot) -> rows.Counts:
    """Writes the rows and the settings of the alignment; the same snapshot gives the same bytes.

    Raises:
        Refusal, UnusableConfig: the snapshot does not have what the settings ask for.
    """
    train = snapshot.directory() / "train.jsonl"
    want = rows.wanted(
        snapshot.manifest,
        train,
        method=run.config["method"],
        weights=run_settings.settled(run.project, {}).get("attribute_weights", {}),
        aspect_weights=run.config.get("aspect_weights", {}),
    )
    if want.method in BY_SEGMENT and not want.aspects:
        raise Refusal(
            f"The method {want.method} learns from scored segments, and the snapshot has none. Choose another method.",
            code="nothing_to_align",
        )
    # The weights stand there for every aspect; a weight of another name would have been lost.
    if want.method in BY_SEGMENT and not any(want.aspect_weights.values()):
        raise Refusal(
            f"aspect_weights names none of the aspects of the snapshot, which are {', '.join(want.aspects)}.",
            code="nothing_to_align",
        )
    counts = rows.Counts()
    folder = run.directory()
    rows.write_rows(folder / policy_settings.ROWS, rows.rows_of(train, want, counts))
    if not counts.rows:
        said = [LEFT_OUT[why] % number for why, number in sorted(counts.left_out.items())]
        raise Refusal(
            f"None of the {counts.tasks} tasks to learn from can be used by the method {want.method}: "
            f"{'; '.join(said)}. Choose another method, or have more responses rated.",
            code="nothing_to_align",
        )
    config = policy_settings.for_aligner(run.config, levels=want.levels, requested=want.requested)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    return counts


def _judged(run: TrainingRun, snapshot: Snapshot, champion: RewardModel | None) -> tuple[dict[str, Any], Decision]:
    """Returns the policy's figures and what follows from them; no figures where nobody can judge it."""
    if champion is None:
        return {}, policy_registry.unjudged()
    try:
        figures = judgement(run, snapshot, champion)
    except TooFewPrompts as few:
        return {}, policy_registry.unjudged(prompts=few.args[0])
    return figures, policy_registry.decide(figures)


@outlasting_outages
@transaction.atomic
def _register(run: TrainingRun, judge: RewardModel | None, judgement: dict[str, Any], decision: Decision) -> Policy:
    """Stores the policy's row and ends the run: both or neither, once for a run."""
    now = database_now()
    # Two of the project's runs never end at once; an erasure by hand waits until all of it is there.
    Project.objects.select_for_update().get(pk=run.project_id)
    owned_runs.write(run, state=RunState.DONE, finished_at=now)
    announcements.run_ended(run, RunState.DONE)
    return policy_registry.register(run, judge=judge, judgement=judgement, decision=decision, now=now)


# The judgement ---------------------------------------------------------------------------------------------


class TooFewPrompts(Exception):
    """There are not enough prompts that neither has learnt from; the number is the argument."""


def judgement(run: TrainingRun, snapshot: Snapshot, champion: RewardModel) -> dict[str, Any]:
    """Returns the figures of the policy in the run's folder, by the champion's rewards of its answers.

    Raises:
        TooFewPrompts: chance would decide.
        TrainerFailed, TookTooLong, Postponed, LostRun: as `supervise` does.
    """
    folder = run.directory() / FOLDER
    prompts = held_out_prompts(snapshot, champion)
    if len(prompts) < FEWEST_PROMPTS:
        raise TooFewPrompts(len(prompts))
    write_rows(folder / "prompts.jsonl", prompts)
    config = {name: value for name, value in run.config.items() if name not in ("requested", "aspect_weights")}
    places = {"policy": str(run.directory() / "policy"), "reference": source_of(run.config["policy"]), "data": ROWS}
    (folder / "config.json").write_text(json.dumps({**config, **places}))
    with working_copies.using(Path(places["reference"])):
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
    items = (
        {"id": f"{whose}:{row['id']}", "conversation": conversations[row["id"]], "response": row[whose]["text"]}
        for row in _answers(folder)
        for whose in ("policy", "base")
    )
    write_rows(work / "items.jsonl", items)
    # With as many processes as its training: a model of which each held a part may fit into no single one.
    processes = champion.run.config.get("processes", 0)
    model = store.bring(champion.directory())
    config = {"model": str(model), "threads": run.config.get("threads", 0), "processes": processes}
    (work / "config.json").write_text(json.dumps(config))
    try:
        with working_copies.using(model):
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


def _rounded(value: float) -> float:
    return round(float(value), DIGITS)
