"""An annotator's work leaves a project's labels, and comes back."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from annotator.infrastructure.background import heartbeats
from annotator.models import (
    Adjudication,
    Annotation,
    Assignment,
    AuditEntry,
    Consensus,
    Exclusion,
    Label,
    Project,
    Tally,
    Task,
    User,
    Verdict,
)
from annotator.stages import annotation, assignment
from annotator.stages.review import adjudicate, exclude, exclusion_preview, exclusions, judge, readmit, withdraw
from annotator.stages.review.admission import admit_and_settle
from annotator.stages.review.exclusion_previews import ExclusionPreview, readmission_preview
from annotator.stages.review.exclusions import SYNC_LIMIT, enforce, enforce_all, lift
from annotator.tasks import enforce_exclusions
from rewards import snapshots
from rewards.models import Snapshot
from tests.builders import (
    ATTRIBUTES,
    NOW,
    claimed,
    imported,
    label_row,
    make_project,
    make_task,
    make_user,
    rate,
    ratings_row,
    submission,
)
from tests.conftest import Cast
from tests.refusals import refusal


def excluded(project: Project, user: User, by: User) -> Exclusion:
    return exclude(project, user, reason="Clicks without reading.", by=by, now=NOW)


def seen(project: Project) -> dict[str, Any]:
    """All that readmitting has to restore, as far as anybody can see it."""
    tasks = Task.objects.filter(project=project).order_by("pk")
    labels = Label.objects.for_project(project.pk).order_by("response", "source")
    consensus = Consensus.objects.filter(task__project=project).order_by("task")
    names = ("state", "slots_wanted", "open_slots", "done", "review_reason", "review_spread", "adjudicated")
    return {
        "tasks": list(tasks.values("pk", *names)),
        "labels": list(labels.values("response", "source", "scores", "means")),
        "consensus": list(consensus.values("task", "kept", "annotators", "spread", "preference", "drop_reason")),
        "holds": list(Assignment.objects.filter(task__in=tasks).order_by("pk").values("pk", "counts", "state")),
    }


def test_what_they_made_counts_no_more(project: Project, cast: Cast) -> None:
    task = make_task(project)
    for user in cast.annotators:
        rate(project, user)
    excluded(project, cast.bob, cast.carol)
    task.refresh_from_db()
    held = Assignment.objects.get(annotator=cast.bob)
    assert (held.counts, held.slot, held.state) == (False, None, Assignment.State.SUBMITTED)
    assert (task.state, task.open_slots, task.done) == (Task.State.OPEN, 1, 2)
    assert not Label.objects.exists()
    assert Tally.objects.get(annotator=cast.bob).done == 1


def test_they_get_no_task_and_what_they_hold_goes_back(project: Project, cast: Cast) -> None:
    make_task(project)
    held = claimed(project, cast.bob)
    excluded(project, cast.bob, cast.carol)
    held.refresh_from_db()
    assert (held.state, held.task.open_slots, held.counts) == (Assignment.State.RELEASED, 3, False)
    assert assignment.claim(project, cast.bob, now=NOW).reason == "excluded"


def test_what_they_still_submit_is_kept_and_does_not_count(project: Project, cast: Cast) -> None:
    task = make_task(project)
    held = claimed(project, cast.bob)
    excluded(project, cast.bob, cast.carol)
    annotation.submit(held.pk, submission(held.task), now=NOW)
    task.refresh_from_db()
    assert (task.done, task.open_slots, Annotation.objects.count()) == (0, 3, 1)
    readmit(project, cast.bob, now=NOW)
    task.refresh_from_db()
    assert (task.done, task.open_slots) == (1, 2)


def test_other_projects_keep_their_work(project: Project, cast: Cast) -> None:
    other = make_project("other", base_annotators=1, keep=1)
    make_task(other)
    rate(other, cast.bob)
    excluded(project, cast.bob, cast.carol)
    assert Label.objects.in_force().for_project(other.pk).count() == 2


def test_imported_raters_can_be_excluded(project: Project, cast: Cast) -> None:
    imported(project, ratings_row("p", "a", [1, 4, 4]))
    rater = Assignment.objects.order_by("pk")[0].annotator
    excluded(project, rater, cast.carol)
    task = Task.objects.get()
    assert (task.state, task.done) == (Task.State.OPEN, 2)


def test_what_is_imported_of_them_later_is_taken_out_too(project: Project, cast: Cast) -> None:
    imported(project, ratings_row("p", "a", [1, 4, 4]))
    rater = Assignment.objects.order_by("pk")[0].annotator
    excluded(project, rater, cast.carol)
    imported(project, ratings_row("q", "b", [1, 4, 4]))
    assert enforce_exclusions() == 0  # none of it has counted
    assert not Assignment.objects.filter(annotator=rater, counts=True).exists()


def test_excluding_twice_changes_nothing(project: Project, cast: Cast) -> None:
    make_task(project)
    rate(project, cast.bob)
    first = excluded(project, cast.bob, cast.carol)
    before = seen(project)
    assert excluded(project, cast.bob, cast.carol) == first
    assert seen(project) == before
    assert AuditEntry.objects.filter(action="annotator.excluded").count() == 1


def test_readmitting_one_who_is_not_excluded_does_no_harm(project: Project, cast: Cast) -> None:
    assert readmit(project, cast.bob, now=NOW) is None
    assert not AuditEntry.objects.exists()


def test_what_a_reviewer_rejected_stays_out(project: Project, cast: Cast) -> None:
    for _ in range(2):
        make_task(project)
        held = rate(project, cast.bob).annotation.assignment
    judge(held.pk, decision=Verdict.Decision.REJECTED, comment="No.", by=cast.carol, now=NOW)
    excluded(project, cast.bob, cast.carol)
    readmit(project, cast.bob, now=NOW)
    assert [assignment.counts for assignment in Assignment.objects.order_by("pk")] == [True, False]


def test_what_is_accepted_meanwhile_counts_once_they_are_back(project: Project, cast: Cast) -> None:
    make_task(project)
    held = rate(project, cast.bob).annotation.assignment
    excluded(project, cast.bob, cast.carol)
    judge(held.pk, decision=Verdict.Decision.ACCEPTED, by=cast.carol, now=NOW)
    held.refresh_from_db()
    assert not held.counts
    readmit(project, cast.bob, now=NOW)
    held.refresh_from_db()
    assert (held.counts, held.slot) == (True, 1)


def test_a_reviewers_labels_stay(project: Project, cast: Cast) -> None:
    task = make_task(project)
    for user in cast.annotators:
        rate(project, user)
    scores = {response.pk: dict.fromkeys(ATTRIBUTES, 1) for response in task.responses.all()}
    adjudicate(task.pk, scores=scores, reason=Adjudication.Reason.OTHER, by=cast.carol, now=NOW)
    excluded(project, cast.bob, cast.carol)
    assert {label.scores["helpfulness"] for label in Label.objects.in_force()} == {1}


# In the background -----------------------------------------------------------------------------------------


@pytest.fixture
def few_at_the_door(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """More than one task goes to the light worker, which listens; what is sent to it."""
    sent: list[Any] = []
    heartbeats.beat("test", ["light"])
    monkeypatch.setattr("annotator.stages.review.exclusions.SYNC_LIMIT", 1)
    monkeypatch.setattr("annotator.stages.review.exclusions.AT_ONCE", 2)
    monkeypatch.setattr("annotator.infrastructure.background.messages.app.send_task", lambda *task: sent.append(task))
    yield sent
    heartbeats.forget("test")


def rated_alone(project: Project, user: User, tasks: int) -> None:
    for _ in range(tasks):
        make_task(project)
        rate(project, user)


def test_much_work_is_left_to_the_light_worker(
    project: Project, cast: Cast, few_at_the_door: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    rated_alone(project, cast.bob, 3)
    with django_capture_on_commit_callbacks(execute=True):
        excluded(project, cast.bob, cast.carol)
    assert few_at_the_door == [("annotator.tasks.enforce_exclusions", [])]
    assert assignment.claim(project, cast.bob, now=NOW).reason == "excluded"
    assert Assignment.objects.filter(counts=True).count() == 3
    assert enforce_exclusions() == 3
    assert not Assignment.objects.filter(counts=True).exists()


def test_the_exclusion_lasts_until_all_is_back(
    project: Project, cast: Cast, few_at_the_door: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    rated_alone(project, cast.bob, 3)
    enforce(excluded(project, cast.bob, cast.carol).pk, now=NOW)
    with django_capture_on_commit_callbacks(execute=True):
        going_on = readmit(project, cast.bob, now=NOW)
    assert going_on is not None
    assert enforce_exclusions() == 3
    assert not Exclusion.objects.exists()
    assert Assignment.objects.filter(counts=True, slot=1).count() == 3


def test_nobody_is_promised_to_come_back_where_no_worker_listens(
    project: Project, cast: Cast, few_at_the_door: list[Any]
) -> None:
    rated_alone(project, cast.bob, 3)
    enforce(excluded(project, cast.bob, cast.carol).pk, now=NOW)
    heartbeats.forget("test")
    with refusal("no_worker"):
        readmit(project, cast.bob, now=NOW)
    assert not AuditEntry.objects.filter(action="annotator.readmitted").exists()


def test_what_was_cut_off_is_finished_from_the_rows(
    project: Project, cast: Cast, few_at_the_door: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rated_alone(project, cast.bob, 3)
    excluded(project, cast.bob, cast.carol)
    first, *_ = Task.objects.order_by("pk")
    Assignment.objects.filter(task=first).update(counts=False, slot=None)
    assert enforce_all(now=NOW) == 2
    assert enforce_all(now=NOW) == 0


def test_excluding_again_during_a_readmission_stands(
    project: Project, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    rated_alone(project, cast.bob, 2)
    excluded(project, cast.bob, cast.carol)
    monkeypatch.setattr(exclusions, "AT_ONCE", 1)

    def admitted_then_excluded(*args: Any, **named: Any) -> None:
        admit_and_settle(*args, **named)
        exclude(project, cast.bob, reason="Once more.", by=cast.carol, now=NOW)

    monkeypatch.setattr(exclusions, "admit_and_settle", admitted_then_excluded)
    readmit(project, cast.bob, now=NOW)
    assert Exclusion.objects.get(annotator=cast.bob, readmitted_at=None).reason == "Once more."
    assert not Assignment.objects.filter(annotator=cast.bob, counts=True).exists()
    assert AuditEntry.objects.filter(action="annotator.excluded").count() == 2


def test_a_worker_that_comes_too_late_finds_nothing_to_do(project: Project, cast: Cast) -> None:
    rated_alone(project, cast.bob, 1)
    exclusion = excluded(project, cast.bob, cast.carol)
    readmit(project, cast.bob, now=NOW)
    assert enforce(exclusion.pk, now=NOW) == lift(exclusion.pk, now=NOW) == 0
    assert Assignment.objects.get().counts


def test_the_door_waits_for_hundreds_of_tasks_at_most() -> None:
    assert SYNC_LIMIT <= 500


def test_the_preview_of_a_readmission_counts_what_comes_back(project: Project, cast: Cast) -> None:
    rated_alone(project, cast.bob, 2)
    excluded(project, cast.bob, cast.carol)
    assert readmission_preview(project, cast.bob) == ExclusionPreview(annotations=2, tasks=2)
    assert exclusion_preview(project, cast.bob) == ExclusionPreview()


def test_very_many_tasks_are_counted_by_a_part(project: Project, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    Project.objects.update(base_annotators=1, keep=1)
    project.refresh_from_db()
    rated_alone(project, cast.bob, 7)
    monkeypatch.setattr("annotator.stages.review.exclusion_previews.MOST_LOOKED_AT", 3)
    preview = exclusion_preview(project, cast.bob)
    assert preview == ExclusionPreview(7, 7, tasks_losing_labels=7, tasks_reopened=7, estimated=True)


def test_a_preference_alone_takes_no_slot_that_others_give_up(project: Project, cast: Cast) -> None:
    task = make_task(project)
    mine, theirs = (rate(project, user).annotation.assignment for user in (cast.alice, cast.bob))
    alone = Assignment.objects.create(
        task=task, annotator=cast.erin, state="submitted", response_order=[], leased_at=NOW, lease_expires_at=NOW
    )
    Annotation.objects.create(assignment=alone, preference=-1, content_hash="-", submitted_at=NOW)
    excluded(project, cast.bob, cast.carol)
    task.refresh_from_db()
    alone.refresh_from_db()
    assert (task.open_slots, alone.slot) == (2, None)
    assert {mine.slot, theirs.slot} == {1, 2}


# Snapshots -------------------------------------------------------------------------------------------------


def written(snapshot: Snapshot) -> list[dict[str, Any]]:
    names = ("train.jsonl", "validation.jsonl")
    return [json.loads(line) for name in names for line in (snapshot.directory() / name).read_text().splitlines()]


def test_a_snapshot_has_none_of_theirs(cast: Cast) -> None:
    project = make_project("small", validation_share=0.5, base_annotators=2)
    for number in range(12):
        make_task(project, prompt=f"Prompt {number}")
        for user, level in zip(cast.annotators, (4, 4, 0), strict=True):
            held = assignment.claim(project, user, now=NOW).assignment
            if held:
                annotation.submit(held.pk, submission(held.task, level), now=NOW)
    imported(project, *(ratings_row(f"q{n}", "a", [4, 4]) for n in range(12)))
    before = snapshots.take(project, now=NOW)
    assert len(written(before)) == 24
    excluded(project, cast.bob, cast.carol)
    assert len(written(snapshots.take(project, now=NOW))) == 12
    readmit(project, cast.bob, now=NOW)
    assert snapshots.take(project, now=NOW) == before


# For all ratings -------------------------------------------------------------------------------------------

LEVELS = st.lists(st.integers(0, 4), min_size=2, max_size=2)
TASKS = st.lists(st.lists(LEVELS, min_size=1, max_size=5), min_size=1, max_size=2)
PROTOCOLS = st.fixed_dictionaries(
    {
        "base_annotators": st.integers(1, 3),
        "max_annotators": st.integers(3, 5),
        "keep": st.integers(1, 3),
        "drop_above": st.integers(0, 3),
        "escalate_above": st.integers(0, 3),
        "spread_scope": st.sampled_from(["kept", "all"]),
    }
)


class TestForAllRatings(TestCase):
    """Whatever five annotators give, as far as they are asked."""

    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        ratings=TASKS,
        protocol=PROTOCOLS,
        who=st.integers(0, 4),
        adjudicated=st.booleans(),
        labelled=st.booleans(),
        preference=st.sampled_from([None, -2, 1]),
    )
    def test_readmitting_restores_what_was_and_the_preview_is_right(
        self,
        ratings: list[list[list[int]]],
        protocol: dict[str, Any],
        who: int,
        adjudicated: bool,
        labelled: bool,
        preference: int | None,
    ) -> None:
        project = make_project("any", **protocol)
        people = [make_user(f"person-{number}") for number in range(5)]
        _rate(project, people, ratings, labelled=labelled, preference=preference)
        before = seen(project)
        first = project.tasks.filter(state=Task.State.COMPLETE).first()
        judging = make_user("judge")
        if adjudicated and first:
            scores = {response.pk: dict.fromkeys(ATTRIBUTES, 1) for response in first.responses.all()}
            adjudicate(first.pk, scores=scores, reason=Adjudication.Reason.SLIP, by=judging, now=NOW)
        in_force, foreseen = means_in_force(), exclusion_preview(project, people[who])
        excluded(project, people[who], people[0])
        assert foreseen == _what_changed(before, seen(project), in_force, means_in_force(), people[who])
        assert not Assignment.objects.filter(annotator=people[who], counts=True).exists()
        readmit(project, people[who], now=NOW + timedelta(hours=1))
        assert means_in_force() == in_force
        if first:
            withdraw(first.pk, by=judging, now=NOW)
        assert seen(project) == before


def _rate(
    project: Project, people: list[User], ratings: list[list[list[int]]], *, labelled: bool, preference: int | None
) -> None:
    for number, levels in enumerate(ratings):
        if labelled:
            imported(project, label_row(f"p{number}", "a"), label_row(f"p{number}", "b"))
        else:
            make_task(project)
        for person, chosen in zip(people, levels, strict=False):
            held = assignment.claim(project, person, now=NOW).assignment
            if held:
                annotation.submit(held.pk, submission(held.task, chosen, preference=preference), now=NOW)


def means_in_force() -> dict[tuple[int, int], Any]:
    rows = Label.objects.in_force().values_list("response__task", "response", "means")
    return {(task, response): means for task, response, means in rows}


def _what_changed(
    before: dict[str, Any], after: dict[str, Any], was: dict[Any, Any], now: dict[Any, Any], who: User
) -> ExclusionPreview:
    made = Assignment.objects.submitted().filter(annotator=who).count()
    states = [(a["state"], b["state"]) for a, b in zip(before["tasks"], after["tasks"], strict=True)]
    return ExclusionPreview(
        annotations=made,
        tasks=made,
        tasks_losing_labels=len({task for task, _ in was} - {task for task, _ in now}),
        tasks_reopened=states.count(("complete", "open")),
        labels_changed=sum(now[key] != means for key, means in was.items() if key in now),
    )
