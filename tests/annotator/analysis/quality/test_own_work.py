"""What annotators see of their own work, and that they see nobody else's."""

from datetime import timedelta

import pytest
from django.test import Client

from annotator.analysis.quality import own_work
from annotator.analysis.quality.person_work import latest_assignments
from annotator.models import Assignment, Membership, Project
from annotator.stages.annotation import submit
from tests.builders import NOW, claimed, make_task, pseudonym, rate, submission
from tests.conftest import Cast

pytestmark = pytest.mark.django_db
LEVELS = [(0, 1), (4, 4), (2, 3), (1, 1), (3, 4), (0, 2)]


def rate_all(project: Project, cast: Cast) -> tuple[list[int], list[int]]:
    """alice and bob rate six tasks of two responses; returns alice's levels and bob's, response by response."""
    Project.objects.update(base_annotators=2, max_annotators=2)
    project.refresh_from_db()
    alice, bob = [], []
    for first, second in LEVELS:
        make_task(project)
        rate(project, cast.alice, [first, second])
        rate(project, cast.bob, [second, first])
        alice += [first, second]
        bob += [second, first]
    return alice, bob


def test_agreement_with_peers_is_scikit_learns_kappa(project: Project, cast: Cast) -> None:
    from sklearn.metrics import cohen_kappa_score

    alice, bob = rate_all(project, cast)
    agreement = own_work.agreement_with_peers(project, latest_assignments(cast.alice), now=NOW)
    expected = cohen_kappa_score(alice, bob, weights="quadratic", labels=range(5))
    assert agreement.overall["helpfulness"] == pytest.approx(expected)
    assert agreement.by_week["helpfulness"][-1] == pytest.approx(expected)
    assert agreement.by_week["helpfulness"][:-1] == [None] * 7
    assert agreement.shared == 12


def test_agreement_is_silent_while_tasks_are_open(project: Project, cast: Cast) -> None:
    rate_all(project, cast)
    project.tasks.update(state="open")
    assert own_work.agreement_with_peers(project, latest_assignments(cast.alice), now=NOW).shared == 0


@pytest.mark.parametrize("name", ["alice", "bob"])
def test_what_does_not_count_agrees_with_nobody(project: Project, cast: Cast, name: str) -> None:
    rate_all(project, cast)
    Assignment.objects.filter(annotator__username=name).update(counts=False, slot=None)
    assert own_work.agreement_with_peers(project, latest_assignments(cast.alice), now=NOW).shared == 0


def test_agreement_is_silent_below_the_floor(project: Project, cast: Cast) -> None:
    rate_all(project, cast)
    project.tasks.filter(pk__in=project.tasks.values("pk")[:2]).update(state="open")
    agreement = own_work.agreement_with_peers(project, latest_assignments(cast.alice), now=NOW)
    assert (agreement.shared, agreement.overall["helpfulness"]) == (8, None)


def test_of_very_many_tasks_every_nth_is_compared(
    project: Project, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    rate_all(project, cast)
    monkeypatch.setattr(own_work, "MOST_COMPARED", 3)
    agreement = own_work.agreement_with_peers(project, latest_assignments(cast.alice), now=NOW)
    assert agreement.shared == 2 * 3


def test_the_amount_counts_days_and_the_pace(project: Project, cast: Cast) -> None:
    for days_ago, seconds in ((3, 10.0), (0, 30.0), (0, 80.0)):
        make_task(project)
        rate(project, cast.alice, now=NOW - timedelta(days=days_ago), active_seconds=seconds)
    amounts = own_work.amount(cast.alice, project, latest=latest_assignments(cast.alice), now=NOW)
    assert (amounts.total, amounts.today, amounts.seconds_per_task) == (3, 2, 30.0)
    assert [count for _, count in amounts.days][-4:] == [1, 0, 0, 2]


def test_a_revision_is_no_new_work(project: Project, cast: Cast) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    for level in (1, 2):
        submit(held.pk, submission(held.task, level), now=NOW)
    assert own_work.amount(cast.alice, project, latest=latest_assignments(cast.alice), now=NOW).total == 1


def test_the_page_names_no_peer(project: Project, cast: Cast, client: Client) -> None:
    rate_all(project, cast)
    client.force_login(cast.alice)
    page = client.get("/mine/").content.decode()
    assert "Your agreement with others" in page
    assert "bob" not in page
    assert pseudonym(cast.bob, project) not in page


def test_a_pause_and_the_test_are_told(project: Project, cast: Cast, client: Client) -> None:
    Project.objects.update(qualification_required=True)
    Membership.objects.filter(user=cast.alice).update(paused_at=NOW, pause_reason="gold")
    client.force_login(cast.alice)
    page = client.get("/mine/").content.decode()
    assert "You are paused in this project: ratings of gold tasks" in page
    assert "not taken yet" in page
