"""Annotators who try to count where there is no room, to read everything, or to take all tasks from the others."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import IntegrityError, connection, transaction

from annotator.analysis.quality import assessment
from annotator.models import Assignment, Label, PauseReason, Project, Report, Role, Skip, Task, User
from annotator.stages import annotation, assignment
from annotator.stages.annotation import TooMany
from annotator.stages.gold import gold_tasks
from annotator.stages.review import adjudicate, exclude, judge, withdraw
from tests.builders import (
    ATTRIBUTES,
    NOW,
    claimed,
    make_gold,
    make_member,
    make_project,
    make_task,
    make_user,
    rate,
    submission,
)
from tests.conftest import As, Cast
from tests.refusals import refusal

SOON, LATER = NOW + timedelta(minutes=5), NOW + timedelta(hours=2)


def crowd(project: Project, number: int) -> list[User]:
    people = [make_user(f"person-{place}") for place in range(number)]
    for person in people:
        make_member(project, person)
    return people


def body(lease: dict[str, Any], level: int) -> dict[str, Any]:
    scores = dict.fromkeys(ATTRIBUTES, level)
    return {"ratings": [{"response": response["id"], "scores": scores} for response in lease["task"]["responses"]]}


def counting(task: Task) -> int:
    return Assignment.objects.submitted().filter(task=task, counts=True).count()


# Overlap ---------------------------------------------------------------------------------------------------


def test_who_claims_gives_back_and_submits_later_never_counts_beside_the_others(project: Project, as_user: As) -> None:
    task = make_task(project)
    leases = []
    for person in crowd(project, 8):
        client = as_user(person)
        lease = client.post("/api/v1/projects/talk/next/").json()
        assert client.delete(f"/api/v1/assignments/{lease['assignment']}/").status_code == 204
        leases.append((client, lease))
    for client, lease in leases:
        answer = client.put(f"/api/v1/assignments/{lease['assignment']}/annotation/", body(lease, 2))
        assert answer.status_code == 201
    task.refresh_from_db()
    assert counting(task) == task.slots_wanted == 3
    assert Assignment.objects.filter(extra=True).count() == 5


def test_a_finished_label_does_not_flip_by_what_comes_late(project: Project, cast: Cast) -> None:
    task = make_task(project)
    late = [claimed(project, person) for person in crowd(project, 3)]
    assignment.expire_all(now=LATER)
    for user in cast.annotators:
        rate(project, user, 2, now=LATER)
    before = list(Label.objects.order_by("pk").values("scores", "made_at"))
    for held in late:
        annotation.submit(held.pk, submission(task, 4), now=LATER)
    assert list(Label.objects.order_by("pk").values("scores", "made_at")) == before


def test_a_reviewer_may_admit_what_came_late(project: Project, cast: Cast) -> None:
    task = make_task(project)
    (late,) = [claimed(project, person) for person in crowd(project, 1)]
    assignment.expire_all(now=LATER)
    for user in cast.annotators:
        rate(project, user, 2, now=LATER)
    annotation.submit(late.pk, submission(task, 4), now=LATER)
    judge(late.pk, decision="accepted", by=cast.carol, now=LATER)
    task.refresh_from_db()
    assert counting(task) == task.slots_wanted == 4


def test_a_free_number_is_no_room_where_fewer_are_wanted_by_now(cast: Cast) -> None:
    """Of five slots the second runs out and the third is given back; then three annotators are enough."""
    project = make_project("wide", base_annotators=5)
    task = make_task(project)
    held = [claimed(project, person) for person in crowd(project, 5)]
    Assignment.objects.filter(pk=held[1].pk).update(lease_expires_at=NOW - timedelta(minutes=1))
    assignment.expire_all(now=NOW)
    assignment.release(held[2].pk)
    Project.objects.filter(pk=project.pk).update(base_annotators=3)
    project.refresh_from_db()
    assignment.recount(project, now=NOW)
    for lease in (held[1], held[0], held[3], held[4]):
        annotation.submit(lease.pk, submission(task), now=SOON)
    task.refresh_from_db()
    assert counting(task) == task.slots_wanted == 3


def test_the_database_refuses_work_that_counts_without_a_slot(project: Project, cast: Cast) -> None:
    make_task(project)
    held = rate(project, cast.alice).annotation.assignment
    with pytest.raises(IntegrityError, match="what_counts_holds_a_slot"), transaction.atomic():
        Assignment.objects.filter(pk=held.pk).update(slot=None)


def test_the_database_refuses_more_that_counts_than_a_task_wants(project: Project, cast: Cast) -> None:
    task = make_task(project)
    for user in cast.annotators:
        rate(project, user)
    with connection.cursor() as cursor, transaction.atomic():
        Task.objects.filter(pk=task.pk).update(slots_wanted=2, done=2)
        with pytest.raises(IntegrityError, match="more annotations of task"), transaction.atomic():
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        Task.objects.filter(pk=task.pk).update(slots_wanted=3, done=3)


# Quotas, releases, reports ---------------------------------------------------------------------------------


def test_a_quota_holds_when_work_is_handed_in_too(cast: Cast) -> None:
    project = make_project("small", quota=2)
    make_member(project, cast.alice)
    tasks = [make_task(project) for _ in range(4)]
    held = []
    for _ in tasks:
        held.append(claimed(project, cast.alice))
        assignment.release(held[-1].pk)
    for lease in held:
        annotation.submit(lease.pk, submission(lease.task), now=SOON)
    assert Assignment.objects.submitted().filter(counts=True).count() == 2


def test_nobody_reads_all_tasks_by_giving_them_back(
    project: Project, cast: Cast, as_user: As, settings: LazySettings
) -> None:
    settings.RELEASES_AN_HOUR = 3
    for _ in range(5):
        make_task(project)
    alice, answers = as_user(cast.alice), []
    for _ in range(5):
        lease = alice.post("/api/v1/projects/talk/next/").json()
        answers.append(alice.delete(f"/api/v1/assignments/{lease['assignment']}/").status_code)
    assert answers == [204, 204, 204, 429, 429]


def test_nobody_reads_all_tasks_by_skipping_them(project: Project, cast: Cast, settings: LazySettings) -> None:
    settings.SKIPS_AN_HOUR = 2
    for _ in range(3):
        make_task(project)
    for _ in range(2):
        annotation.skip(claimed(project, cast.alice).pk, reason="other", now=NOW)
    with pytest.raises(TooMany, match="skipped 2 tasks"):
        annotation.skip(claimed(project, cast.alice).pk, reason="other", now=NOW)


@pytest.mark.parametrize("personal", [True, False])
def test_one_annotator_cannot_take_all_tasks_from_the_others(
    project: Project, cast: Cast, settings: LazySettings, personal: bool
) -> None:
    settings.OPEN_REPORTS = 2
    tasks = [make_task(project) for _ in range(4)]

    def set_aside() -> None:
        held = claimed(project, cast.alice).pk
        if personal:
            annotation.skip(held, reason="pii", now=NOW)
        else:
            annotation.report(held, category="harmful", now=NOW)

    set_aside()
    set_aside()
    with pytest.raises(TooMany, match="Ask your manager"):
        set_aside()
    assert Task.objects.filter(pk__in=[task.pk for task in tasks], state="quarantined").count() == 2


def test_gold_cannot_be_reported_away(cast: Cast) -> None:
    project = make_project("golden", gold_every=1)
    make_task(project)
    task = make_gold(project)
    held = claimed(project, cast.alice)
    assert held.task_id == task.pk
    annotation.report(held.pk, category="harmful", now=NOW)
    task.refresh_from_db()
    assert (task.state, task.review_reason, Report.objects.count()) == (Task.State.GOLD, "", 1)


# Who is excluded or paused ---------------------------------------------------------------------------------


def barred(project: Project, cast: Cast, how: str) -> None:
    if how == "excluded":
        exclude(project, cast.alice, reason="no", by=cast.carol, now=NOW)
    else:
        member = cast.alice.memberships.get(project=project)
        gold_tasks.pause(member, reason=PauseReason.MANAGER, now=NOW)


@pytest.mark.parametrize("how", ["excluded", "paused"])
def test_who_is_barred_neither_reports_nor_revises_nor_skips(project: Project, cast: Cast, how: str) -> None:
    task = make_task(project)
    held = rate(project, cast.alice).annotation.assignment
    barred(project, cast, how)
    for act in (
        lambda: annotation.report(held.pk, category="harmful", now=NOW),
        lambda: annotation.skip(held.pk, reason="pii", now=NOW),
        lambda: annotation.submit(held.pk, submission(task, 1), now=NOW),
        lambda: annotation.save_draft(held.pk, {}, revision=1, now=NOW),
    ):
        with refusal("not_at_work"):
            act()
    task.refresh_from_db()
    assert task.state == Task.State.OPEN


@pytest.mark.parametrize("how", ["excluded", "paused"])
def test_who_is_barred_may_hand_in_what_they_hold(project: Project, cast: Cast, how: str) -> None:
    task = make_task(project)
    held = claimed(project, cast.alice)
    barred(project, cast, how)
    assert annotation.submit(held.pk, submission(task), now=SOON).created
    assert counting(task) == (how == "paused")


def test_an_undo_after_an_exclusion_is_refused_and_breaks_nothing(project: Project, cast: Cast) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    annotation.skip(held.pk, reason="other", now=NOW)
    exclude(project, cast.alice, reason="no", by=cast.carol, now=NOW)
    with refusal("not_at_work"):
        annotation.undo_skip(held.pk, now=NOW)


@pytest.mark.parametrize("door", ["draft", "report"])
def test_the_pages_say_so_instead_of_breaking(project: Project, cast: Cast, client: Any, door: str) -> None:
    make_task(project)
    held = rate(project, cast.alice).annotation.assignment
    exclude(project, cast.alice, reason="no", by=cast.carol, now=NOW)
    client.force_login(cast.alice)
    answer = client.post(f"/assignments/{held.pk}/{door}/?revision=1", {"category": "harmful"})
    assert answer.status_code == (409 if door == "draft" else 302)


# What is said later ----------------------------------------------------------------------------------------


def test_personal_information_is_set_aside_after_another_reason_too(project: Project, cast: Cast) -> None:
    task = make_task(project)
    held = claimed(project, cast.alice)
    annotation.skip(held.pk, reason="other", now=NOW)
    annotation.skip(held.pk, reason="pii", now=NOW)
    task.refresh_from_db()
    assert (task.state, Skip.objects.count()) == (Task.State.QUARANTINED, 2)


def test_personal_information_found_after_rating_withdraws_the_rating(project: Project, cast: Cast) -> None:
    task = make_task(project)
    held = rate(project, cast.alice).annotation.assignment
    annotation.skip(held.pk, reason="pii", now=NOW)
    task.refresh_from_db()
    held.refresh_from_db()
    assert (task.state, held.state, held.slot) == (Task.State.QUARANTINED, Assignment.State.SKIPPED, None)
    assert not held.annotations.current().exists()
    assert held.annotations.count() == 1


def test_labels_forget_a_rating_that_was_withdrawn(project: Project, cast: Cast) -> None:
    task = make_task(project)
    made = [rate(project, user, level) for user, level in zip(cast.annotators, (0, 2, 2), strict=True)]
    assert Label.objects.filter(response__task=task).count() == 2
    annotation.skip(made[0].annotation.assignment_id, reason="pii", now=SOON)
    assert not Label.objects.filter(response__task=task).exists()
    annotation.decide_quarantine(task.pk, safe_to_use=True, now=SOON)
    task.refresh_from_db()
    assert (task.state, task.done, task.open_slots, counting(task)) == (Task.State.OPEN, 2, 1, 2)


def test_a_withdrawn_rating_is_not_counted_as_work(project: Project, cast: Cast) -> None:
    make_task(project)
    held = rate(project, cast.alice).annotation.assignment
    annotation.skip(held.pk, reason="pii", now=NOW)
    assert cast.alice.tallies.get().done == 0
    assert list(assignment.differences(project, now=NOW)) == []


def test_a_withdrawn_rating_stays_withdrawn(project: Project, cast: Cast) -> None:
    task = make_task(project)
    held = rate(project, cast.alice).annotation.assignment
    annotation.skip(held.pk, reason="pii", now=NOW)
    with pytest.raises(annotation.Refused, match="withdrew"):
        annotation.undo_skip(held.pk, now=NOW)
    with pytest.raises(annotation.Refused, match="You skipped this task"):
        annotation.submit(held.pk, submission(task, 4), now=NOW)


def test_a_withdrawn_gold_rating_still_measures(project: Project, cast: Cast) -> None:
    Project.objects.update(gold_every=1, gold_window=2)
    project.refresh_from_db()
    cast.alice.memberships.update(role=Role.REVIEWER)  # whom no gold task pauses
    make_task(project)
    tasks = [make_gold(project) for _ in range(2)]
    made = [rate(project, cast.alice) for _ in tasks]
    annotation.skip(made[0].annotation.assignment_id, reason="pii", now=NOW)
    member = cast.alice.memberships.select_related("project").get()
    assert gold_tasks.standing(member) is not None


def test_a_withdrawn_adjudication_is_news(project: Project, cast: Cast) -> None:
    task = make_task(project)
    for user in cast.annotators:
        rate(project, user, 2)
    scores = {response.pk: dict.fromkeys(ATTRIBUTES, 4) for response in task.responses.all()}
    adjudicate(task.pk, scores=scores, reason="other", by=cast.carol, now=SOON)
    withdraw(task.pk, by=cast.carol, now=LATER)
    assert {label.made_at for label in Label.objects.in_force()} == {LATER}


def test_what_a_changed_protocol_lets_in_again_is_news(cast: Cast) -> None:
    project = make_project("strict", max_annotators=3, drop_above=0)
    make_task(project)
    for user, level in zip(cast.annotators, (1, 2, 3), strict=True):
        rate(project, user, level)
    assert not Label.objects.in_force().exists()
    Project.objects.filter(pk=project.pk).update(drop_above=4)
    project.refresh_from_db()
    assignment.recount(project, now=LATER)
    assert {label.made_at for label in Label.objects.in_force()} == {LATER}


def test_a_model_s_unlikely_rating_is_no_difference_to_a_recount(project: Project, cast: Cast) -> None:
    task = make_task(project)
    for user in cast.annotators:
        rate(project, user)
    Task.objects.filter(pk=task.pk).update(review_reason=Task.Review.UNLIKELY)
    assert list(assignment.differences(project, now=NOW)) == []


def test_nine_tasks_of_one_second_each_stand_out(project: Project, cast: Cast) -> None:

    text = "A sentence of some length that nobody reads within a second. " * 4
    for number in range(9):
        make_task(project, prompt=f"{number}: {text}")
        rate(project, cast.alice, active_seconds=1.0)
    assessment.assess(project, now=NOW)
    (assessed,) = project.rater_qualities.all()
    assert [flag["kind"] for flag in assessed.flags] == ["speeding"]
