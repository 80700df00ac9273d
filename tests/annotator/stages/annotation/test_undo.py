"""A skip taken back within ten seconds."""

from datetime import timedelta

import pytest
from django.test import Client

from annotator.models import Assignment, Draft, Project, Report, Skip, Task
from annotator.stages.annotation import Refused, decide_quarantine, report, save_draft, skip, undo_report, undo_skip
from tests.builders import NOW, claimed, make_gold, make_task, rate
from tests.conftest import Cast

pytestmark = pytest.mark.django_db
SOON = NOW + timedelta(seconds=9)


def test_the_task_is_the_annotators_again_with_its_draft(project: Project, cast: Cast) -> None:
    make_task(project, "one")
    make_task(project, "two")
    held = claimed(project, cast.alice)
    save_draft(held.pk, {"note": "half"}, now=NOW)
    skip(held.pk, reason="other", now=NOW)
    assert claimed(project, cast.alice).task != held.task
    undo_skip(held.pk, now=SOON)
    assert claimed(project, cast.alice, now=SOON) == held
    assert Draft.objects.get(assignment=held).form == {"note": "half"}
    assert not Skip.objects.exists()


def test_a_quarantine_of_ones_own_is_lifted(project: Project, cast: Cast) -> None:
    task = make_task(project)
    held = claimed(project, cast.alice)
    skip(held.pk, reason="pii", now=NOW)
    undo_skip(held.pk, now=SOON)
    task.refresh_from_db()
    assert (task.state, task.open_slots) == (Task.State.OPEN, 2)


def test_a_quarantine_of_others_stays(project: Project, cast: Cast) -> None:
    task = make_task(project)
    mine, theirs = claimed(project, cast.alice), claimed(project, cast.bob)
    skip(mine.pk, reason="pii", now=NOW)
    report(theirs.pk, category="illegal", now=NOW)
    with pytest.raises(Refused, match="set aside"):
        undo_skip(mine.pk, now=SOON)
    task.refresh_from_db()
    assert task.state == Task.State.QUARANTINED
    assert Skip.objects.exists()


def test_too_late_is_too_late(project: Project, cast: Cast) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    skip(held.pk, reason="other", now=NOW)
    with pytest.raises(Refused, match="too late"):
        undo_skip(held.pk, now=NOW + timedelta(seconds=16))


def test_a_slot_that_others_took_is_not_taken_back(project: Project, cast: Cast) -> None:
    Project.objects.update(base_annotators=1, max_annotators=1)
    project.refresh_from_db()
    make_task(project)
    held = claimed(project, cast.alice)
    skip(held.pk, reason="other", now=NOW)
    rate(project, cast.bob)
    with pytest.raises(Refused, match="others now have this task"):
        undo_skip(held.pk, now=SOON)


def test_twice_is_refused(project: Project, cast: Cast) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    skip(held.pk, reason="other", now=NOW)
    undo_skip(held.pk, now=SOON)
    with pytest.raises(Refused, match="nothing to undo"):
        undo_skip(held.pk, now=SOON)


def test_a_gold_task_comes_back_too(project: Project, cast: Cast) -> None:
    Project.objects.update(gold_every=1)
    project.refresh_from_db()
    make_task(project)
    task = make_gold(project)
    held = claimed(project, cast.alice)
    skip(held.pk, reason="pii", now=NOW)
    undo_skip(held.pk, now=SOON)
    task.refresh_from_db()
    assert (task.state, task.slots_wanted - task.open_slots) == (Task.State.GOLD, 1)


def test_the_page_offers_it_and_does_it(project: Project, cast: Cast, client: Client) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    client.force_login(cast.alice)
    answer = client.post(f"/assignments/{held.pk}/skip/", {"reason": "other"}, follow=True)
    assert b"Undo the skip" in answer.content
    answer = client.post(f"/assignments/{held.pk}/undo-skip/", follow=True)
    assert b"The skip is undone." in answer.content
    assert Assignment.objects.get().state == Assignment.State.LEASED


@pytest.mark.parametrize("skipped", ["", "x", "0", "٣", "9" * 30])
def test_a_stranger_number_in_the_address_offers_nothing(
    project: Project, cast: Cast, client: Client, skipped: str
) -> None:
    client.force_login(cast.alice)
    answer = client.get("/projects/talk/annotate/", {"skipped": skipped})
    assert answer.status_code == 200
    assert b"Undo the skip" not in answer.content


def test_a_report_taken_back_gives_the_task_back_with_its_draft(project: Project, cast: Cast) -> None:
    make_task(project, "one")
    make_task(project, "two")
    held = claimed(project, cast.alice)
    save_draft(held.pk, {"note": "half"}, now=NOW)
    report(held.pk, category="bias", now=NOW)
    undo_report(held.pk, now=SOON)
    assert not Report.objects.exists()
    assert claimed(project, cast.alice, now=SOON) == held
    assert Draft.objects.get(assignment=held).form == {"note": "half"}
    held.task.refresh_from_db()
    assert held.task.state == Task.State.OPEN


def test_a_report_of_a_rated_task_taken_back_leaves_the_rating(project: Project, cast: Cast) -> None:
    task = make_task(project)
    done = rate(project, cast.alice).annotation
    report(done.assignment_id, category="bias", now=NOW)
    undo_report(done.assignment_id, now=SOON)
    task.refresh_from_db()
    assert (task.state, Assignment.objects.get().state) == (Task.State.OPEN, Assignment.State.SUBMITTED)


def test_a_report_is_not_taken_back_too_late_or_after_a_decision(project: Project, cast: Cast) -> None:
    task = make_task(project)
    held = claimed(project, cast.alice)
    report(held.pk, category="bias", now=NOW)
    with pytest.raises(Refused, match="too late"):
        undo_report(held.pk, now=NOW + timedelta(seconds=16))
    decide_quarantine(task.pk, safe_to_use=False, now=NOW)
    with pytest.raises(Refused, match="nothing to undo"):
        undo_report(held.pk, now=SOON)
    assert Report.objects.get().decision == Report.Decision.UPHELD


def test_a_report_taken_back_leaves_that_of_others(project: Project, cast: Cast) -> None:
    task = make_task(project)
    mine, theirs = claimed(project, cast.alice), claimed(project, cast.bob)
    report(mine.pk, category="bias", now=NOW)
    report(theirs.pk, category="illegal", now=NOW)
    with pytest.raises(Refused, match="set it aside"):
        undo_report(mine.pk, now=SOON)
    task.refresh_from_db()
    assert (task.state, Report.objects.count()) == (Task.State.QUARANTINED, 2)


def test_the_page_after_a_report_offers_to_undo_it(project: Project, cast: Cast, client: Client) -> None:
    make_task(project, "one")
    make_task(project, "two")
    client.force_login(cast.alice)
    client.get("/projects/talk/annotate/")
    held = Assignment.objects.get()
    page = client.post(f"/assignments/{held.pk}/report/", {"category": "bias"}, follow=True).content.decode()
    assert f'action="/assignments/{held.pk}/undo-report/"' in page
    again = client.post(f"/assignments/{held.pk}/undo-report/", follow=True).content.decode()
    assert "The report is undone." in again
    assert not Report.objects.exists()


def test_what_one_has_rated_is_reported_from_its_own_page(project: Project, cast: Cast, alice_page: Client) -> None:
    task = make_task(project)
    mine = rate(project, cast.alice).annotation.assignment
    assert 'id="report"' in alice_page.get(f"/assignments/{mine.pk}/revise/").content.decode()
    refused = alice_page.post(f"/assignments/{mine.pk}/report/", {"category": "", "note": "look"})
    assert (refused.status_code, refused.templates[0].name) == (422, "revise.html")
    answer = alice_page.post(f"/assignments/{mine.pk}/report/", {"category": "illegal"}, follow=True)
    assert "Reported." in answer.content.decode()
    task.refresh_from_db()
    assert (task.state, Report.objects.get().assignment) == (Task.State.QUARANTINED, mine)
    alice_page.post(f"/assignments/{mine.pk}/undo-report/")
    task.refresh_from_db()
    assert (task.state, mine.annotations.current().count()) == (Task.State.OPEN, 1)
