"""A reviewer accepts or rejects one annotation."""

import pytest
from django.db import IntegrityError, transaction

from annotator.models import Assignment, AuditEntry, Consensus, Label, Project, Tally, Task, User, Verdict
from annotator.stages import annotation, assignment, consensus
from annotator.stages.annotation import Refused
from annotator.stages.review import judge
from annotator.stages.review.verdicts import CommentNeeded
from tests.builders import (
    NOW,
    claimed,
    imported,
    make_gold,
    make_task,
    make_user,
    pseudonym,
    rate,
    ratings_row,
)
from tests.builders import submission as filled
from tests.conftest import Cast
from tests.refusals import refusal

ACCEPT, REJECT = Verdict.Decision.ACCEPTED, Verdict.Decision.REJECTED


@pytest.fixture
def task(project: Project) -> Task:
    return make_task(project)


def rejected(held: Assignment, by: User, comment: str = "You mixed the responses up.") -> Verdict:
    return judge(held.pk, decision=REJECT, comment=comment, by=by, now=NOW)


def accepted(held: Assignment, by: User) -> Verdict:
    return judge(held.pk, decision=ACCEPT, by=by, now=NOW)


def rated_by(project: Project, *users: User, levels: tuple[int, ...] = (3, 3, 4)) -> list[Assignment]:
    return [rate(project, user, level).annotation.assignment for user, level in zip(users, levels, strict=False)]


def test_a_rejected_annotation_leaves_the_consensus_and_frees_its_slot(
    project: Project, cast: Cast, rita: User, task: Task
) -> None:
    held = rated_by(project, *cast.annotators)
    rejected(held[2], rita)
    task.refresh_from_db()
    held[2].refresh_from_db()
    assert (task.state, task.open_slots, task.done) == (Task.State.OPEN, 1, 2)
    assert (held[2].counts, held[2].slot, held[2].state) == (False, None, Assignment.State.SUBMITTED)
    assert not Label.objects.exists()
    assert not Consensus.objects.exists()


def test_its_annotation_and_their_tally_stay(project: Project, cast: Cast, rita: User, task: Task) -> None:
    (held,) = rated_by(project, cast.alice)
    rejected(held, rita)
    assert held.annotations.current().get().ratings.count() == 2
    assert Tally.objects.get(annotator=cast.alice).done == 1


def test_the_slot_goes_to_somebody_else(project: Project, cast: Cast, rita: User, task: Task) -> None:
    held = rated_by(project, *cast.annotators)
    rejected(held[0], rita)
    assert assignment.claim(project, cast.alice, now=NOW).reason == "you_did_all"
    rate(project, rita, 4)
    task.refresh_from_db()
    assert task.state == Task.State.COMPLETE
    assert Label.objects.in_force().first().means["helpfulness"] == pytest.approx(11 / 3)  # type: ignore[union-attr]


def test_an_accepted_one_stays_as_it_was(project: Project, cast: Cast, rita: User, task: Task) -> None:
    held = rated_by(project, *cast.annotators)
    before = list(Task.objects.values())
    accepted(held[0], rita)
    assert list(Task.objects.values()) == before
    assert held[0].verdicts.get().decision == ACCEPT


def test_accepting_later_brings_it_back(project: Project, cast: Cast, rita: User, task: Task) -> None:
    held = rated_by(project, *cast.annotators)
    before = list(Label.objects.order_by("response").values("response", "scores", "means"))
    rejected(held[1], rita)
    accepted(held[1], rita)
    held[1].refresh_from_db()
    task.refresh_from_db()
    assert (held[1].counts, held[1].slot, task.state) == (True, 2, Task.State.COMPLETE)
    assert list(Label.objects.order_by("response").values("response", "scores", "means")) == before


def test_it_gets_one_more_slot_where_others_took_its_own(project: Project, cast: Cast, rita: User, task: Task) -> None:
    held = rated_by(project, *cast.annotators)
    rejected(held[0], rita)
    rate(project, rita, 4)
    accepted(held[0], rita)
    held[0].refresh_from_db()
    task.refresh_from_db()
    assert (held[0].counts, held[0].slot, task.done, task.slots_wanted) == (True, 4, 4, 4)
    assert Consensus.objects.get().annotators == 4


def test_what_it_asks_for_anew_it_may_take_itself(project: Project, cast: Cast, rita: User, task: Task) -> None:
    """Without the outlier three were enough; with it five are wanted, and it is the fifth."""
    others = [make_user(name) for name in ("f", "g")]
    held = rated_by(project, *cast.annotators, *others, levels=(4, 4, 0, 4, 4))
    rejected(held[2], rita)
    task.refresh_from_db()
    assert (task.state, task.slots_wanted) == (Task.State.COMPLETE, 4)
    accepted(held[2], rita)
    task.refresh_from_db()
    assert (task.state, task.slots_wanted, task.done) == (Task.State.COMPLETE, 5, 5)


def test_the_same_verdict_again_changes_nothing(project: Project, cast: Cast, rita: User, task: Task) -> None:
    (held,) = rated_by(project, cast.alice)
    assert rejected(held, rita) == rejected(held, rita)
    assert Verdict.objects.count() == 1
    assert AuditEntry.objects.filter(action="annotation.rejected").count() == 1


def test_another_comment_is_another_verdict(project: Project, cast: Cast, rita: User, task: Task) -> None:
    (held,) = rated_by(project, cast.alice)
    rejected(held, rita)
    rejected(held, rita, "Look at the second response again.")
    assert [verdict.comment[:3] for verdict in held.verdicts.order_by("pk")] == ["You", "Loo"]


def test_a_rejection_needs_a_comment(project: Project, cast: Cast, rita: User, task: Task) -> None:
    (held,) = rated_by(project, cast.alice)
    with pytest.raises(CommentNeeded):
        rejected(held, rita, "  \n")
    with pytest.raises(IntegrityError, match="a_rejection_has_a_comment"), transaction.atomic():
        Verdict.objects.create(assignment=held, decision=REJECT, by=rita, made_at=NOW)


def test_nobody_judges_their_own(project: Project, rita: User, task: Task) -> None:
    (held,) = rated_by(project, rita)
    with refusal("own_work"):
        accepted(held, rita)


def test_what_is_not_submitted_cannot_be_judged(project: Project, cast: Cast, rita: User, task: Task) -> None:
    with pytest.raises(Refused, match="not submitted"):
        accepted(claimed(project, cast.alice), rita)


def test_gold_tasks_are_not_reviewed(project: Project, cast: Cast, rita: User) -> None:
    gold = make_gold(project)
    held = Assignment.objects.create(
        task=gold, annotator=cast.alice, slot=1, response_order=[0, 1], leased_at=NOW, lease_expires_at=NOW
    )
    annotation.submit(held.pk, filled(gold), now=NOW)
    with pytest.raises(Refused, match="measures annotators"):
        rejected(held, rita)


def test_its_annotator_cannot_revise_it(project: Project, cast: Cast, rita: User, task: Task) -> None:
    (held,) = rated_by(project, cast.alice)
    rejected(held, rita)
    with pytest.raises(Refused, match="You mixed the responses up"):
        annotation.submit(held.pk, filled(task, 1), now=NOW)
    accepted(held, rita)
    assert annotation.submit(held.pk, filled(task, 1), now=NOW).annotation.revision == 2


def test_it_survives_recounting(project: Project, cast: Cast, rita: User, task: Task) -> None:
    held = rated_by(project, *cast.annotators)
    rejected(held[0], rita)
    before = list(Task.objects.values("state", "open_slots", "done", "slots_wanted"))
    assignment.recount(project, now=NOW)
    assert list(Task.objects.values("state", "open_slots", "done", "slots_wanted")) == before
    held[0].refresh_from_db()
    assert not held[0].counts


def test_a_rejection_in_a_smaller_project_reopens_it_too(project: Project, cast: Cast, rita: User, task: Task) -> None:
    """Slots beyond those that are wanted by now are no obstacle."""
    held = rated_by(project, *cast.annotators)
    Project.objects.update(base_annotators=1, keep=1)
    project.refresh_from_db()
    assignment.recount(project, now=NOW)
    for own in held[:2]:
        rejected(own, rita)
    accepted(held[0], rita)
    rejected(held[2], rita)
    task.refresh_from_db()
    assert (task.state, task.done, task.open_slots) == (Task.State.COMPLETE, 1, 0)


def test_imported_annotations_are_judged_alike(project: Project, rita: User) -> None:
    imported(project, ratings_row("p", "a", [0, 4, 4]))
    task = Task.objects.get()
    rejected(task.assignments.order_by("pk")[0], rita)
    task.refresh_from_db()
    assert (task.state, task.done, task.review_reason) == (Task.State.OPEN, 2, "")


def test_it_is_recorded_without_the_comment(project: Project, cast: Cast, rita: User, task: Task) -> None:
    (held,) = rated_by(project, cast.alice)
    rejected(held, rita)
    entry = AuditEntry.objects.get(action="annotation.rejected")
    assert pseudonym(cast.alice, project) in entry.subject
    assert "mixed" not in str(entry.details) + entry.subject


def test_rejecting_one_of_the_far_apart_takes_the_task_out_of_the_queue(
    project: Project, cast: Cast, rita: User, task: Task
) -> None:
    Project.objects.update(max_annotators=3)
    project.refresh_from_db()
    held = rated_by(project, *cast.annotators, levels=(0, 4, 4))
    assert project.tasks.disputed().get().review_reason == Task.Review.DROPPED
    rejected(held[0], rita)
    assert not project.tasks.disputed().exists()
    assert consensus.Rules.of(project).most == 3
