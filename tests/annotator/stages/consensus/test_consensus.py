"""From annotations to labels: the rules, then the rows."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import combinations, permutations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotator.models import Annotation, Consensus, Label, Project, Task, User
from annotator.stages import annotation, consensus
from annotator.stages.consensus import Rated, Rules, agreed_preference, half_up, most_agreeing, needs_more, outcome
from annotator.stages.consensus.rules import Key, Scores
from tests.builders import (
    ATTRIBUTES,
    NOW,
    claimed,
    imported,
    make_project,
    make_task,
    make_user,
    rate,
    ratings_row,
)
from tests.conftest import Cast

A, B = 1, 2
RULES = Rules()
ALL = Rules(spread_scope="all")


def rated(*levels: int) -> list[Rated]:
    """One response, rated on helpfulness alone, in the order of submission."""
    return [Rated(number, {A: {"helpfulness": level}}) for number, level in enumerate(levels)]


def kept(*levels: int, rules: Rules = RULES) -> tuple[int, ...]:
    return tuple(rating.ratings[A]["helpfulness"] for rating in most_agreeing(rated(*levels), rules))


def label(ratings: Sequence[Rated]) -> dict[str, int]:
    return dict(outcome(ratings, RULES).labels[A])


scores = st.fixed_dictionaries({"helpfulness": st.integers(0, 4), "verbosity": st.integers(0, 4)})
people = st.lists(st.builds(lambda a, b: {A: a, B: b}, scores, scores), min_size=1, max_size=6)


def of_people(ratings: Sequence[Mapping[Key, Scores]]) -> list[Rated]:
    return [Rated(number, dict(rating)) for number, rating in enumerate(ratings)]


# Rounding and means ----------------------------------------------------------------------------------------


def test_the_example_of_the_dataset_card() -> None:
    """The sample "c#": three annotators, five attributes."""
    columns = {
        "helpfulness": [3, 3, 4],
        "correctness": [3, 4, 4],
        "coherence": [4, 3, 4],
        "complexity": [2, 2, 2],
        "verbosity": [2, 1, 1],
    }
    ratings = [Rated(n, {A: {key: values[n] for key, values in columns.items()}}) for n in range(3)]
    assert [label(ratings)[key] for key in ATTRIBUTES] == [3, 4, 4, 2, 1]


@pytest.mark.parametrize(
    ("value", "rounded"), [(0, 0), (0.5, 1), (1.5, 2), (2.5, 3), (2.49, 2), (10 / 3, 3), (-0.5, 0)]
)
def test_halves_round_upwards(value: float, rounded: int) -> None:
    assert half_up(value) == rounded


def test_the_mean_is_kept_beside_the_label() -> None:
    result = outcome(rated(3, 3, 4), RULES)
    assert result.means[A]["helpfulness"] == pytest.approx(10 / 3)
    assert result.labels[A]["helpfulness"] == 3


def test_a_label_holds_the_attributes_that_all_annotations_share() -> None:
    ratings = [Rated(0, {A: {"helpfulness": 3, "verbosity": 4}}), Rated(1, {A: {"helpfulness": 3}})]
    assert label(ratings) == {"helpfulness": 3}


# Three, then five ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("levels", "more"), [((0, 1, 2), False), ((1, 4, 2), True), ((0, 2, 3), True), ((4, 4, 4), False)]
)
def test_a_spread_above_two_asks_for_more(levels: tuple[int, ...], more: bool) -> None:
    assert needs_more(rated(*levels), RULES) is more


def test_one_response_far_apart_is_enough() -> None:
    near, far = {"helpfulness": 3}, {"helpfulness": 0}
    assert needs_more([Rated(0, {A: near, B: near}), Rated(1, {A: near, B: far})], RULES)


def test_responses_are_not_compared_with_each_other() -> None:
    assert not needs_more([Rated(n, {A: {"helpfulness": 0}, B: {"helpfulness": 4}}) for n in range(3)], RULES)


def test_only_the_deciding_attribute_asks_for_more() -> None:
    ratings = [Rated(n, {A: {"helpfulness": 3, "verbosity": level}}) for n, level in enumerate((0, 4, 2))]
    assert not needs_more(ratings, RULES)
    assert needs_more(ratings, Rules(attribute="verbosity"))


def test_no_more_are_asked_where_the_project_has_no_more() -> None:
    assert not needs_more(rated(0, 4, 2), Rules(base=3, most=3))


# The most agreeing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("levels", "chosen"),
    [
        ((0, 4, 4, 4, 0), (4, 4, 4)),
        ((0, 4, 3, 1, 4), (4, 3, 4)),
        ((0, 1, 2, 3, 4), (0, 1, 2)),
        ((4, 3, 2, 1, 0), (4, 3, 2)),
        ((2, 4, 2, 0, 1), (2, 2, 1)),
        ((1, 3, 2, 3, 1), (1, 2, 1)),
        ((0, 4), (0, 4)),
    ],
)
def test_the_closest_three_are_kept(levels: tuple[int, ...], chosen: tuple[int, ...]) -> None:
    assert kept(*levels) == chosen


def test_other_attributes_break_a_tie_of_helpfulness() -> None:
    ratings = [Rated(n, {A: {"helpfulness": 3, "verbosity": verbosity}}) for n, verbosity in enumerate((0, 4, 4, 4, 0))]
    assert [rating.annotation for rating in most_agreeing(ratings, RULES)] == [1, 2, 3]


def test_helpfulness_comes_before_all_other_attributes() -> None:
    levels = [(4, 0), (4, 4), (4, 2), (0, 3), (0, 3)]
    ratings = [Rated(n, {A: {"helpfulness": h, "verbosity": v}}) for n, (h, v) in enumerate(levels)]
    assert [rating.annotation for rating in most_agreeing(ratings, RULES)] == [0, 1, 2]


def test_the_spread_is_the_worse_of_both_responses() -> None:
    levels = [(3, 0), (3, 4), (3, 4), (2, 3), (4, 4)]
    ratings = [Rated(n, {A: {"helpfulness": a}, B: {"helpfulness": b}}) for n, (a, b) in enumerate(levels)]
    assert [rating.annotation for rating in most_agreeing(ratings, RULES)] == [1, 2, 4]


def test_the_number_to_keep_is_the_projects() -> None:
    assert kept(0, 3, 4, 4, rules=Rules(keep=2)) == (4, 4)
    assert kept(0, 3, 4, 4, rules=Rules(keep=9)) == (0, 3, 4, 4)


def restated(levels: tuple[int, ...]) -> list[int]:
    """The rule again, in other words: sort all triples by width, then by squared distances, then by age."""
    triples = [list(triple) for triple in combinations(range(5), 3)]
    triples.sort()
    triples.sort(key=lambda t: sum((levels[i] - levels[j]) ** 2 for i in t for j in t))
    triples.sort(key=lambda t: max(levels[i] for i in t) - min(levels[i] for i in t))
    return triples[0]


def test_every_pattern_of_five_ratings_is_decided_as_the_rule_says() -> None:
    for levels in product(range(5), repeat=5):
        chosen = [rating.annotation for rating in most_agreeing(rated(*levels), RULES)]
        assert chosen == restated(levels), levels


def test_five_ratings_always_hold_three_within_two() -> None:
    assert not any(outcome(rated(*levels), RULES).drop_reason for levels in product(range(5), repeat=5))


@given(people)
def test_the_kept_are_some_of_the_raters(ratings: list[dict[Key, dict[str, int]]]) -> None:
    everybody = of_people(ratings)
    chosen = most_agreeing(everybody, RULES)
    assert len(chosen) == min(3, len(everybody))
    assert {rating.annotation for rating in chosen} <= {rating.annotation for rating in everybody}


@given(people)
def test_labels_stay_on_the_scale(ratings: list[dict[Key, dict[str, int]]]) -> None:
    result = outcome(of_people(ratings), RULES)
    assert all(0 <= score <= 4 for labels in result.labels.values() for score in labels.values())
    assert set(result.labels) == {A, B}


@given(people.filter(lambda ratings: len(ratings) <= 3), st.randoms())
def test_the_order_of_up_to_three_raters_does_not_matter(ratings: list[dict[Key, dict[str, int]]], random: Any) -> None:
    mixed = list(ratings)
    random.shuffle(mixed)
    assert outcome(of_people(mixed), RULES).labels == outcome(of_people(ratings), RULES).labels


def closeness(chosen: Sequence[Rated]) -> tuple[int, int]:
    squares = sum(
        (one.ratings[r][key] - other.ratings[r][key]) ** 2
        for one, other in combinations(chosen, 2)
        for r in one.ratings
        for key in one.ratings[r]
    )
    return consensus.spread(chosen, "helpfulness") or 0, squares


@given(people.filter(lambda ratings: len(ratings) == 5), st.randoms())
def test_without_a_tie_the_order_of_five_raters_does_not_matter(
    ratings: list[dict[Key, dict[str, int]]], random: Any
) -> None:
    everybody = of_people(ratings)
    ranks = sorted(closeness(triple) for triple in combinations(everybody, 3))
    mixed = list(everybody)
    random.shuffle(mixed)
    if ranks[0] < ranks[1]:
        assert outcome(mixed, RULES).labels == outcome(everybody, RULES).labels


def test_a_tie_goes_to_those_who_came_first() -> None:
    """Either choice would do, but it has to be the same one each time."""
    assert {kept(*order) for order in permutations((0, 0, 0, 4, 4))} == {(0, 0, 0)}
    assert (kept(0, 1, 2, 3, 4), kept(4, 3, 2, 1, 0)) == ((0, 1, 2), (4, 3, 2))


# The final filter ------------------------------------------------------------------------------------------


def test_three_that_lie_too_far_apart_drop_the_task() -> None:
    assert outcome(rated(0, 3, 4), RULES).drop_reason == consensus.TOO_FAR_APART
    assert outcome(rated(2, 3, 4), RULES).drop_reason == ""


def test_the_filter_looks_at_the_kept_or_at_all() -> None:
    escalated = rated(0, 4, 4, 4, 3)
    assert outcome(escalated, RULES).drop_reason == ""
    assert outcome(escalated, ALL).drop_reason == consensus.TOO_FAR_APART
    assert (outcome(escalated, ALL).spread, outcome(escalated, ALL).spread_of_all) == (0, 4)


def test_nobody_agrees_on_nothing() -> None:
    assert outcome([], RULES) == consensus.ConsensusOutcome((), {}, {}, None, None, None, "")


# Preferences -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strengths", "agreed"),
    [
        ((), None),
        ((2,), 2),
        ((2, 3, 3), 3),
        ((1, 2), 2),
        ((-1, -2), -2),
        ((-1, 1, 1), None),
        ((1, 1, -1), None),
        ((-1, -1, 1, 1), None),
        ((-3, 1, 2), None),
        ((-3, 3, 2, 3, -2), 3),
        ((-3, -2, 1, 2, 3), 2),
        ((-100, 1, 2), None),
        ((-100, -100, -100, 1, 2), None),
        ((-100, 1, 2, 3, -100), 2),
        ((-100,), None),
        ((3, 1, 2, 2), 2),
    ],
)
def test_preferences_agree_or_give_none(strengths: tuple[int, ...], agreed: int | None) -> None:
    assert agreed_preference(strengths, RULES) == agreed


@given(st.lists(st.sampled_from([-3, -2, -1, 1, 2, 3]), min_size=1, max_size=3))
def test_swapping_the_responses_swaps_the_sign(strengths: list[int]) -> None:
    swapped = agreed_preference([-strength for strength in strengths], RULES)
    result = agreed_preference(strengths, RULES)
    assert swapped == (None if result is None else -result)


# Rows ------------------------------------------------------------------------------------------------------


def annotated(project: Project, users: Sequence[User], *levels: int | list[int]) -> None:
    for number, (user, level) in enumerate(zip(users, levels, strict=True)):
        rate(project, user, level, now=NOW + timedelta(seconds=number))


def in_force(task: Task) -> list[int]:
    labels = Label.objects.in_force().filter(response__task=task).order_by("response__position")
    return [label.scores["helpfulness"] for label in labels]


def test_three_who_agree_complete_the_task(project: Project, cast: Cast) -> None:
    task = make_task(project)
    annotated(project, cast.annotators, [4, 1], [3, 1], [4, 2])
    task.refresh_from_db()
    assert (task.state, task.open_slots, task.slots_wanted) == ("complete", 0, 3)
    assert in_force(task) == [4, 1]


def test_two_are_not_enough(project: Project, cast: Cast) -> None:
    task = make_task(project)
    annotated(project, cast.annotators[:2], 3, 3)
    task.refresh_from_db()
    assert (task.state, task.open_slots) == ("open", 1)
    assert not Consensus.objects.exists()


def test_a_preference_waits_for_the_others_as_a_label_does(cast: Cast) -> None:
    asking = make_project("asking", ask_preference=True)
    task = make_task(asking)
    for user in cast.annotators[:2]:
        rate(asking, user, preference=-2)
    assert not Consensus.objects.exists()
    rate(asking, cast.erin, preference=-2)
    assert Consensus.objects.get(task=task).kept


def test_a_rating_leaves_the_imported_preference_as_it_is(cast: Cast) -> None:
    asking = make_project("asking", ask_preference=True)
    raters = [{"strength": strength, "justification": "so"} for strength in (-2, -3, -1)]
    row = {"prompt": "p", "response_1": "a", "response_2": "b", "preference_strength": -2}
    imported(asking, row | {"all_preferences_unprocessed": raters})
    before = Consensus.objects.get().preference
    rate(asking, cast.alice, preference=3)
    assert Consensus.objects.get().preference == before


def test_three_who_disagree_open_two_slots(project: Project, cast: Cast) -> None:
    task = make_task(project)
    annotated(project, cast.annotators, 0, 4, 4)
    task.refresh_from_db()
    assert (task.state, task.open_slots, task.slots_wanted) == ("open", 2, 5)
    assert in_force(task) == []


def test_five_settle_what_three_did_not(project: Project, cast: Cast) -> None:
    task = make_task(project)
    five = [*cast.annotators, make_user("frank"), make_user("grace")]
    annotated(project, five, [0, 2], [4, 2], [4, 2], [1, 2], [3, 2])
    stored = Consensus.objects.get(task=task)
    by_age = list(Annotation.objects.order_by("submitted_at").values_list("pk", flat=True))
    assert stored.kept == [by_age[1], by_age[2], by_age[4]]
    assert (stored.annotators, stored.spread, stored.spread_of_all) == (5, 1, 4)
    assert in_force(task) == [4, 2]


def test_a_dropped_task_yields_no_label(cast: Cast) -> None:
    strict = make_project("strict", max_annotators=3)
    task = make_task(strict)
    annotated(strict, cast.annotators, 0, 4, 4)
    assert Consensus.objects.get(task=task).drop_reason == consensus.TOO_FAR_APART
    assert Label.objects.filter(response__task=task).count() == 2
    assert in_force(task) == []


def test_a_dropped_task_takes_its_imported_label_with_it(cast: Cast) -> None:
    strict = make_project("strict", max_annotators=3)
    imported(strict, ratings_row("p", "a", [0, 4, 4]))
    imported(strict, {"prompt": "p", "response": "a"} | dict.fromkeys(ATTRIBUTES, 4))
    assert not Label.objects.in_force().exists()


def test_settling_again_changes_nothing_but_the_time_of_the_consensus(project: Project, cast: Cast) -> None:
    task = make_task(project)
    annotated(project, cast.annotators, 3, 3, 4)
    before = list(Label.objects.order_by("pk").values())
    consensus.settle([task], project=project, now=NOW + timedelta(days=1))
    assert list(Label.objects.order_by("pk").values()) == before
    assert Consensus.objects.count() == 1


def test_a_changed_rule_changes_the_label_and_its_time(project: Project, cast: Cast) -> None:
    task = make_task(project)
    annotated(project, cast.annotators, 2, 3, 4)
    project.keep = 1
    consensus.settle([task], project=project, now=NOW + timedelta(days=1))
    assert in_force(task) == [2, 2]
    assert set(Label.objects.values_list("made_at", flat=True)) == {NOW + timedelta(days=1)}


def test_a_lease_holds_its_slot(project: Project, cast: Cast) -> None:
    task = make_task(project)
    annotated(project, cast.annotators[:2], 3, 3)
    claimed(project, cast.erin)
    consensus.settle([task], project=project, now=NOW)
    assert (task.open_slots, task.state) == (0, "open")


def test_a_quarantined_task_keeps_its_state(project: Project, cast: Cast) -> None:
    task = make_task(project)
    annotated(project, cast.annotators[:2], 3, 3)
    annotation.report(claimed(project, cast.erin).pk, category="harmful", now=NOW)
    task.refresh_from_db()
    consensus.settle([task], project=project, now=NOW)
    assert task.state == "quarantined"


def test_many_tasks_are_settled_in_few_queries(
    project: Project, cast: Cast, django_assert_max_num_queries: Any
) -> None:
    tasks = [make_task(project) for _ in range(20)]
    with django_assert_max_num_queries(7):
        consensus.settle(tasks, project=project, now=NOW)
