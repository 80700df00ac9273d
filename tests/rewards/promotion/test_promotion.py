"""The rule that decides, and the deed."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from annotator.models import AuditEntry, Project
from rewards import reasons
from rewards.learning.data import Response, Task, Turn
from rewards.learning.paired_gain import Gain, paired_gain
from rewards.models import RewardModel, RunState, Snapshot, TrainingRun
from rewards.promotion import promotion
from rewards.promotion.promotion import HeldOut, Predicted, decide
from rewards.reasons import SQUARES
from rewards.runs import training
from tests.annotator.models.test_constraints import make_model
from tests.builders import NOW
from tests.rewards.policies.snapshots import make_champion, make_snapshot


def held_out(error: float, *, rmse: float = 1.0, prompts: int = 40) -> HeldOut:
    names = [f"p{number}" for number in range(prompts)]
    errors = {name: error + 0.01 * (number % 5) for number, name in enumerate(names)}
    return HeldOut(errors, dict.fromkeys(names, 1), {"helpfulness": rmse})


MEAN = held_out(2.0)


def test_a_clearly_better_candidate_is_promoted() -> None:
    verdict = decide(held_out(0.5), held_out(1.0), MEAN)
    assert verdict.promote
    assert verdict.low > 0
    assert verdict.gain == pytest.approx(0.5)


def test_no_evidence_is_no_promotion() -> None:
    same = held_out(1.0)
    verdict = decide(same, same, MEAN)
    assert not verdict.promote
    assert reasons.in_words(verdict.reason) == "It predicts the same as the champion on every prompt."


@pytest.mark.parametrize(("low", "high", "said"), [(-0.1, 0.0, "0 or below."), (-0.2, -0.1, "lies below 0.")])
def test_no_evidence_says_where_the_interval_lies(low: float, high: float, said: str) -> None:
    reason = promotion._no_evidence(Gain(low / 2, low, high, 40, 0.1), SQUARES, "champion")
    assert said in reasons.in_words(reason)


def test_a_worse_candidate_stays_out() -> None:
    assert not decide(held_out(1.5), held_out(1.0), MEAN).promote


def test_a_guard_metric_holds_back_a_promotion() -> None:
    verdict = decide(held_out(0.5, rmse=1.2), held_out(1.0, rmse=1.0), MEAN)
    assert not verdict.promote
    assert "helpfulness" in reasons.in_words(verdict.reason)


def test_no_evidence_says_what_these_prompts_could_have_shown() -> None:
    rough = replace(held_out(1.0), squared_errors={f"p{n}": (n * 7919 % 13) / 7 for n in range(40)})
    verdict = decide(rough, held_out(0.85), MEAN)
    assert not verdict.promote
    half = (verdict.high - verdict.low) / 2
    assert half < verdict.detectable < 1.5 * half
    said = reasons.in_words(verdict.reason)
    assert f"These 40 prompts would show a gain of about {verdict.detectable:.3f} or more." in said


def gain(of: NDArray[np.float64]) -> Gain:
    """Of a model whose errors are 0, where the champion's are these, by prompt."""
    return paired_gain(of.tolist(), [0.0] * len(of), [1] * len(of))


def test_a_gain_as_large_as_the_detectable_one_is_seen_in_four_cases_of_five() -> None:
    noise = np.random.default_rng(5).normal(0, 1, size=(400, 100))  # a hundred prompts whose gains scatter by 1
    detectable = gain(noise[0]).detectable()
    assert 0.7 < np.mean([gain(sample + detectable).low > 0 for sample in noise]) < 0.9


@pytest.mark.parametrize(
    ("candidate", "said"),
    [
        ({"pairs": 100, "right": 60}, "puts fewer pairs in the right order: 60\u00a0% instead of 64\u00a0%"),
        ({"pairs": 100, "right": 64, "constant": frozenset({"verbosity"})}, "every response the same verbosity"),
    ],
)
def test_other_guards_hold_back_a_promotion(candidate: dict[str, Any], said: str) -> None:
    champion = replace(held_out(1.0), pairs=100, right=64)
    verdict = decide(replace(held_out(0.5), **candidate), champion, MEAN)
    assert not verdict.promote
    assert said in reasons.in_words(verdict.reason)


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ({"clarity": 1.2, "safety": 0.5}, {"clarity": 1.0, "safety": 0.6}, "clearly worse at the clarity of segments"),
        ({}, {"clarity": 1.0}, "scores no segments"),
        ({"clarity": 1.04}, {"clarity": 1.0}, "not clearly worse at anything"),
        ({"clarity": 1.2}, {}, "not clearly worse at anything"),
    ],
)
def test_what_is_lost_on_segments_holds_back(ours: dict[str, float], theirs: dict[str, float], said: str) -> None:
    candidate, champion = (replace(held_out(e), of_segments=s) for e, s in ((0.2, ours), (1.0, theirs)))
    verdict = decide(candidate, champion, held_out(2.0))
    assert said in reasons.in_words(verdict.reason)
    assert verdict.promote is ("not clearly" in said)


@pytest.mark.parametrize(
    ("aspects", "guards"), [(["clarity"], True), (["helpfulness"], False), (["helpfulness", "clarity"], True)]
)
def test_segments_of_selected_words_hold_nothing_back(aspects: list[str], guards: bool) -> None:
    snapshot = Snapshot(manifest={"attributes": ["helpfulness", "verbosity"], "aspects": aspects})
    measured = {"rmse": 1.0, "segments": {"aspects": {}}}
    assert training._guarding(measured, snapshot) == (measured if guards else {"rmse": 1.0})


@pytest.mark.parametrize(("pairs", "before", "after"), [(100, 64, 61), (10, 6, 5)])
def test_a_pair_of_a_few_does_not_hold_back(pairs: int, before: int, after: int) -> None:
    champion = replace(held_out(1.0), pairs=pairs, right=before)
    assert decide(replace(held_out(0.5), pairs=pairs, right=after), champion, MEAN).promote


def test_the_same_scores_for_everything_promote_nothing() -> None:
    dead = replace(held_out(0.5), constant=frozenset({"helpfulness"}))
    assert decide(dead, None, MEAN).reason == reasons.coded("all_the_same")


def test_the_first_model_has_to_beat_the_mean() -> None:
    assert decide(held_out(1.9), None, MEAN).promote
    assert not decide(MEAN, None, MEAN).promote


def test_a_handful_of_prompts_is_too_few_to_judge_by() -> None:
    verdict = decide(held_out(0.1, prompts=4), None, held_out(2.0, prompts=4))
    assert not verdict.promote
    assert "too few" in reasons.in_words(verdict.reason)


def test_later_looks_need_more_evidence() -> None:
    rough = replace(held_out(0.9), squared_errors={f"p{n}": (n * 7919 % 13) / 7 for n in range(40)})
    first, tenth = (decide(rough, held_out(1.06), MEAN, look=look) for look in (1, 10))
    assert (first.promote, tenth.promote) == (True, False)
    assert tenth.confidence > first.confidence == pytest.approx(0.97)


def test_the_first_model_has_to_order_pairs_better_than_length_does() -> None:
    better = replace(held_out(0.5), wrong=dict.fromkeys(MEAN.labels, 0.25), compared=dict.fromkeys(MEAN.labels, 1))
    same, worse = better, replace(better, wrong=dict.fromkeys(MEAN.labels, 0.3))
    assert not decide(better, None, MEAN, longer=same).promote
    verdict = decide(better, None, MEAN, longer=worse)
    assert verdict.promote
    assert verdict.over_length == pytest.approx(0.05)


def test_the_longer_response_is_judged_by_its_characters() -> None:
    rows = [task(response("1", h=2.0), replace(response("2", h=4.0), text="Because it is."))]
    assert promotion.by_length(rows, weights={"h": 1.0}).wrong == {"p": 0.0}
    assert promotion.by_length(rows, weights={"h": -1.0}).wrong == {"p": 1.0}


def task(*responses: Response, preference: int | None = None) -> Task:
    return Task("t", "p", (Turn("user", "Why?"),), responses, preference)


def response(name: str, **scores: float) -> Response:
    return Response(name, f"Because {name}.", scores, {}, [])


def test_errors_are_summed_by_prompt() -> None:
    rows = [task(response("1", h=2.0), response("2", h=4.0, c=1.0))]
    predicted = {"1": Predicted({"h": 1.0, "c": 0}, 1.0), "2": Predicted({"h": 4.0, "c": 3.0}, 4.0)}
    errors = promotion.held_out(rows, predicted, weights={"h": 1.0})
    assert (errors.squared_errors, errors.labels) == ({"p": 5.0}, {"p": 3})
    assert errors.rmse == {"h": pytest.approx(0.5**0.5), "c": 2.0}
    assert (errors.wrong, errors.compared) == ({"p": 0.0}, {"p": 1})
    verdict = decide(errors, None, errors)
    assert (verdict.prompts, verdict.labels, verdict.pairs) == (1, 2, 1)


@pytest.mark.parametrize(
    ("learnt", "of_champion", "against"),
    [
        (("helpfulness",), ("helpfulness", "verbosity"), "the champion"),
        (("helpfulness", "verbosity"), ("helpfulness",), "the champion"),
        (("helpfulness", "verbosity"), ("tone",), "predicting the mean"),
        (("helpfulness",), (), "predicting the mean"),
    ],
)
def test_labels_of_other_versions_of_the_rubric_stop_no_judgement(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    learnt: tuple[str, ...],
    of_champion: tuple[str, ...],
    against: str,
) -> None:
    snapshot = make_snapshot(project)
    if of_champion:
        RewardModel.objects.filter(pk=make_champion(project, snapshot).pk).update(attributes=of_champion)

    def supervise(_run: TrainingRun, verb: str, folder: Path) -> None:
        names = learnt if verb == "train" else of_champion
        (folder / "model").mkdir()
        manifest = {"attributes": names, "attribute_weights": dict.fromkeys(names, 1.0)}
        (folder / "model" / "reward_model.json").write_text(json.dumps(manifest))
        metrics = {"mean": {"values": [2.0] * len(names)}, "candidate": {}}
        (folder / "metrics.json").write_text(json.dumps(metrics))
        tasks = [json.loads(line) for line in (snapshot.directory() / "validation.jsonl").read_text().splitlines()]
        said = {"scores": dict.fromkeys(names, 2.0), "reward": 2.0}
        rows = [{"id": response["id"], **said} for task in tasks for response in task["responses"]]
        (folder / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    monkeypatch.setattr(training, "supervise", supervise)
    run = TrainingRun.objects.create(
        project=project, reason="a test", state=RunState.TRAINING, attempt=1, snapshot=snapshot
    )
    training.carry_out(run)
    run.refresh_from_db()
    assert (run.state, run.verdict["against"]) == (RunState.REJECTED, against)
    assert (run.verdict["prompts"], run.verdict["labels"]) == (12, 24)


def test_errors_on_scales_of_any_length_weigh_the_same() -> None:
    """The same share of each scale: half a level of three, one of five, one and a half of seven."""
    rows = [task(response("1", three=1.0, five=2.0, seven=3.0))]
    predicted = {"1": Predicted({"three": 1.5, "five": 3.0, "seven": 4.5}, 1.0)}
    errors = promotion.held_out(rows, predicted, weights={}, levels={"three": 3, "seven": 7})
    assert errors.rmse == {"three": 1.0, "five": 1.0, "seven": 1.0}
    assert errors.squared_errors == {"p": 3.0}


def test_nobody_is_judged_by_what_no_model_can_tell_apart() -> None:
    pair = task(response("1"), response("2"), preference=2)
    blind = {"1": Predicted({}, 1.0, ["2"]), "2": Predicted({}, 1.0, ["1"])}
    able = {"1": Predicted({}, 1.0), "2": Predicted({}, 2.0)}
    for models, compared in (([blind], {}), ([blind, blind], {}), ([blind, able], {"p": 1})):
        rows = promotion.with_alike([pair], *models)
        assert promotion.held_out(rows, blind, weights={"h": 1.0}).compared == compared


@pytest.mark.parametrize(("first", "wrong"), [(1.0, 0.0), (2.0, 0.5), (3.0, 1.0), (float("nan"), 1.0)])
def test_a_tie_is_half_a_pair_in_the_wrong_order(first: float, wrong: float) -> None:
    rows = [task(response("1"), response("2"), preference=2)]
    errors = promotion.held_out(rows, {"1": Predicted({}, first), "2": Predicted({}, 2.0)}, weights={"h": 1.0})
    assert (errors.wrong, errors.labels) == ({"p": wrong}, {})


def of_order(wrong: int) -> HeldOut:
    """A model trained on preferences that puts so many of forty pairs in the wrong order; its scores fit no label."""
    names = [f"p{number}" for number in range(40)]
    errors = {name: float(number < wrong) for number, name in enumerate(names)}
    return replace(held_out(9.0), wrong=errors, compared=dict.fromkeys(names, 1), on_scale=False)


def test_what_was_trained_on_preferences_is_judged_by_the_order_of_pairs() -> None:
    verdict = decide(of_order(5), of_order(20), of_order(20))
    assert verdict.promote
    assert verdict.measure == "share of pairs in the wrong order"
    assert verdict.gain == pytest.approx(15 / 40)
    assert not decide(of_order(19), of_order(20), of_order(20)).promote


def test_scores_that_are_no_numbers_promote_nothing() -> None:
    broken = replace(held_out(0.5), squared_errors=dict.fromkeys(held_out(0.5).labels, float("nan")))
    for champion in (None, held_out(1.0)):
        verdict = decide(broken, champion, MEAN)
        assert (verdict.promote, verdict.reason) == (False, reasons.coded("not_numbers"))
        assert "NaN" not in json.dumps(verdict.as_json())


def test_promoting_an_earlier_model_is_the_rollback(project: Project) -> None:
    first, second = make_model(project, 1), make_model(project, 2)
    for model in (first, second, first):
        promotion.promote(model, now=NOW)
    assert RewardModel.objects.get(is_champion=True) == first


def test_promoting_the_champion_changes_nothing(project: Project) -> None:
    model = promotion.promote(make_model(project, 1), now=NOW)
    promotion.promote(model, now=NOW + timedelta(hours=1))
    model.refresh_from_db()
    assert (model.is_champion, model.promoted_at) == (True, NOW)
    assert AuditEntry.objects.filter(action="model.promoted").count() == 1
