"""Rankings, the pairs that follow from them, and what people's rankings add up to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotator.models import Annotation, Consensus, Project
from annotator.stages import annotation
from annotator.stages.annotation import IncompleteRating
from annotator.stages.assignment.counters import differences, recount
from annotator.stages.consensus.rankings import agreed_pairs, pairs_of, ranking_of, ranks_of, tiers_of_ranks
from annotator.stages.consensus.rules import Rules, agreed_preference
from annotator.stages.review import adjudicate
from tests.builders import ATTRIBUTES, NOW, claimed, make_project, make_task, rate, submission
from tests.conftest import Cast

A, B, C, D = 10, 11, 12, 13


def agreed(*rankings: list[list[int]], rules: Rules | None = None) -> list[tuple[int, int]]:
    return list(agreed_pairs(rankings, lambda strengths: agreed_preference(strengths, rules or Rules())))


# Pure ------------------------------------------------------------------------------------------------------


def test_equal_ranks_are_tied_and_gaps_say_nothing() -> None:
    assert tiers_of_ranks({C: 1, A: 3, B: 3, D: 9}) == [[C], [A, B], [D]]


def test_a_ranking_gives_each_pair_of_different_tiers() -> None:
    assert pairs_of([[C], [B, A], [D]]) == [(C, A), (C, B), (C, D), (A, D), (B, D)]


@given(st.dictionaries(st.integers(1, 9), st.integers(1, 4), min_size=1))
def test_a_ranking_is_made_of_its_pairs_again(ranks: dict[int, int]) -> None:
    ranking = tiers_of_ranks(ranks)
    assert ranking_of(pairs_of(ranking), sorted(ranks)) == ranking
    assert tiers_of_ranks(ranks_of(ranking)) == ranking


def test_what_all_say_decides_each_pair() -> None:
    assert agreed(*[[[C], [A], [B]]] * 3) == [(A, B), (C, A), (C, B)]


def test_two_of_three_decide_a_pair_against_a_tie() -> None:
    # -1, -1, 0: the mean of -2/3 rounds to -1.
    assert agreed([[A], [B]], [[A], [B]], [[A, B]]) == [(A, B)]


def test_one_of_three_decides_nothing_against_two_ties() -> None:
    # -1, 0, 0: the mean of -1/3 rounds to 0.
    assert agreed([[A], [B]], [[A, B]], [[A, B]]) == []


def test_two_against_one_that_differ_cancel_out() -> None:
    # -1, -1, 1: the mean of -1/3 rounds to 0, though two say the same.
    assert agreed([[A], [B]], [[A], [B]], [[B], [A]]) == []


def test_the_three_most_similar_of_five_count() -> None:
    assert agreed(*[[[A], [B]]] * 3, *[[[B], [A]]] * 2) == [(A, B)]


def test_a_pair_that_lies_too_far_apart_is_left_out() -> None:
    narrow = Rules(keep=5, drop_above=1)
    assert agreed(*[[[A], [B]]] * 4, [[B], [A]], rules=narrow) == []
    assert agreed(*[[[A], [B]]] * 4, [[B], [A]], rules=Rules(keep=5)) == [(A, B)]


def test_pairs_in_a_circle_are_tied() -> None:
    assert ranking_of([(A, B), (B, C), (C, A)], [A, B, C, D]) == [[A, B, C, D]]
    assert ranking_of([(A, B), (B, C), (C, A), (A, D), (B, D), (C, D)], [A, B, C, D]) == [[A, B, C], [D]]


# With rows -------------------------------------------------------------------------------------------------


@pytest.fixture
def asking(cast: Cast) -> Project:
    return make_project("asking", ask_preference=True)


def ids(project: Project) -> list[int]:
    return [response.pk for response in project.tasks.get().responses.all()]


def test_three_responses_are_ranked_before_they_are_submitted(asking: Project, cast: Cast) -> None:
    task = make_task(asking, responses=3)
    held = claimed(asking, cast.alice)
    with pytest.raises(IncompleteRating, match="put all 3 responses into tiers of ids"):
        annotation.submit(held.pk, submission(task), now=NOW)
    assert not Annotation.objects.exists()


def test_a_task_of_three_adds_up_to_pairs(asking: Project, cast: Cast) -> None:
    make_task(asking, responses=3)
    one, two, three = ids(asking)
    given = [[one], [two], [three]], [[one, two], [three]], [[one], [three, two]]
    for user, ranking in zip(cast.annotators, given, strict=True):
        rate(asking, user, ranking=ranking)
    # one and two: -1, 0, -1; one and three: -1, -1, -1; two and three: -1, -1, 0.
    assert Consensus.objects.get().pairs == [[one, two], [one, three], [two, three]]


def test_a_ranking_is_revised(asking: Project, cast: Cast) -> None:
    task = make_task(asking, responses=3)
    one, two, three = ids(asking)
    done = rate(asking, cast.alice, ranking=[[one], [three, two]])
    held = done.annotation.assignment
    same = annotation.submit(held.pk, submission(task, ranking=[[one], [two, three]]), now=NOW)
    other = annotation.submit(held.pk, submission(task, ranking=[[one, two, three]]), now=NOW)
    assert (same.annotation.pk, same.annotation.ranking) == (done.annotation.pk, [[one], [two, three]])
    assert (other.annotation.revision, other.annotation.ranking) == (2, [[one, two, three]])


def test_a_recount_finds_the_same_pairs(asking: Project, cast: Cast) -> None:
    make_task(asking, responses=4)
    order = ids(asking)
    for user in cast.annotators:
        rate(asking, user, ranking=[[response] for response in order])
    assert list(differences(asking, now=NOW)) == []
    Consensus.objects.update(pairs=[])
    assert [(difference.name, difference.recomputed) for difference in differences(asking, now=NOW)] == [
        ("consensus.pairs", [list(pair) for pair in pairs_of([[response] for response in order])])
    ]
    recount(asking, now=NOW)
    assert list(differences(asking, now=NOW)) == []


def test_a_reviewer_settles_a_task_with_a_ranking(asking: Project, cast: Cast) -> None:
    task = make_task(asking, responses=3)
    one, two, three = ids(asking)
    for user in cast.annotators:
        rate(asking, user, ranking=[[one], [two], [three]])
    scores = {response: dict.fromkeys(ATTRIBUTES, 2) for response in (one, two, three)}
    with pytest.raises(IncompleteRating, match="ranking"):
        adjudicate(task.pk, scores=scores, reason="slip", by=cast.carol, now=NOW)
    made = adjudicate(task.pk, scores=scores, ranking=[[three, two], [one]], reason="slip", by=cast.carol, now=NOW)
    assert made.ranking == [[two, three], [one]]
    again = adjudicate(task.pk, scores=scores, ranking=[[two, three], [one]], reason="slip", by=cast.carol, now=NOW)
    assert again.pk == made.pk
