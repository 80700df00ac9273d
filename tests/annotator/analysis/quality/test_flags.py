"""What is clear enough, and beyond chance, to ask somebody to look."""

from typing import Any

import pytest
from django.utils.translation import override

from annotator.analysis.quality.findings import sentence
from annotator.analysis.quality.flags import Flag, FlagKind, Measured, flagged, is_too_few

NAMES = {"helpfulness": "Helpfulness", "verbosity": "Verbosity"}
FINE: dict[str, Any] = {
    "tasks": 100,
    "kappa": 0.6,
    "shared": 200,
    "ratings": 200,
    "speed": {"timed": 100, "hurried": 2, "median_seconds": 80.0},
    "sameness": {"compared": 100, "flat": 5, "others": 0.05},
    "repeats": {"longest": 3, "alike": 0.05, "tasks": 100},
    "position": {"preferences": 100, "first": 52},
    "leaning": {"helpfulness": {"levels": 0.2, "error": 0.05}, "verbosity": None},
    "scatter": {"helpfulness": {"levels": 0.7, "usual": 0.6, "reliability": 0.7, "stretch": 1.0}, "verbosity": None},
    "accord": {"tasks": 100, "slope": 1.0, "error": 0.1},
    "drift": {"tasks": 100, "levels": 0.1, "error": 0.1},
}


def flags(**different: Any) -> list[Flag]:
    """Of somebody who differs so from others who are fine."""
    odd = {name: {**FINE[name], **value} if isinstance(value, dict) else value for name, value in different.items()}
    return flagged([Measured(FINE | odd), *[Measured(FINE)] * 4])[0]


def test_nothing_stands_out_where_all_is_fine() -> None:
    assert flags() == []


ODD: dict[FlagKind, dict[str, Any]] = {
    FlagKind.SPEEDING: {"speed": {"hurried": 20}},
    FlagKind.STRAIGHT_LINING: {"sameness": {"flat": 40}},
    FlagKind.REPEATING: {"repeats": {"longest": 9}},
    FlagKind.POSITION: {"position": {"first": 75}},
    FlagKind.DISAGREEING: {"kappa": 0.1},
    FlagKind.LEANING: {"leaning": {"helpfulness": {"levels": -0.9, "error": 0.1}}},
    FlagKind.SCATTERING: {"scatter": {"helpfulness": {**FINE["scatter"]["helpfulness"], "levels": 1.0}}},
    FlagKind.DRIFTING: {"drift": {"levels": 0.7}},
}


@pytest.mark.parametrize("kind", ODD)
def test_it_is_flagged_and_nothing_else_is(kind: FlagKind) -> None:
    assert [flag.kind for flag in flags(**ODD[kind])] == [kind]


@pytest.mark.parametrize("kind", ODD)
def test_it_is_told_in_a_sentence_with_its_numbers(kind: FlagKind) -> None:
    (flag,) = flags(**ODD[kind])
    with override("en"):
        said = sentence(flag.kind, flag.evidence, NAMES)
    assert any(digit in said for digit in "123456789")
    assert "%(" not in said
    assert said.endswith(".")


def test_every_kind_has_a_case() -> None:
    assert set(ODD) == set(FlagKind)


FEW: list[dict[str, Any]] = [
    {"speed": {"timed": 3, "hurried": 3}},
    {"sameness": {"compared": 10, "flat": 10}},
    {"position": {"preferences": 10, "first": 10}},
    {"kappa": 0.0, "shared": 10},
    {"ratings": 10, **ODD[FlagKind.LEANING]},
    {"ratings": 10, **ODD[FlagKind.SCATTERING]},
    {"drift": {"tasks": 10, "levels": 2.0}},
    {"drift": None},
]


@pytest.mark.parametrize("different", FEW, ids=str)
def test_few_say_nothing(different: dict[str, Any]) -> None:
    assert flags(**different) == []


def test_whoever_follows_the_others_by_chance_disagrees_even_where_all_agree_little() -> None:
    low, chance = Measured(FINE | {"kappa": 0.3}), {"tasks": 100, "slope": 0.05, "error": 0.1}
    guessing = Measured(FINE | {"kappa": 0.13, "accord": chance})
    assert [flag.kind for flag in flagged([guessing, *[low] * 4])[0]] == [FlagKind.DISAGREEING]


def test_a_few_bad_raters_do_not_hide_each_other() -> None:
    noisy = Measured(FINE | {"scatter": {"helpfulness": {**FINE["scatter"]["helpfulness"], "levels": 1.1}}})
    assert all(flagged([*[noisy] * 3, *[Measured(FINE)] * 4])[:3])


@pytest.mark.parametrize(
    ("different", "is_so"),
    [
        ({}, False),
        ({"accord": None}, True),
        ({"ratings": 19}, True),
        ({"accord": {"tasks": 12, "slope": 0.3, "error": 0.2}}, True),
    ],
)
def test_too_few_is_what_a_guesser_could_have_done(different: dict[str, Any], is_so: bool) -> None:
    assert is_too_few(FINE | different) is is_so


def test_a_task_that_is_flat_for_all_is_nobodys_fault() -> None:
    assert flags(sameness={"flat": 60, "others": 0.6}) == []


def test_runs_are_no_wonder_where_all_ratings_are_alike() -> None:
    assert flags(repeats={"longest": 12, "alike": 0.7}) == []


def test_a_leaning_within_its_error_is_none() -> None:
    assert flags(leaning={"helpfulness": {"levels": 1.2, "error": 0.4}}) == []


def test_low_agreement_where_all_have_it_is_not_ones_own() -> None:
    low = Measured(FINE | {"kappa": 0.15})
    assert flagged([low] * 4) == [[]] * 4


def test_of_many_fair_people_none_is_flagged_for_a_side() -> None:
    """Sixty fair coins, each flipped a hundred times: the oddest shows about 62 of one side."""
    fair = [Measured(FINE | {"position": {"preferences": 100, "first": 38 + 24 * (place % 2)}}) for place in range(2)]
    assert flagged([*fair, *[Measured(FINE)] * 58])[0] == []


def test_examples_come_along() -> None:
    odd = Measured(FINE | {"kappa": 0.1}, {FlagKind.DISAGREEING: [7, 8], FlagKind.SPEEDING: [9]})
    assert flagged([odd, Measured(FINE), Measured(FINE)])[0][0].examples == [7, 8]


def test_large_counts_are_grouped() -> None:
    with override("en"):
        said = sentence(FlagKind.SPEEDING, {"hurried": 1201, "timed": 5000, "seconds": 9.0}, NAMES)
    assert said.startswith("1,201 of 5,000 tasks")


def test_what_is_odd_among_few_is_none_among_thousands() -> None:
    odd = Measured(FINE | {"repeats": {"longest": 8, "alike": 0.18, "tasks": 100}})
    assert flagged([odd])[0]
    assert not flagged([odd, *[Measured(FINE)] * 999])[0]
