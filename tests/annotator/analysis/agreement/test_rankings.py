"""How far rankings agree over every two responses of a task: by hand, and by Kendall's tau."""

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean

import pytest
from rest_framework.test import APIClient

from annotator.analysis.agreement.reports import RankingAgreement, report
from annotator.analysis.agreement.totals import rebuild
from annotator.models import Consensus, Project, Role
from tests.builders import NOW, make_member, make_project, make_task, make_user, rate

Order = Sequence[Sequence[int]]
"""Tiers of places, the best first."""


@pytest.fixture
def asking(db: None) -> Project:
    return make_project("asking", ask_preference=True, base_annotators=2, max_annotators=2)


def ranked(project: Project, responses: int, *orders: Order) -> None:
    """A task with one ranking a rater; rater n is the same in every task."""
    task = make_task(project, responses=responses)
    ids = [response.pk for response in task.responses.all()]
    for number, order in enumerate(orders):
        rater = project.memberships.filter(user__username=f"rater-{number}").first()
        user = rater.user if rater else make_member(project, make_user(f"rater-{number}")).user
        rate(project, user, ranking=[[ids[place] for place in tier] for tier in order])


def measured(project: Project) -> RankingAgreement:
    return report(project, now=NOW).ranking


def test_nothing_ranked_is_said_so(asking: Project) -> None:
    assert (measured(asking).kappa, measured(asking).samples) == (None, 0)


def test_three_responses_by_hand(asking: Project) -> None:
    ranked(asking, 3, [[0], [1], [2]], [[0], [2], [1]])
    # -1, -1, -1 and -1, -1, 1, and the same with the other sign: kappa = 1 - (4/3) / (2 * 1).
    estimate = measured(asking)
    assert estimate.kappa == pytest.approx(1 / 3)
    assert (estimate.samples, estimate.ratings) == (3, 6)
    assert [estimate.same_order, estimate.ties] == pytest.approx([2 / 3, 0])


def test_ties_by_hand(asking: Project) -> None:
    ranked(asking, 3, [[0, 1], [2]], [[0], [1], [2]])
    # 0, -1, -1 and -1, -1, -1: mean squared difference 1/3, mean square 5/6.
    estimate = measured(asking)
    assert estimate.kappa == pytest.approx(1 - (1 / 3) / (2 * 5 / 6))
    assert [estimate.same_order, estimate.ties] == pytest.approx([2 / 3, 1 / 6])


def test_the_order_of_the_import_says_nothing(asking: Project) -> None:
    ranked(asking, 3, [[2], [0], [1]], [[2], [1], [0]])
    assert measured(asking).kappa == pytest.approx(1 / 3)


def test_the_same_order_is_1_and_the_reverse_is_minus_1(asking: Project) -> None:
    ranked(asking, 4, [[2], [0], [1], [3]], [[2], [0], [1], [3]])
    assert measured(asking).kappa == pytest.approx(1)
    asking.tasks.all().delete()
    ranked(asking, 4, [[2], [0], [1], [3]], [[3], [1], [0], [2]])
    assert measured(asking).kappa == pytest.approx(-1)


def test_without_ties_it_is_the_mean_of_kendalls_tau(asking: Project) -> None:
    def tau(one: Order, other: Order) -> float:
        at, there = ({place: n for n, (place,) in enumerate(order)} for order in (one, other))
        signs = [(at[a] - at[b]) * (there[a] - there[b]) for a, b in combinations(range(5), 2)]
        return fmean(1 if sign > 0 else -1 for sign in signs)

    pairs = [
        ([[0], [3], [1], [4], [2]], [[0], [1], [3], [2], [4]]),
        ([[4], [3], [2], [1], [0]], [[4], [0], [2], [1], [3]]),
    ]
    for one, other in pairs:
        ranked(asking, 5, one, other)
    assert measured(asking).kappa == pytest.approx(fmean(tau(*pair) for pair in pairs))


def test_the_interval_draws_tasks_and_not_pairs(asking: Project) -> None:
    for _ in range(2):
        ranked(asking, 3, [[0], [1], [2]], [[0], [1], [2]])
        ranked(asking, 3, [[0], [1], [2]], [[2], [1], [0]])
    assert measured(asking).interval is None
    ranked(asking, 3, [[0], [1], [2]], [[2], [1], [0]])
    # Of five tasks, two with 1 and three with -1, a draw has 1 no time to five times.
    assert measured(asking).interval == pytest.approx((-1, 0.6))


def test_counting_anew_changes_nothing(asking: Project) -> None:
    ranked(asking, 3, [[0], [1], [2]], [[0, 2], [1]])
    before = measured(asking)
    rebuild(asking, now=NOW)
    assert measured(asking) == before
    Consensus.objects.all().delete()
    asking.tasks.all().delete()
    assert measured(asking).samples == 0


def test_rest_and_the_page_tell_it(asking: Project, client: APIClient) -> None:
    ranked(asking, 3, [[0], [1], [2]], [[0], [2], [1]])
    carol = make_user("carol")
    make_member(asking, carol, Role.MANAGER)
    client.force_login(carol)
    answered = client.get("/api/v1/projects/asking/agreement/").json()["ranking"]
    assert (answered["kappa"], answered["samples"], answered["ties"]) == (pytest.approx(1 / 3), 3, 0)
    assert "Pairs of responses" in client.get("/projects/asking/agreement/").content.decode()
