"""Gold tasks in the stream: they look like work, measure the annotator, and yield no label."""

import pytest
from django.test import Client

from annotator.analysis import figures
from annotator.models import Consensus, Label, Membership, PauseReason, Project, Task, User
from annotator.outputs.exporting.export_rows import export
from annotator.stages import assignment, consensus
from annotator.stages.annotation import skip, submit
from annotator.stages.gold import gold_tasks
from tests.builders import NOW, claimed, make_gold, make_task, rate, submission
from tests.conftest import As, Cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(project: Project) -> Project:
    """Every task is followed by gold, and two gold tasks are judged."""
    project.gold_every, project.gold_window, project.gold_threshold = 1, 2, 0.4
    project.save()
    return project


def member_of(user: User) -> Membership:
    return user.memberships.select_related("project").get()


def test_gold_is_served_among_the_work(project: Project, cast: Cast) -> None:
    make_task(project)
    task = make_gold(project)
    assert claimed(project, cast.alice).task == task


def test_gold_is_for_everybody(project: Project, cast: Cast) -> None:
    make_task(project)
    task = make_gold(project)
    held = [claimed(project, user) for user in [*cast.annotators, cast.carol]]
    assert {assignment.task for assignment in held} == {task}
    assert len({assignment.slot for assignment in held}) == 4


def test_nobody_gets_the_same_gold_twice(project: Project, cast: Cast) -> None:
    ordinary = make_task(project)
    make_gold(project)
    rate(project, cast.alice)
    assert claimed(project, cast.alice).task == ordinary


def test_gold_comes_only_while_there_is_work(project: Project, cast: Cast) -> None:
    make_gold(project)
    assert assignment.claim(project, cast.alice, now=NOW).reason == "empty"


def test_tasks_of_the_test_never_come_as_work(project: Project, cast: Cast) -> None:
    ordinary = make_task(project)
    make_gold(project, use="test")
    make_gold(project, use="practice")
    assert claimed(project, cast.alice).task == ordinary


def test_without_a_rate_there_is_no_gold(project: Project, cast: Cast) -> None:
    Project.objects.update(gold_every=0)
    project.refresh_from_db()
    ordinary = make_task(project)
    make_gold(project)
    assert claimed(project, cast.alice).task == ordinary


def test_gold_yields_no_label_and_is_in_no_export(project: Project, cast: Cast) -> None:
    make_task(project)
    make_gold(project)
    for user in cast.annotators:
        rate(project, user)
    assert not Label.objects.exists()
    assert not Consensus.objects.exists()
    assert list(export(project, layout="annotations", format="jsonl")) == []


def test_counters_of_gold_are_right_after_everything(project: Project, cast: Cast) -> None:
    make_task(project)
    task = make_gold(project)
    rate(project, cast.alice)
    skip(claimed(project, cast.bob).pk, reason="other", now=NOW)
    assignment.release(claimed(project, cast.erin).pk)
    task.refresh_from_db()
    held = task.assignments.filter(slot__isnull=False).count()
    assert task.open_slots == task.slots_wanted - held
    assert task.state == Task.State.GOLD


def test_progress_does_not_count_gold(project: Project) -> None:
    make_task(project)
    make_gold(project)
    assert figures.progress([project], now=NOW)[project.pk].total == 1


def test_a_gold_rating_can_be_changed_like_any_other_and_the_first_one_counts(project: Project, cast: Cast) -> None:
    """The levels of the experts are 4 and 0; alice swaps hers to these after the first submission, while she may."""
    make_task(project)
    for _ in range(2):
        make_gold(project, levels=(4, 0))
        held = claimed(project, cast.alice)
        submit(held.pk, submission(held.task, [0, 4]), now=NOW)
        if not member_of(cast.alice).pause_reason:
            submit(held.pk, submission(held.task, [4, 0]), now=NOW)
    assert member_of(cast.alice).pause_reason == PauseReason.GOLD


def test_the_history_does_not_tell_gold(project: Project, cast: Cast, client: Client) -> None:
    make_task(project)
    make_gold(project)
    client.force_login(cast.alice)
    rate(project, cast.alice)
    page = client.get("/projects/talk/history/").content.decode()
    assert ("can be changed" in page, "gold" in page) == (True, False)


def test_gold_closes_in_the_history_once_as_many_have_rated_it_as_any_task_wants(
    project: Project, cast: Cast, client: Client
) -> None:
    make_task(project)
    make_gold(project)
    client.force_login(cast.alice)
    for user in cast.annotators:
        rate(project, user)
    assert "complete" in client.get("/projects/talk/history/").content.decode()


def test_managers_are_not_paused(project: Project, cast: Cast) -> None:
    rate_gold(project, cast.carol, [0, 4], [0, 4])
    assert member_of(cast.carol).paused_at is None


def rate_gold(project: Project, user: User, *levels: list[int]) -> None:
    for number, level in enumerate(levels):
        make_gold(project, f"gold-{user}-{number}", levels=(4, 0))
        make_task(project)
        rate(project, user, level)


def test_who_agrees_with_the_experts_goes_on(project: Project, cast: Cast) -> None:
    make_task(project)
    make_gold(project, levels=(4, 0))
    make_gold(project, levels=(1, 3))
    for _ in range(2):
        held = claimed(project, cast.alice)
        levels = [response.expert_rating.scores["helpfulness"] for response in held.task.responses.all()]
        submit(held.pk, submission(held.task, levels), now=NOW)
    reached = gold_tasks.standing(member_of(cast.alice))
    assert reached is not None
    assert reached.mean == 1
    assert member_of(cast.alice).paused_at is None


def test_who_falls_below_the_threshold_is_paused_and_told(project: Project, cast: Cast) -> None:
    rate_gold(project, cast.alice, [0, 4], [0, 4])
    member = member_of(cast.alice)
    assert (member.paused_at, member.pause_reason) == (NOW, PauseReason.GOLD)
    assert "paused" in assignment.claim(project, cast.alice, now=NOW).explanation


def test_nobody_is_judged_before_the_window_is_full(project: Project, cast: Cast) -> None:
    rate_gold(project, cast.alice, [0, 4])
    assert member_of(cast.alice).paused_at is None


def test_after_a_pause_gold_counts_anew(project: Project, cast: Cast) -> None:
    rate_gold(project, cast.alice, [0, 4], [0, 4])
    gold_tasks.resume(member_of(cast.alice), now=NOW)
    member = member_of(cast.alice)
    assert (member.paused_at, member.pause_reason, gold_tasks.standing(member)) == (None, "", None)


def test_a_paused_annotator_is_told_over_rest(project: Project, cast: Cast, as_user: As) -> None:
    make_task(project)
    gold_tasks.pause(member_of(cast.alice), reason=PauseReason.MANAGER, now=NOW)
    answer = as_user(cast.alice).post("/api/v1/projects/talk/next/").json()
    assert (answer["assignment"], answer["reason"]) == (None, "paused")


def test_gold_looks_like_any_other_task_over_rest(project: Project, cast: Cast, as_user: As) -> None:
    make_task(project)
    make_gold(project)
    answer = as_user(cast.alice).post("/api/v1/projects/talk/next/")
    assert set(answer.json()["task"]) == {"id", "conversation", "responses"}
    assert b"gold" not in answer.content.replace(b'"id":"gold', b"")
    assert b"Level" not in answer.content


def test_settling_gold_makes_nothing(project: Project, cast: Cast) -> None:
    make_task(project)
    task = make_gold(project)
    rate(project, cast.alice)
    consensus.settle([Task.objects.get(pk=task.pk)], project=project, now=NOW)
    assert Task.objects.get(pk=task.pk).state == Task.State.GOLD
