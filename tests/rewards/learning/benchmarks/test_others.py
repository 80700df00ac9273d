"""RM-Bench, JudgeBench and plain pairs."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rewards.learning.benchmarks import BENCHMARKS, judgebench, preferences, rmbench
from rewards.learning.benchmarks.cases import Benchmark, JudgedCase
from tests.rewards.learning.benchmarks.builders import judged, labelled_row, pair_row, styles_row


def test_plain_against_fancy_is_hard_and_the_reverse_easy() -> None:
    # A judge of style alone: it likes the fancier one better, whatever it says.
    styles = np.array([0.0, 1.0, 2.0])
    assert rmbench.levels(styles, styles).tolist() == [1, 0, 0]


def test_every_comparison_of_a_row_counts_once() -> None:
    easy, normal, hard = rmbench.levels(np.array([0.0, 2.0, 2.0]), np.array([1.0, 1.0, 3.0]))
    # chosen 1 and 2 beat rejected 0 and 1, nothing else wins.
    assert (easy, normal, hard) == pytest.approx((3 / 3, 1 / 3, 0))


def test_the_two_kinds_of_safety_are_one_domain() -> None:
    assert rmbench.case(styles_row("safety-refuse")).group == rmbench.case(styles_row("safety-response")).group


def test_domains_weigh_the_same_whatever_their_size() -> None:
    right, wrong = ([1, 1, 1], [0, 0, 0]), ([0, 0, 0], [1, 1, 1])
    rows = [judged("chat", *right)] * 5 + [judged(name, *wrong) for name in ("code", "math", "safety")]
    overall = rmbench.measure(rows)["overall"]
    assert (overall["accuracy"], overall["easy"], overall["hard"]) == (0.25, 0.25, 0.25)


def test_without_all_domains_there_is_no_overall_score() -> None:
    overall = rmbench.measure([judged("chat", [1, 1, 1], [0, 0, 0])])["overall"]
    assert overall == {"accuracy": None, "reason": "no rows of the domains code, math, safety"}


def test_a_row_with_another_number_of_styles_is_refused() -> None:
    with pytest.raises(ValueError, match="3 answers each"):
        rmbench.case(styles_row(chosen=["one"]))


def test_the_label_says_which_answer_is_right() -> None:
    assert judgebench.case(labelled_row(label="B>A")).good == ("Yes.",)
    assert judgebench.case(labelled_row(label="A>B")).good == ("Perhaps.",)
    with pytest.raises(ValueError, match="A>B or B>A"):
        judgebench.case(labelled_row(label="A=B"))


def test_sources_become_categories() -> None:
    sources = ["mmlu-pro-law", "livebench-reasoning", "livebench-math", "livecodebench"]
    assert [judgebench.case(labelled_row(name)).group for name in sources] == [*judgebench.CATEGORIES.values()]


def test_the_overall_score_is_over_all_pairs() -> None:
    rows = [judged("knowledge", [1], [0])] * 3
    rows += [judged(name, [0], [1]) for name in ("reasoning", "math", "coding")]
    measures = judgebench.measure(rows)
    assert measures["overall"]["accuracy"] == 0.5
    assert measures["categories"]["knowledge"]["accuracy"] == 1


def test_pairs_are_counted_over_all_and_by_source() -> None:
    rows = [judged("a", [1], [0], name=str(n)) for n in range(3)] + [judged("b", [0], [1], name="z")]
    measures = preferences.measure(rows)
    assert measures["overall"]["accuracy"] == 0.75
    assert {name: measured["n"] for name, measured in measures["sources"].items()} == {"a": 3, "b": 1}


def test_what_length_alone_would_give_stands_beside_the_accuracy() -> None:
    case = preferences.case(pair_row(chosen="long enough", rejected="no"))
    overall = preferences.measure([JudgedCase(case, np.array([0.0]), np.array([1.0]))])["all"]
    assert (overall["accuracy"], overall["longer_wins"], overall["length_correlation"]) == (0, 1, pytest.approx(-1))


def test_equal_rewards_for_everything_are_said_to_be_constant() -> None:
    assert preferences.measure([judged("a", [1], [1])])["all"]["constant"]
    assert not preferences.measure([judged("a", [1], [0])])["all"]["constant"]


def test_a_transcript_is_read_as_its_turns() -> None:
    turns = preferences.turns("\n\nHuman: One?\n\nAssistant: Two.\n\nHuman: Three:\n\nAssistant:")
    assert [(turn.role, turn.content) for turn in turns] == [
        ("user", "One?"),
        ("assistant", "Two."),
        ("user", "Three:"),
    ]


@pytest.mark.parametrize("prompt", ["What does Human: mean?", "Human:", ""])
def test_any_other_prompt_is_one_turn_of_the_users(prompt: str) -> None:
    assert [(turn.role, turn.content) for turn in preferences.turns(prompt)] == [("user", prompt)]


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_rewards_that_are_no_numbers_are_wrong_and_leave_json(benchmark: Benchmark) -> None:
    names = {"RewardBench": "math-prm", "RewardBench 2": "Ties", "RM-Bench": "chat", "JudgeBench": "math"}
    group, none = names.get(benchmark.name, "any"), [np.nan] * 3
    rows = [judged(group, none, none, name=name) for name in ("ref:0", "tied:0", "ref:1", "tied:1")]
    measures = benchmark.measure(rows)
    json.dumps(measures, allow_nan=False)
    assert (measures["all"]["accuracy"], measures["all"]["not_finite"]) == (0, 24)
