"""What annotators see of their own work, and that they see nobody else's."""

from datetime import timedelta
from random import Random

import pytest
from django.test import Client

from annotator.analysis.quality import mirror, own_work
from annotator.analysis.quality.person_work import latest_assignments
from annotator.models import Assignment, Membership, Project, Task
from annotator.stages.annotation import submit
from tests.builders import NOW, claimed, make_member, make_task, make_user, pseudonym, rate, submission
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


def test_the_amount_counts_days(project: Project, cast: Cast) -> None:
    for days_ago, seconds in ((3, 10.0), (0, 30.0), (0, 80.0)):
        make_task(project)
        rate(project, cast.alice, now=NOW - timedelta(days=days_ago), active_seconds=seconds)
    amounts = own_work.amount(cast.alice, project, latest=latest_assignments(cast.alice), now=NOW)
    assert (amounts.total, amounts.today) == (3, 2)
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


# The mirror ------------------------------------------------------------------------------------------------


def test_the_day_in_one_line(project: Project, cast: Cast, client: Client) -> None:
    for days_ago, seconds in ((3, 10.0), (1, 20.0), (0, 30.0), (0, 90.0), (0, None)):
        make_task(project)
        rate(project, cast.alice, now=NOW - timedelta(days=days_ago), active_seconds=seconds)
    day = mirror.day(project, latest_assignments(cast.alice), now=NOW)
    assert (day.worked, day.pace, day.usual) == (timedelta(minutes=2), 60.0, 15.0)
    assert not day.wants_break


def test_a_break_is_suggested_when_times_scatter_and_not_of_a_steady_pace() -> None:
    random = Random(7)
    steady = [[random.lognormvariate(4, 0.4) for _ in range(70)] for _ in range(400)]
    tired = [[*times[:50], *(random.lognormvariate(4, 1.2) for _ in range(20))] for times in steady]
    suggested = [sum(mirror.scatters(times[50:], usual=times[:50]) for times in all_) for all_ in (steady, tired)]
    assert suggested[0] <= 0.05 * 400
    assert suggested[1] >= 0.85 * 400


@pytest.mark.parametrize(("today", "before"), [(18, 50), (50, 18), (0, 0)])
def test_too_few_times_suggest_no_break(today: int, before: int) -> None:
    assert not mirror.scatters([1.0, 1000.0] * (today // 2), usual=[5.0, 6.0] * (before // 2))


def rated_by_three(project: Project, cast: Cast, levels: tuple[int, int, int]) -> Task:
    Project.objects.update(base_annotators=3, max_annotators=3)
    project.refresh_from_db()
    make_member(project, third := make_user(f"third{project.tasks.count()}"))
    task = make_task(project)
    for rater, level in zip((cast.alice, cast.bob, third), levels, strict=True):
        rate(project, rater, level)
    return task


def test_the_recap_holds_what_others_saw_otherwise(project: Project, cast: Cast) -> None:
    for levels in ((2, 2, 2), (3, 2, 2), (4, 1, 2)):
        rated_by_three(project, cast, levels)
    found = mirror.where_others_differed(project, latest_assignments(cast.alice), now=NOW)
    assert [(one.own, one.others, one.raters) for one in found] == [(5, 2.5, 2), (4, 3, 2)]


def test_the_recap_holds_each_task_once_and_not_too_many(project: Project, cast: Cast) -> None:
    for _ in range(mirror.MOST_RECAPPED + 1):
        rated_by_three(project, cast, (4, 1, 2))
    found = mirror.where_others_differed(project, latest_assignments(cast.alice), now=NOW)
    assert len({one.assignment for one in found}) == len(found) == mirror.MOST_RECAPPED


@pytest.mark.parametrize("hidden", ["open", "one other", "long ago", "of another"])
def test_the_recap_is_silent(project: Project, cast: Cast, hidden: str) -> None:
    rated_by_three(project, cast, (4, 1, 1))
    who, now = cast.alice, NOW
    if hidden == "open":
        project.tasks.update(state="open")
    elif hidden == "one other":
        Assignment.objects.filter(annotator=cast.bob).update(counts=False, slot=None)
    elif hidden == "long ago":
        now += timedelta(days=mirror.RECAP_DAYS, seconds=1)
    else:
        who = cast.carol
    assert mirror.where_others_differed(project, latest_assignments(who), now=now) == []


def test_the_recap_names_the_letter_of_ones_own_order(project: Project, cast: Cast) -> None:
    Project.objects.update(base_annotators=3, max_annotators=3)
    project.refresh_from_db()
    make_member(project, third := make_user("third"))
    task = make_task(project)
    for rater, levels in ((cast.alice, [4, 2]), (cast.bob, [1, 2]), (third, [1, 2])):
        rate(project, rater, levels)
    Assignment.objects.filter(annotator=cast.alice).update(response_order=[1, 0])
    found = mirror.where_others_differed(project, latest_assignments(cast.alice), now=NOW)
    assert {one.letter for one in found} == {"B"}, task


def test_drift_is_against_ones_own_earlier_weeks(project: Project, cast: Cast) -> None:
    Project.objects.update(base_annotators=2, max_annotators=2)
    project.refresh_from_db()
    for weeks_ago, own in ((2, 2), (1, 2), (0, 4)):
        for _ in range(5):
            make_task(project)
            rate(project, cast.alice, own, now=NOW - timedelta(weeks=weeks_ago))
            rate(project, cast.bob, 2, now=NOW - timedelta(weeks=weeks_ago))
    agreement = own_work.agreement_with_peers(project, latest_assignments(cast.alice), now=NOW)
    assert agreement.drift("helpfulness") == 2
    assert own_work.agreement_with_peers(project, latest_assignments(cast.carol), now=NOW).drift("helpfulness") is None


def test_the_mirror_is_on_the_page(project: Project, cast: Cast, client: Client) -> None:
    rated_by_three(project, cast, (4, 1, 2))
    client.force_login(cast.alice)
    page = client.get("/mine/").content.decode()
    assert "Today: " in page
    assert "bob" not in page
