"""Takes one claimed policy run from snapshot to judgement: writes its rows, runs the aligner, has the policy judged."""

import json
import shutil
from typing import Any

from django.db import transaction

from annotator.db.clock import database_now
from annotator.db.retries import outlasting_outages
from annotator.models import Project
from annotator.refusals import Refusal
from rewards import announcements, owned_runs, run_settings, run_steps
from rewards.learning.aligning.config import BY_SEGMENT
from rewards.models import Policy, RewardModel, RunState, Snapshot, TrainingRun
from rewards.policies import judging, offers, policy_runs, policy_settings, registry, rows
from rewards.policies.offers import Decision
from rewards.trainer_process import supervise

LEFT_OUT = {
    rows.TIES: "%s in which nobody prefers a response",
    rows.UNSCORED: "%s without the scores that the method reads",
    rows.UNUSABLE: "%s without a text to learn",
}
LEFTOVERS = ("checkpoint", "reference")


def carry_out(run: TrainingRun) -> Policy:
    """Takes a claimed run to its end and returns the new policy.

    Every write is fenced by the attempt, and waits while the database restarts.

    Raises:
        Refusal: the run cannot succeed.
        NothingNew: the run would only repeat another one.
        LostRun: another attempt owns the run, or it was cancelled.
        PutDown: the worker is being stopped, or the aligner was killed; the run goes on later.
    """
    with run_steps.full_disk_named():
        run_steps.check_files(run)
        snapshot = run.snapshot or run_steps.new_snapshot(run, refuse_repetition=policy_runs.refuse_repetition)
        owned_runs.write(run, snapshot=snapshot, code_version=policy_runs.code_version(), heartbeat_at=database_now())
        counts = _prepared(run, snapshot)
        owned_runs.write(run, state=RunState.TRAINING, heartbeat_at=database_now())
        supervise(run, "align", run.directory())
        metrics = json.loads((run.directory() / "metrics.json").read_text())
        # The row has the thinned curve.
        metrics["training"].pop("losses", None)
        metrics["rows"] = {"tasks": counts.tasks, "rows": counts.rows, "left_out": dict(counts.left_out)}
        owned_runs.write(run, state=RunState.EVALUATING, metrics=metrics, heartbeat_at=database_now())
        champion = run_steps.champion_of(run.project)
        judgement, decision = _judged(run, snapshot, champion)
        policy = _register(run, champion if judgement else None, judgement, decision)
        judging.remove_texts(run)
        for name in LEFTOVERS:
            shutil.rmtree(run.directory() / name, ignore_errors=True)
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
        return {}, offers.unjudged()
    try:
        judgement = judging.judgement(run, snapshot, champion)
    except judging.TooFewPrompts as few:
        return {}, offers.unjudged(prompts=few.args[0])
    return judgement, offers.decide(judgement)


@outlasting_outages
@transaction.atomic
def _register(run: TrainingRun, judge: RewardModel | None, judgement: dict[str, Any], decision: Decision) -> Policy:
    """Stores the policy's row and ends the run: both or neither, once for a run."""
    now = database_now()
    # Two of the project's runs never end at once; an erasure by hand waits until all of it is there.
    Project.objects.select_for_update().get(pk=run.project_id)
    owned_runs.write(run, state=RunState.DONE, finished_at=now)
    announcements.run_ended(run, RunState.DONE)
    return registry.register(run, judge=judge, judgement=judgement, decision=decision, now=now)
