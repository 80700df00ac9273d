"""A reviewer's authoritative rating, beside the annotators'."""

from datetime import timedelta
from typing import Any

import pytest

from annotator.models import (
    Adjudication,
    Annotation,
    AuditEntry,
    Consensus,
    Label,
    Project,
    Rating,
    Task,
    Verdict,
)
from annotator.stages import annotation, assignment
from annotator.stages.annotation import IncompleteRating, Refused
from annotator.stages.review import adjudicate, judge, withdraw
from tests.builders import ATTRIBUTES, NOW, claimed, imported, make_gold, make_task, rate, task_row
from tests.conftest import Cast

LATER = NOW + timedelta(hours=1)
SLIP = Adjudication.Reason.SLIP


@pytest.fixture
def task(project: Project, cast: Cast) -> Task:
    """A dropped one: three annotators, a spread of 4."""
    Project.objects.update(max_annotators=3)
    project.refresh_from_db()
    made = make_task(project)
    for user, level in zip(cast.annotators, (0, 4, 4), strict=True):
        rate(project, user, level)
    made.refresh_from_db()
    return made


def settled(task: Task, cast: Cast, *levels: int, **fields: Any) -> Adjudication:
    """carol's word: a level per response, on every attribute."""
    pairs = zip(task.responses.all(), levels or (3, 1), strict=True)
    scores = {response.pk: dict.fromkeys(ATTRIBUTES, level) for response, level in pairs}
    fields.setdefault("reason", SLIP)
    fields.setdefault("now", NOW)
    return adjudicate(task.pk, scores=scores, by=cast.carol, **fields)


def helpfulness() -> list[int]:
    in_force = Label.objects.in_force().order_by("response__position")
    return [label.scores["helpfulness"] for label in in_force]


def everything() -> list[Any]:
    """Tasks, labels and consensus, as far as anybody can see them."""
    tasks = Task.objects.order_by("pk").values("state", "slots_wanted", "open_slots", "done", "review_reason")
    labels = Label.objects.order_by("response", "source").values("response", "source", "scores", "means")
    consensus = Consensus.objects.order_by("task").values("kept", "annotators", "spread", "preference")
    return [list(rows) for rows in (tasks, labels, consensus)]


def test_it_is_the_label_in_force(task: Task, cast: Cast) -> None:
    assert helpfulness() == []
    settled(task, cast)
    task.refresh_from_db()
    assert helpfulness() == [3, 1]
    assert (task.adjudicated, task.state, task.review_reason) == (True, Task.State.COMPLETE, "")


def test_the_originals_stay(task: Task, cast: Cast) -> None:
    before = list(Rating.objects.order_by("pk").values())
    settled(task, cast)
    assert list(Rating.objects.order_by("pk").values()) == before
    assert Consensus.objects.get().drop_reason


def test_the_same_again_changes_nothing(task: Task, cast: Cast) -> None:
    first = settled(task, cast)
    assert settled(task, cast, now=LATER) == first
    assert set(Label.objects.in_force().values_list("made_at", flat=True)) == {NOW}
    assert AuditEntry.objects.filter(action="label.adjudicated").count() == 1


def test_another_one_replaces_it_and_the_old_one_stays(task: Task, cast: Cast) -> None:
    settled(task, cast)
    settled(task, cast, 3, 2, now=LATER, comment="Looked again.")
    assert [adjudication.is_current for adjudication in task.adjudications.order_by("pk")] == [False, True]
    assert helpfulness() == [3, 2]
    changed = Label.objects.in_force().order_by("response__position").values_list("made_at", flat=True)
    assert list(changed) == [NOW, LATER]


def test_withdrawing_it_gives_the_consensus_back(task: Task, cast: Cast) -> None:
    before = everything()
    settled(task, cast)
    withdraw(task.pk, by=cast.carol, now=NOW)
    assert everything() == before
    assert Adjudication.objects.get().is_current is False


def test_withdrawing_twice_does_no_harm(task: Task, cast: Cast) -> None:
    settled(task, cast)
    withdraw(task.pk, by=cast.carol, now=NOW)
    withdraw(task.pk, by=cast.carol, now=NOW)
    assert AuditEntry.objects.filter(action="label.withdrawn").count() == 1


def test_a_task_that_others_agree_on_can_be_settled_too(project: Project, cast: Cast) -> None:
    task = make_task(project)
    for user in cast.annotators:
        rate(project, user, 4)
    settled(task, cast, 1, 1)
    assert helpfulness() == [1, 1]


@pytest.mark.parametrize("missing", [{"helpfulness": 3}, dict.fromkeys(ATTRIBUTES, 5), dict.fromkeys("xyz", 1)])
def test_an_incomplete_one_is_refused(task: Task, cast: Cast, missing: dict[str, int]) -> None:
    scores = {response.pk: missing for response in task.responses.all()}
    with pytest.raises(IncompleteRating):
        adjudicate(task.pk, scores=scores, reason=SLIP, by=cast.carol, now=NOW)
    assert not Adjudication.objects.exists()


def test_both_responses_need_scores_and_no_other(task: Task, cast: Cast) -> None:
    one = {task.responses.all()[0].pk: dict.fromkeys(ATTRIBUTES, 3)}
    for scores in (one, one | {10**9: dict.fromkeys(ATTRIBUTES, 3)}):
        with pytest.raises(IncompleteRating):
            adjudicate(task.pk, scores=scores, reason=SLIP, by=cast.carol, now=NOW)


def test_a_preference_is_asked_where_the_project_asks(task: Task, cast: Cast) -> None:
    Project.objects.update(ask_preference=True, ask_safety=True, ask_confidence=True)
    with pytest.raises(IncompleteRating, match="Preference"):
        settled(task, cast)
    assert settled(task, cast, preference=-2).preference == -2


def test_an_open_task_is_refused(project: Project, cast: Cast) -> None:
    with pytest.raises(Refused, match="is still waiting for annotators"):
        settled(make_task(project), cast)


def test_a_quarantined_task_is_decided_first(project: Project, task: Task, cast: Cast) -> None:
    annotation.report(task.assignments.first().pk, category="bias", now=NOW)  # type: ignore[union-attr]
    with pytest.raises(Refused, match="set aside"):
        settled(task, cast)
    annotation.decide_quarantine(task.pk, safe_to_use=True, now=NOW)
    assert settled(task, cast).is_current


def test_retired_and_gold_tasks_are_refused(project: Project, task: Task, cast: Cast) -> None:
    Task.objects.filter(pk=task.pk).update(state=Task.State.RETIRED)
    with pytest.raises(Refused, match="retired"):
        settled(task, cast)
    with pytest.raises(Refused, match="measures annotators"):
        settled(make_gold(project), cast)


# What comes after it ---------------------------------------------------------------------------------------


def test_it_survives_recounting_by_other_numbers(project: Project, task: Task, cast: Cast) -> None:
    settled(task, cast)
    Project.objects.update(base_annotators=5, max_annotators=5, keep=2, drop_above=0)
    project.refresh_from_db()
    assignment.recount(project, now=LATER)
    task.refresh_from_db()
    assert helpfulness() == [3, 1]
    assert (task.adjudicated, task.state, task.open_slots) == (True, Task.State.COMPLETE, 0)


def test_it_survives_the_same_file_imported_again(project: Project, cast: Cast) -> None:
    row = task_row("t-1")
    imported(project, row)
    for user in cast.annotators:
        rate(project, user, 4)
    task = Task.objects.get(external_id="t-1")
    settled(task, cast)
    assert imported(project, row).existing == 1
    assert helpfulness() == [3, 1]


def test_it_survives_a_rejection(task: Task, cast: Cast) -> None:
    settled(task, cast)
    for held in task.assignments.all():
        judge(held.pk, decision=Verdict.Decision.REJECTED, comment="No.", by=cast.carol, now=NOW)
    task.refresh_from_db()
    assert helpfulness() == [3, 1]
    assert (task.state, task.done, task.slots_wanted) == (Task.State.COMPLETE, 0, 0)


def test_nobody_gets_a_settled_task(project: Project, task: Task, cast: Cast) -> None:
    settled(task, cast)
    held = task.assignments.first()
    assert held is not None
    judge(held.pk, decision=Verdict.Decision.REJECTED, comment="No.", by=cast.carol, now=NOW)
    assert assignment.claim(project, cast.carol, now=NOW).assignment is None
    withdraw(task.pk, by=cast.carol, now=NOW)
    assert claimed(project, cast.carol).task_id == task.pk


def test_what_came_back_meanwhile_has_a_slot_after_withdrawing(task: Task, cast: Cast) -> None:
    before = everything()
    settled(task, cast)
    held = task.assignments.get(slot=3)
    judge(held.pk, decision=Verdict.Decision.REJECTED, comment="No.", by=cast.carol, now=NOW)
    judge(held.pk, decision=Verdict.Decision.ACCEPTED, by=cast.carol, now=NOW)
    withdraw(task.pk, by=cast.carol, now=NOW)
    assert everything() == before


def test_a_quarantine_takes_it_out_of_force_and_back(task: Task, cast: Cast) -> None:
    settled(task, cast)
    annotation.report(task.assignments.first().pk, category="bias", now=NOW)  # type: ignore[union-attr]
    assert helpfulness() == []
    annotation.decide_quarantine(task.pk, safe_to_use=True, now=NOW)
    task.refresh_from_db()
    assert (helpfulness(), task.state) == ([3, 1], Task.State.COMPLETE)
    assert Annotation.objects.count() == 3
