"""What the page of a run tells people."""

from typing import Any

import pytest

from annotator.infrastructure.web.numbers import number
from rewards.learning.paired_gain import paired_gain
from rewards.reasons import PAIRS, SQUARES, coded
from rewards.reports import model_figures, run_report

VERDICT = {"gain": 0.1234, "low": 0.05, "high": 0.2, "against": "the champion", "prompts": 40}


def told(**fields: Any) -> str:
    return run_report.verdict(VERDICT | fields)


def test_a_gain_is_a_fall_of_the_error() -> None:
    assert told() == (
        "The mean squared error falls by 0.123 against the champion (95 % interval 0.050 to 0.200, 40 prompts)."
    )


def test_a_loss_is_a_rise_with_its_interval() -> None:
    said = told(gain=-0.0769, low=-0.2, high=0.05)
    assert "rises by 0.077 against" in said
    assert "95 % interval \N{MINUS SIGN}0.050 to 0.200" in said
    assert run_report.STRICTER not in told(gain=-0.0769, low=-0.2, high=0.05, confidence=0.99)
    assert run_report.STRICTER in told(confidence=0.99)


def test_what_rounds_to_nothing_stays_the_same() -> None:
    assert "stays the same against the champion (95 % interval of the fall 0.000 to 0.000" in told(
        gain=0.0, low=-1e-6, high=0.0
    )


def test_it_says_why_pairs_are_judged_by() -> None:
    assert told(measure=PAIRS).endswith(run_report.BY_PAIRS)


DECISION = VERDICT | {
    "promote": True, "reason": "Because.", "before": 0.8, "measure": SQUARES, "detectable": 0.1,
}  # fmt: skip


def in_words(**fields: Any) -> str:
    return breakable(run_report.in_words(DECISION | fields))


def breakable(text: str) -> str:
    """Returns the text with ordinary spaces, which can be read in a test."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_a_decision_is_two_sentences_for_people() -> None:
    assert in_words() == (
        "On 40 prompts that neither has learnt from, the squared error of the new model is 15.4 % smaller than the "
        "champion’s. The difference is statistically significant. The new model can be promoted."
    )
    unproved = {"promote": False, "reason": coded("reaches_zero", prompts=40, gain=0.1)}
    said = in_words(**unproved, against="predicting the mean", low=-0.1)
    assert said.startswith("On 40 prompts that it has not learnt from, the squared error of the new model is 15.4 %")
    assert said.endswith("if it is really that much better, about 27 prompts would show it.")
    said = in_words(**unproved, gain=-0.2, low=-0.4)
    assert said.endswith("25.0 % larger than the champion’s. It is not promoted.")


def test_pairs_are_put_in_the_right_order() -> None:
    said = in_words(measure=PAIRS, before=0.5, gain=0.08, against="predicting the mean")
    assert "puts 58.0 % of the pairs in the right order, where the toss of a coin would put 50.0 %." in said
    assert "the champion 70.0 %" in in_words(measure=PAIRS, before=0.3, gain=0.08)


def test_it_says_how_much_the_decision_rests_on_and_what_that_can_show() -> None:
    def power(**fields: Any) -> str:
        return breakable(run_report.power(DECISION | {"labels": 80, "pairs": 1_240} | fields))

    assert power() == (
        "The judgement rests on 40 prompts with 80 labels. "
        "Four times in five, they would show a squared error that is 12.5 % smaller."
    )
    assert power(measure=PAIRS) == (
        "The judgement rests on 40 prompts with 1,240 pairs. "
        "Four times in five, they would show a share of right pairs that is 10.0 percentage points higher."
    )
    assert power(detectable=0.9).endswith("80 labels. They are too few to show any gain reliably.")
    assert power(detectable=None, labels=1) == "The judgement rests on 40 prompts with 1 label."
    assert run_report.power(DECISION) == ""
    assert power() in breakable(run_report.verdict(DECISION | {"labels": 80}))


def test_whatever_else_holds_a_model_back_is_said() -> None:
    assert in_words(promote=False, prompts=3, low=None).endswith("Because.")
    assert in_words(promote=False).endswith("smaller than the champion’s. Because.")


def test_a_decision_on_too_little_gives_its_reason() -> None:
    assert [in_words(before=None), in_words(prompts=0), in_words(gain=None)] == ["Because."] * 3
    assert run_report.in_words({}) == ""


def test_without_prompts_or_a_number_nothing_is_said() -> None:
    assert (run_report.verdict({}), told(prompts=0), told(gain=None)) == ("", "", "")


def test_it_says_which_model_is_the_candidate() -> None:
    assert run_report.winner({"candidate": {"kind": "ridge"}}).startswith(
        "The ridge on frozen features is the candidate"
    )
    untouched = {"candidate": {"kind": "ridge"}, "training": {"steps": 0}}
    assert "nothing was fine-tuned" in run_report.winner(untouched)
    assert "fine-tuned" in run_report.winner({"candidate": {"kind": "finetuned"}})
    assert run_report.winner({}) == ""


def rated(rmse: float, spearman: float | None) -> dict[str, Any]:
    return {"attributes": {"helpfulness": {"rmse": rmse, "spearman": spearman}, "correctness": {"rmse": None}}}


def compared(accuracy: float) -> dict[str, Any]:
    return {"pairwise": {"pairs": 1200, "accuracy": accuracy, "longer_wins": 0.55}}


def test_the_predictors_of_a_run_stand_side_by_side() -> None:
    tuned = rated(0.8, 0.6) | compared(0.7)
    metrics = {
        "mean": rated(1.2, None),
        "baseline": rated(0.9, 0.5) | compared(0.65),
        "fine_tuned": tuned,
        "candidate": tuned | {"kind": "finetuned"},
    }
    table = run_report.side_by_side(metrics, ["correctness", "helpfulness"])
    pairs = "1,200 pairs (of which the longer response is right in 0.550)"
    assert table == run_report.SideBySide(
        ["the mean", "ridge on frozen features", "fine-tuned (candidate)"],
        [
            ("RMSE", [run_report.ReportLine("helpfulness", [1.2, 0.9, 0.8])]),
            ("Spearman", [run_report.ReportLine("helpfulness", [None, 0.5, 0.6])]),
            (pairs, [run_report.ReportLine("in the right order", [None, 0.65, 0.7])]),
        ],
    )


def test_a_fine_tuned_model_that_was_not_kept_is_told_of() -> None:
    ridge = compared(0.65)
    unrated = {"attributes": {"helpfulness": {"rmse": None}}}
    metrics = {"mean": unrated, "baseline": ridge, "fine_tuned": compared(0.6), "candidate": ridge | {"kind": "ridge"}}
    table = run_report.side_by_side(metrics, ["helpfulness"])
    assert table is not None
    assert table.columns == ["ridge on frozen features (candidate)", "fine-tuned"]
    assert [(title, lines[0].values) for title, lines in table.groups] == [
        ("1,200 pairs (of which the longer response is right in 0.550)", [0.65, 0.6])
    ]


def test_champion_and_people_stand_beside_the_candidate() -> None:
    """People are compared with what they can be: each rater with the mean of the others."""
    own = rated(0.8, 0.6) | {"human": {"helpfulness": {"n": 9, "rmse": 0.9, "model_rmse": 0.95}}}
    metrics = {"baseline": own, "candidate": own | {"kind": "ridge"}}
    table = run_report.side_by_side(metrics, ["helpfulness"], champion=rated(0.85, 0.55))
    assert table is not None
    assert table.columns == ["ridge on frozen features (candidate)", "the champion", "the other raters"]
    assert [(title, lines[0].values) for title, lines in table.groups] == [
        ("RMSE", [0.8, 0.85, None]),
        ("Spearman", [0.6, 0.55, None]),
        ("RMSE against one rater at a time", [0.95, None, 0.9]),
    ]


def test_runs_without_measures_have_no_table() -> None:
    assert run_report.side_by_side({}, ["helpfulness"]) is None
    assert run_report.side_by_side({"candidate": {"kind": "ridge"}, "baseline": {}}, ["helpfulness"]) is None


def test_it_counts_the_prompts_that_are_held_out() -> None:
    counts = {"train_tasks": 60, "validation_tasks": 20}
    assert breakable(run_report.held_out({"counts": counts})) == "Held out: 20 of 80 tasks (25 %)."
    prompts = {"train_prompts": 30, "validation_prompts": 10}
    assert breakable(run_report.held_out({"counts": counts | prompts})) == "Held out: 10 of 40 prompts (25 %)."
    assert run_report.held_out({}) == ""


ALIKE = {"pairs": 20, "same_text": 1, "cut": 12, "hidden": 2, "max_length": 512, "apart_at": 530, "most": 512}


def test_pairs_that_are_the_same_once_cut_are_said_with_the_limit_that_helps() -> None:
    said = run_report.left_out({"fit": {"alike": ALIKE}, "validation": {"alike": ALIKE}, "dev": {}})
    assert said[0] == (
        "24 of 40 pairs are the same once cut to 512 tokens: they were neither learnt from nor judged by. A max_length "
        "of 530 would keep them apart."
    )
    assert said[1] == "The language model reads at most 512 tokens."
    assert [sentence.partition(" pairs")[0] for sentence in said[2:]] == ["4 of 40", "2 of 40"]
    assert run_report.left_out({"fit": {"alike": {**ALIKE, "same_text": 0, "cut": 0, "hidden": 0}}}) == []
    assert run_report.left_out({"fit": {}}) == []


# Of which prompts, and of which model ------------------------------------------------------------------------


def test_the_prompts_of_a_verdict_are_told_apart() -> None:
    manifest = {"counts": {"validation_prompts": 26, "train_prompts": 33}}
    said = run_report.judged_on({"prompts": 59}, manifest)
    assert "Of these 59 prompts, 26 are held out, and the model itself is judged on them." in said
    assert "The other 33 are cross-fitted" in said
    assert run_report.judged_on({"prompts": 26}, manifest) == (
        "These 26 prompts are held out: the model itself is judged on them."
    )
    assert run_report.judged_on({"prompts": 59}, {}) == ""


def test_every_interval_is_the_95_percent_one() -> None:
    """The first look is judged by an interval of 94 %: its bounds are moved, and no other level is named."""
    wider = paired_gain([3.0, 5, 2, 8], [2.0, 3, 2, 4], [1.0] * 4, confidence=0.99)
    usual = paired_gain([3.0, 5, 2, 8], [2.0, 3, 2, 4], [1.0] * 4)
    decision = {
        "against": "the champion", "promote": True, "reason": "", "confidence": 0.99, "prompts": 4,
        "gain": wider.mean, "low": wider.low, "high": wider.high,
    }  # fmt: skip
    said = run_report.verdict(decision)
    assert f"(95 % interval {number(usual.low, 3)} to {number(usual.high, 3)}, 4 prompts)" in said
    assert "A promotion needs a little more evidence" in said
    assert "99" not in said


PAIRS_OF = {"pairs": 117, "accuracy": 0.769, "longer_wins": 0.769, "intervals": {"accuracy": [0.69, 0.84]}}


@pytest.mark.parametrize(
    ("different", "said"),
    [
        ({}, "It orders pairs no better than by their length"),
        ({"longer_wins": 0.7}, "It may order pairs no better than by their length"),
        ({"longer_wins": 0.5}, ""),
        ({"longer_wins": None}, ""),
    ],
)
def test_length_stands_plainly_beside_the_pairs(different: dict[str, Any], said: str) -> None:
    told_of = model_figures.beside_length({"pairwise": PAIRS_OF | different})
    assert told_of.startswith(said) if said else told_of == ""
