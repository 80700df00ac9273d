"""What an annotator does with a task."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test import Client

from annotator.managing.settings_check import InvalidProject, check
from annotator.models import Annotation, Assignment, Consensus, Draft, Label, Project, Report, Task
from annotator.reading import assignment_rows
from annotator.stages import annotation, assignment
from annotator.stages.annotation import IncompleteRating, Refused, Submission, submissions
from tests.builders import NOW, claimed, make_member, make_project, make_task, rate, submission
from tests.conftest import Cast

LATER = NOW + timedelta(hours=1)


def test_three_annotators_complete_a_task(project: Project, cast: Cast) -> None:
    task = make_task(project)
    for user, level in zip(cast.annotators, (3, 3, 4), strict=True):
        rate(project, user, level)
    task.refresh_from_db()
    assert (task.state, task.open_slots) == (Task.State.COMPLETE, 0)
    assert [label.scores["helpfulness"] for label in Label.objects.in_force()] == [3, 3]


def test_a_wide_spread_asks_for_two_more(project: Project, cast: Cast) -> None:
    task = make_task(project)
    for user, level in zip(cast.annotators, (0, 3, 4), strict=True):
        rate(project, user, [level, 2])
    task.refresh_from_db()
    assert (task.state, task.slots_wanted, task.open_slots) == (Task.State.OPEN, 5, 2)
    assert not Consensus.objects.exists()


def test_the_same_submission_twice_is_one_annotation(project: Project, cast: Cast) -> None:
    task = make_task(project)
    held = claimed(project, cast.alice)
    first = annotation.submit(held.pk, submission(task), now=NOW)
    again = annotation.submit(held.pk, submission(task), now=LATER)
    assert (first.created, again.created) == (True, False)
    assert Annotation.objects.count() == 1


def test_a_submission_is_stored_together_with_the_next_claim(project: Project, cast: Cast) -> None:
    first, second = make_task(project), make_task(project)
    held = claimed(project, cast.alice)
    done, following = annotation.submit_and_claim(cast.alice, held.pk, submission(held.task), now=NOW)
    assert done.created
    assert following.assignment
    assert {held.task, following.assignment.task} == {first, second}


def test_a_submission_is_not_stored_without_the_next_claim(
    project: Project, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    monkeypatch.setattr(submissions, "next_task", failing)
    with pytest.raises(ZeroDivisionError):
        annotation.submit_and_claim(cast.alice, held.pk, submission(held.task), now=NOW)
    assert not Annotation.objects.exists()


def failing(*_args: object, **_kwargs: object) -> None:
    raise ZeroDivisionError


@pytest.mark.django_db(transaction=True)
def test_who_submits_to_claim_is_alone_with_their_claims(project: Project, cast: Cast) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    with transaction.atomic(), connection.cursor() as cursor:
        assignment_rows.locked_to_claim(cast.alice, held.pk)
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()")
        assert cursor.fetchone() == (1,)


def test_a_changed_rating_is_a_revision(project: Project, cast: Cast) -> None:
    task = make_task(project)
    held = claimed(project, cast.alice)
    annotation.submit(held.pk, submission(task, 3), now=NOW)
    second = annotation.submit(held.pk, submission(task, 4), now=LATER)
    assert (second.created, second.annotation.revision) == (False, 2)
    assert Annotation.objects.current().get() == second.annotation


def test_a_complete_task_is_closed_for_edits(project: Project, cast: Cast) -> None:
    task = make_task(project)
    done = [rate(project, user) for user in cast.annotators]
    with pytest.raises(Refused, match="complete"):
        annotation.submit(done[0].annotation.assignment_id, submission(task, 1), now=LATER)


def test_a_late_submission_takes_a_free_slot(project: Project, cast: Cast) -> None:
    task = make_task(project)
    held = claimed(project, cast.alice)
    assignment.expire_all(now=LATER)
    annotation.submit(held.pk, submission(task), now=LATER)
    held.refresh_from_db()
    assert (held.state, held.slot) == (Assignment.State.SUBMITTED, 1)


def test_a_late_submission_without_room_is_kept_as_an_extra(cast: Cast) -> None:
    narrow = make_project("narrow", base_annotators=1, max_annotators=1)
    task = make_task(narrow)
    held = claimed(narrow, cast.alice)
    rate(narrow, cast.bob, now=LATER)
    annotation.submit(held.pk, submission(task), now=LATER)
    held.refresh_from_db()
    task.refresh_from_db()
    assert (held.state, held.slot, held.counts, held.extra) == (Assignment.State.SUBMITTED, None, False, True)
    assert (task.state, task.open_slots) == (Task.State.COMPLETE, 0)
    assert Consensus.objects.get().annotators == 1


def test_it_refuses_a_rating_with_a_missing_attribute(project: Project, cast: Cast) -> None:
    task = make_task(project)
    held = claimed(project, cast.alice)
    whole = submission(task)
    first = next(iter(whole.ratings.values()))
    del first.scores["helpfulness"]  # type: ignore[attr-defined]
    with pytest.raises(IncompleteRating, match="Helpfulness has no answer"):
        annotation.submit(held.pk, whole, now=NOW)
    assert not Annotation.objects.exists()


def test_it_refuses_a_rating_of_half_the_responses(project: Project, cast: Cast) -> None:
    task = make_task(project)
    held = claimed(project, cast.alice)
    half = dict([next(iter(submission(task).ratings.items()))])
    with pytest.raises(IncompleteRating, match="response 2 is not rated"):
        annotation.submit(held.pk, Submission(half), now=NOW)


@pytest.mark.parametrize("score", [5, -1, True, "3", 2.0, None])
def test_it_refuses_scores_off_the_scale(project: Project, cast: Cast, score: object) -> None:
    task = make_task(project)
    held = claimed(project, cast.alice)
    with pytest.raises(IncompleteRating, match="whole number from 0 to 4"):
        annotation.submit(held.pk, submission(task, score), now=NOW)  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [-1, 1e39, float("inf"), float("nan")])
def test_seconds_that_no_clock_has_measured_are_refused(project: Project, cast: Cast, seconds: float) -> None:
    task = make_task(project)
    held = claimed(project, cast.alice)
    with pytest.raises(IncompleteRating, match="active seconds must be between 0 and 604800"):
        annotation.submit(held.pk, submission(task, active_seconds=seconds), now=NOW)


def test_it_refuses_responses_of_another_task(project: Project, cast: Cast) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    with pytest.raises(IncompleteRating, match="does not belong to this task"):
        annotation.submit(held.pk, submission(make_task(project)), now=NOW)


def test_the_preference_is_asked_for_where_the_project_says_so(cast: Cast) -> None:
    asking = make_project("asking", ask_preference=True)
    task = make_task(asking)
    held = claimed(asking, cast.alice)
    with pytest.raises(IncompleteRating, match="Preference has no answer"):
        annotation.submit(held.pk, submission(task), now=NOW)


def test_a_tie_is_an_answer_where_the_project_allows_it(cast: Cast) -> None:
    asking = make_project("asking", ask_preference=True)
    task = make_task(asking)
    held = claimed(asking, cast.alice)
    with pytest.raises(IncompleteRating, match="must not be 0: this project allows no ties"):
        annotation.submit(held.pk, submission(task, preference=0), now=NOW)
    Project.objects.filter(pk=asking.pk).update(allow_ties=True)
    assert annotation.submit(held.pk, submission(task, preference=0), now=NOW).annotation.preference == 0
    asking.refresh_from_db()
    with pytest.raises(InvalidProject, match="so this stays on"):
        check(asking, {"allow_ties": False})


@pytest.mark.parametrize("allowed", [False, True])
def test_the_page_offers_a_tie_where_the_project_allows_it(cast: Cast, client: Client, allowed: bool) -> None:
    asking = make_project("asking", ask_preference=True, allow_ties=allowed)
    make_member(asking, cast.alice)
    make_task(asking)
    client.force_login(cast.alice)
    page = client.get("/projects/asking/annotate/").content.decode()
    assert "A is slightly better" in page
    assert ("Both are equally good" in page) == allowed


def test_the_preference_is_stored_by_position(cast: Cast) -> None:
    """-2 says that the response shown first is better, whichever that was."""
    asking = make_project("asking", ask_preference=True)
    task = make_task(asking)
    for user in cast.annotators:
        held = claimed(asking, user)
        done = annotation.submit(held.pk, submission(task, preference=-2), now=NOW)
        assert done.annotation.preference == (-2 if held.response_order == [0, 1] else 2)


def test_a_skip_frees_the_slot_for_others(project: Project, cast: Cast) -> None:
    task = make_task(project)
    held = claimed(project, cast.alice)
    annotation.skip(held.pk, reason="needs_coding", now=NOW)
    task.refresh_from_db()
    assert (task.state, task.open_slots) == (Task.State.OPEN, 3)
    assert claimed(project, cast.bob).task == task


def test_pii_quarantines_the_task_for_everyone(project: Project, cast: Cast) -> None:
    task = make_task(project)
    annotation.skip(claimed(project, cast.alice).pk, reason="pii", now=NOW)
    task.refresh_from_db()
    assert task.state == Task.State.QUARANTINED
    assert assignment.claim(project, cast.bob, now=NOW).assignment is None


def test_a_skipped_task_cannot_be_rated(project: Project, cast: Cast) -> None:
    task = make_task(project)
    held = claimed(project, cast.alice)
    annotation.skip(held.pk, reason="other", now=NOW)
    with pytest.raises(Refused, match="skipped"):
        annotation.submit(held.pk, submission(task), now=NOW)


def test_skipping_twice_is_one_skip(project: Project, cast: Cast) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    assert annotation.skip(held.pk, reason="other", now=NOW) == annotation.skip(held.pk, reason="other", now=NOW)


def test_a_rated_task_cannot_be_skipped(project: Project, cast: Cast) -> None:
    make_task(project)
    done = rate(project, cast.alice)
    with pytest.raises(Refused, match="already rated this task"):
        annotation.skip(done.annotation.assignment_id, reason="other", now=NOW)


def test_a_report_quarantines_and_keeps_finished_work(project: Project, cast: Cast) -> None:
    task = make_task(project)
    done = rate(project, cast.alice)
    annotation.report(done.annotation.assignment_id, category="harmful", note="no", now=NOW)
    task.refresh_from_db()
    assert task.state == Task.State.QUARANTINED
    assert Annotation.objects.current().count() == 1


def test_a_false_alarm_returns_the_task_to_the_queue(project: Project, cast: Cast) -> None:
    task = make_task(project)
    annotation.report(claimed(project, cast.alice).pk, category="other", now=NOW)
    annotation.decide_quarantine(task.pk, safe_to_use=True, now=LATER)
    assert claimed(project, cast.bob).task == task
    assert Report.objects.get().decision == Report.Decision.DISMISSED


def test_a_justified_alarm_retires_the_task(project: Project, cast: Cast) -> None:
    task = make_task(project)
    annotation.report(claimed(project, cast.alice).pk, category="illegal", now=NOW)
    decided = annotation.decide_quarantine(task.pk, safe_to_use=False, now=LATER)
    assert decided.state == Task.State.RETIRED
    with pytest.raises(Refused, match="no longer set aside"):
        annotation.decide_quarantine(task.pk, safe_to_use=True, now=LATER)


def test_quarantined_tasks_yield_no_labels(project: Project, cast: Cast) -> None:
    make_task(project)
    done = [rate(project, user) for user in cast.annotators]
    assert Label.objects.in_force().count() == 2
    annotation.report(done[0].annotation.assignment_id, category="bias", now=LATER)
    assert not Label.objects.in_force().exists()


def test_a_draft_is_kept_until_the_submission(project: Project, cast: Cast) -> None:
    task = make_task(project)
    held = claimed(project, cast.alice)
    annotation.save_draft(held.pk, {"helpfulness": 3}, now=NOW)
    assert Draft.objects.get().form == {"helpfulness": 3}
    annotation.submit(held.pk, submission(task), now=NOW)
    assert not Draft.objects.exists()


def test_an_old_tab_changes_no_choice_but_its_own(project: Project, cast: Cast) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    annotation.save_draft(held.pk, {"a": "1", "checks-a": ["x"], "note": "long"}, changed=["a"], now=NOW)
    annotation.save_draft(held.pk, {"b": "2", "note": ""}, changed=["b", "checks-a"], now=NOW)
    assert Draft.objects.get().form == {"a": "1", "b": "2", "note": "long"}


def test_fewer_wanted_annotators_complete_what_is_done(project: Project, cast: Cast) -> None:
    task = make_task(project)
    rate(project, cast.alice)
    Project.objects.update(base_annotators=1, max_annotators=1)
    assert assignment.recount(Project.objects.get(), now=LATER) == 1
    task.refresh_from_db()
    assert (task.state, task.slots_wanted, task.open_slots) == (Task.State.COMPLETE, 1, 0)
    assert Label.objects.in_force().count() == 2


def test_more_wanted_annotators_reopen_what_was_done(project: Project, cast: Cast) -> None:
    task = make_task(project)
    for user in cast.annotators:
        rate(project, user)
    Project.objects.update(base_annotators=4)
    assignment.recount(Project.objects.get(), now=LATER)
    task.refresh_from_db()
    assert (task.state, task.open_slots) == (Task.State.OPEN, 1)
    assert not Label.objects.exists()


def test_a_lease_beyond_what_is_wanted_now_may_still_be_finished(project: Project, cast: Cast) -> None:
    task = make_task(project)
    rate(project, cast.alice)
    held = claimed(project, cast.bob)
    Project.objects.update(base_annotators=1, max_annotators=1)
    assignment.recount(Project.objects.get(), now=LATER)
    annotation.submit(held.pk, submission(task), now=LATER)
    assert Annotation.objects.current().count() == 2


def test_a_draft_that_arrives_after_its_submission_is_not_kept(project: Project, cast: Cast) -> None:
    make_task(project)
    held = rate(project, cast.alice).annotation.assignment
    later = NOW + timedelta(seconds=1)
    assert annotation.save_draft(held.pk, {"late": "1"}, now=later) == NOW
    assert not Draft.objects.exists()
    assert annotation.save_draft(held.pk, {"change": "1"}, revision=1, now=later) == later
    assert Draft.objects.exists()
