"""One person's agreement with the others, against figures that are computed by hand."""

import pytest

from annotator.analysis.quality import person_work
from annotator.models import Project
from annotator.statistics.measures import paired_kappa
from tests.builders import make_task, rate
from tests.conftest import Cast

PAIRS = [(0, 1), (4, 4), (2, 1), (3, 3), (1, 0), (4, 2), (2, 2)]


def rated(project: Project, cast: Cast, pairs: list[tuple[int, int]]) -> None:
    for own, other in pairs:
        make_task(project, responses=1)
        rate(project, cast.alice, own)
        rate(project, cast.bob, other)


def measured(project: Project, cast: Cast) -> person_work.PersonWithOthers:
    return person_work.with_others(project, person_work.latest_assignments(cast.alice))


def test_kappa_and_bias_are_those_of_the_pairs(project: Project, cast: Cast) -> None:
    rated(project, cast, PAIRS)
    work = measured(project, cast)
    kappa, bias = work.kappa["helpfulness"], work.bias["helpfulness"]
    assert work.tasks == 7
    assert kappa.value == pytest.approx(paired_kappa(PAIRS))
    assert bias.value == pytest.approx(sum(own - other for own, other in PAIRS) / 7)
    for interval in (kappa, bias):
        assert interval.low is not None
        assert interval.high is not None
        assert interval.value is not None
        assert interval.low < interval.value < interval.high


def test_the_same_page_shows_the_same_interval(project: Project, cast: Cast) -> None:
    rated(project, cast, PAIRS)
    assert measured(project, cast) == measured(project, cast)


def test_few_tasks_say_nothing(project: Project, cast: Cast) -> None:
    rated(project, cast, PAIRS[:4])
    work = measured(project, cast)
    assert (work.tasks, work.kappa["helpfulness"].value) == (4, None)


def test_scores_that_never_vary_have_no_kappa_but_a_bias(project: Project, cast: Cast) -> None:
    rated(project, cast, [(3, 3)] * 6)
    work = measured(project, cast)
    assert (work.kappa["coherence"].value, work.bias["coherence"].value) == (None, 0)


def test_what_does_not_count_is_left_out(project: Project, cast: Cast) -> None:
    rated(project, cast, PAIRS)
    cast.bob.assignments.update(counts=False, slot=None)
    assert measured(project, cast).tasks == 0
