"""A rater finds the guidelines silent: the task waits for a reviewer, and the rating goes on."""

import pytest
from django.test import Client

from annotator.infrastructure.refusals import Refusal
from annotator.models import GuidelineGap, Project, Task, User
from annotator.stages.annotation import Refused, note_gap, report, skip
from annotator.stages.assignment.counters import differences, recount
from annotator.stages.review import adjudicate, close_gaps
from tests.builders import ATTRIBUTES, NOW, claimed, make_gold, make_member, make_task, make_user, rate
from tests.conftest import Cast

pytestmark = pytest.mark.django_db


def reason(task: Task) -> str:
    task.refresh_from_db()
    return task.review_reason


def test_the_task_waits_at_once_and_while_others_rate(project: Project, cast: Cast) -> None:
    task = make_task(project)
    note_gap(claimed(project, cast.alice).pk, attribute="helpfulness", now=NOW)
    assert reason(task) == Task.Review.SILENT
    make_member(project, third := make_user("third"))
    for rater in (cast.alice, cast.bob, third):
        rate(project, rater)
        assert reason(task) == Task.Review.SILENT
    recount(project, now=NOW)
    assert reason(task) == Task.Review.SILENT
    assert list(differences(project, now=NOW)) == []


def test_another_reason_takes_precedence(project: Project, cast: Cast) -> None:
    task = make_task(project)
    note_gap(claimed(project, cast.alice).pk, now=NOW)
    held = claimed(project, cast.bob)
    report(held.pk, category="bias", now=NOW)
    assert reason(task) == Task.Review.QUARANTINE


def test_saying_it_again_changes_nothing(project: Project, cast: Cast) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    first = note_gap(held.pk, attribute="helpfulness", now=NOW)
    assert note_gap(held.pk, attribute="helpfulness", now=NOW) == first
    note_gap(held.pk, now=NOW)
    assert GuidelineGap.objects.count() == 2


def test_a_scale_that_the_project_has_not_is_refused(project: Project, cast: Cast) -> None:
    make_task(project)
    with pytest.raises(Refused, match="no scale “taste”"):
        note_gap(claimed(project, cast.alice).pk, attribute="taste", now=NOW)


def test_a_task_that_was_let_go_is_refused(project: Project, cast: Cast) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    skip(held.pk, reason="other", now=NOW)
    with pytest.raises(Refused, match="no longer have"):
        note_gap(held.pk, now=NOW)


def test_a_gold_task_stays_out_of_the_queue(project: Project, cast: Cast) -> None:
    Project.objects.update(gold_every=1)
    project.refresh_from_db()
    make_task(project)
    gold = make_gold(project)
    note_gap(claimed(project, cast.alice).pk, now=NOW)
    assert reason(gold) == ""


def test_a_reviewer_says_that_they_answer_it(project: Project, cast: Cast, rita: User, client: Client) -> None:
    task = make_task(project)
    note_gap(claimed(project, cast.alice).pk, attribute="helpfulness", now=NOW)
    client.force_login(rita)
    page = client.get(f"/projects/talk/review/{task.public_id}/").content.decode()
    assert "Helpfulness (1)" in page
    newest = GuidelineGap.objects.get()
    client.post(f"/projects/talk/review/{task.public_id}/answered/", {"seen": newest.pk - 1})
    assert reason(task) == Task.Review.SILENT, "it was noted after the page was shown"
    client.post(f"/projects/talk/review/{task.public_id}/answered/", {"seen": newest.pk})
    assert reason(task) == ""
    assert close_gaps(task.pk, by=rita, seen=newest.pk, now=NOW) == 0


def test_what_was_answered_can_be_asked_again(project: Project, cast: Cast, rita: User) -> None:
    task = make_task(project)
    held = claimed(project, cast.alice)
    gap = note_gap(held.pk, attribute="helpfulness", now=NOW)
    close_gaps(task.pk, by=rita, seen=gap.pk, now=NOW)
    note_gap(held.pk, attribute="helpfulness", now=NOW)
    assert reason(task) == Task.Review.SILENT


def test_who_holds_the_task_cannot_answer(project: Project, cast: Cast, rita: User) -> None:
    task = make_task(project)
    gap = note_gap(claimed(project, rita).pk, now=NOW)
    with pytest.raises(Refusal):
        close_gaps(task.pk, by=rita, seen=gap.pk, now=NOW)
    assert reason(task) == Task.Review.SILENT


def test_settling_it_again_with_the_same_scores_answers_it(project: Project, cast: Cast, rita: User) -> None:
    Project.objects.update(base_annotators=1, max_annotators=1)
    project.refresh_from_db()
    task = make_task(project)
    rated = rate(project, cast.alice).annotation
    scores = {response.pk: dict.fromkeys(ATTRIBUTES, 2) for response in task.responses.all()}
    for _ in range(2):
        adjudicate(task.pk, scores=scores, reason="slip", by=rita, now=NOW)
        assert reason(task) == ""
        note_gap(rated.assignment_id, now=NOW)
        assert reason(task) == Task.Review.SILENT


def test_settling_the_task_answers_it(project: Project, cast: Cast, rita: User) -> None:
    Project.objects.update(base_annotators=1, max_annotators=1)
    project.refresh_from_db()
    task = make_task(project)
    note_gap(claimed(project, cast.alice).pk, now=NOW)
    rate(project, cast.alice)
    assert reason(task) == Task.Review.SILENT
    scores = {response.pk: dict.fromkeys(ATTRIBUTES, 2) for response in task.responses.all()}
    adjudicate(task.pk, scores=scores, reason="guideline_gap", by=rita, now=NOW)
    assert reason(task) == ""


def test_the_page_says_that_it_is_noted_or_why_not(project: Project, cast: Cast, client: Client) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    client.force_login(cast.alice)
    answer = client.post(f"/assignments/{held.pk}/silent/", {"attribute": "helpfulness"})
    assert (answer.status_code, answer.content.decode().partition(".")[0]) == (200, "Noted")
    assert client.post(f"/assignments/{held.pk}/silent/", {"attribute": "x"}).status_code == 409
