"""Who rates what next."""

from contextlib import closing
from datetime import timedelta
from threading import Timer

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotator.managing.archive import archive
from annotator.models import Assignment, Draft, Exclusion, PauseReason, Project, Tally, Task, User
from annotator.reading.search import word_index
from annotator.stages import annotation, assignment
from annotator.stages.annotation import drafts
from annotator.stages.assignment import claim, task_choice
from annotator.stages.assignment.claims import plans
from annotator.stages.gold import gold_tasks
from tests.builders import NOW, claimed, make_member, make_project, make_task, make_user, rate, submission
from tests.conftest import Cast
from tests.refusals import refusal

LATER = NOW + timedelta(hours=1)


def test_claiming_twice_gives_the_same_task(project: Project, cast: Cast) -> None:
    make_task(project)
    make_task(project)
    assert claimed(project, cast.alice).pk == claimed(project, cast.alice).pk


def test_a_claim_takes_one_slot(project: Project, cast: Cast) -> None:
    task = make_task(project)
    claimed(project, cast.alice)
    task.refresh_from_db()
    assert (task.open_slots, task.slots_wanted, task.begun) == (2, 3, True)


def test_begun_tasks_come_first(project: Project, cast: Cast) -> None:
    first, urgent = make_task(project), make_task(project, priority=5)
    held = claimed(project, cast.alice)
    assert held.task == urgent
    annotation.skip(held.pk, reason="other", now=NOW)
    assert claimed(project, cast.alice).task == first
    assert claimed(project, cast.bob).task == first


def test_priority_comes_before_age(project: Project, cast: Cast) -> None:
    make_task(project)
    urgent = make_task(project, priority=5)
    assert claimed(project, cast.alice).task == urgent


def test_once_a_task_has_its_annotators_the_next_priority_follows(project: Project, cast: Cast) -> None:
    plain, later, urgent = (make_task(project, priority=priority) for priority in (1, 0, 2))
    order = [claimed(project, annotator).task for annotator in cast.annotators]
    assert order == [urgent, urgent, urgent]
    assert claimed(project, make_member(project, make_user("frank")).user).task == plain != later


@pytest.mark.parametrize("languages", [[], ["de"]])
def test_tasks_searched_for_personal_information_come_first(project: Project, cast: Cast, languages: list[str]) -> None:
    cast.alice.memberships.update(languages=languages)
    waiting, scanned, urgent = (make_task(project, priority=priority, language="de") for priority in (0, 0, 1))
    Task.objects.filter(pk=scanned.pk).update(pii_scanned_at=NOW, shuffle=2)
    Task.objects.filter(pk=waiting.pk).update(shuffle=1)
    order = []
    for _ in range(3):
        order.append(claimed(project, cast.alice).task)
        assert order[-1].assignments.update(state="skipped", slot=None) == 1
    assert order == [urgent, scanned, waiting]


def test_nobody_gets_a_task_twice(project: Project, cast: Cast) -> None:
    make_task(project)
    rate(project, cast.alice)
    assert claim(project, cast.alice, now=NOW).reason == "you_did_all"


def test_a_full_task_is_handed_to_nobody_else(cast: Cast) -> None:
    narrow = make_project("narrow", base_annotators=1, max_annotators=1)
    make_task(narrow)
    claimed(narrow, cast.alice)
    assert claim(narrow, cast.bob, now=NOW).reason == "leased_by_others"


def test_an_expired_lease_goes_to_the_next(cast: Cast) -> None:
    narrow = make_project("narrow", base_annotators=1, max_annotators=1)
    task = make_task(narrow)
    lost = claimed(narrow, cast.alice)
    assert claimed(narrow, cast.bob, now=LATER).task == task
    lost.refresh_from_db()
    assert (lost.state, lost.slot) == (Assignment.State.EXPIRED, None)


def test_an_expired_lease_that_nobody_took_is_still_mine(project: Project, cast: Cast) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    assert claimed(project, cast.alice, now=LATER).pk == held.pk


def test_a_half_done_task_is_the_next_one_after_its_lease_was_freed(project: Project, cast: Cast) -> None:
    half_done, _ = make_task(project), make_task(project, priority=5)
    Task.objects.filter(pk=half_done.pk).update(priority=9)
    held = claimed(project, cast.alice)
    annotation.save_draft(held.pk, {"helpfulness": "3"}, now=NOW)
    Task.objects.filter(pk=half_done.pk).update(priority=0)
    assignment.expire_all(now=LATER)
    assert claimed(project, cast.bob, now=LATER).task != half_done
    assert claimed(project, cast.alice, now=LATER).pk == held.pk


def test_a_half_done_task_that_has_no_room_gives_way(cast: Cast) -> None:
    narrow = make_project("narrow", base_annotators=1, max_annotators=1)
    make_task(narrow)
    annotation.save_draft(claimed(narrow, cast.alice).pk, {"helpfulness": "3"}, now=NOW)
    claimed(narrow, cast.bob, now=LATER)
    make_task(narrow, "another")
    assert claimed(narrow, cast.alice, now=LATER).task.external_id == "another"


@pytest.mark.django_db(transaction=True)
def test_a_task_is_handed_out_while_its_words_are_taken(project: Project, cast: Cast) -> None:
    task = make_task(project)
    with closing(connection.copy()) as other, other.cursor() as taker:
        taker.execute("BEGIN")
        taker.execute(word_index._TAKE.sql, {"most": 1})
        assert taker.fetchall() == [(task.pk,)]
        assert claim(project, cast.alice, now=NOW).assignment == Assignment.objects.get(task=task)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("seconds", [0.1, 5])
@pytest.mark.parametrize("submits", [False, True])
def test_a_task_that_others_have_locked_is_looked_for_again(
    project: Project, cast: Cast, seconds: float, submits: bool
) -> None:
    rated = make_task(project) if submits else None
    held = claimed(project, cast.alice) if submits else None
    task = make_task(project)
    with closing(connection.copy()) as other, other.cursor() as cursor:
        other.inc_thread_sharing()
        cursor.execute(f"BEGIN; SELECT FROM annotator_task WHERE id = {task.pk} FOR UPDATE")
        (letting_go := Timer(seconds, other.close)).start()
        if rated and held:
            _, found = annotation.submit_and_claim(cast.alice, held.pk, submission(rated), now=NOW)
        else:
            found = claim(project, cast.alice, now=NOW)
        letting_go.cancel()
    assert (found.assignment and found.assignment.task, found.reason) == (
        (task, "") if seconds < 1 else (None, "leased_by_others")
    )


def test_an_empty_project_says_so(project: Project, cast: Cast) -> None:
    assert claim(project, cast.alice, now=NOW).reason == "empty"


def test_a_finished_project_says_so(project: Project, cast: Cast) -> None:
    make_task(project)
    for user in cast.annotators:
        rate(project, user)
    assert claim(project, make_user("late"), now=NOW).reason == "all_done"


def test_a_heartbeat_renews_the_lease(project: Project, cast: Cast) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    renewed = assignment.heartbeat(held.pk, now=NOW + timedelta(minutes=20))
    assert renewed.lease_expires_at == NOW + timedelta(minutes=50)


def test_a_submitted_task_has_no_lease_to_renew(project: Project, cast: Cast) -> None:
    make_task(project)
    done = rate(project, cast.alice)
    with refusal("not_leased", match="Open the project to get your next task"):
        assignment.heartbeat(done.annotation.assignment_id, now=NOW)


def test_a_released_task_comes_back_last(project: Project, cast: Cast) -> None:
    make_task(project), make_task(project)
    first = claimed(project, cast.alice)
    assignment.release(first.pk)
    assert claimed(project, cast.alice).task != first.task
    rate(project, cast.alice)
    assert claimed(project, cast.alice).task == first.task


def test_releasing_twice_does_no_harm(project: Project, cast: Cast) -> None:
    task = make_task(project)
    held = claimed(project, cast.alice)
    assignment.release(held.pk)
    assignment.release(held.pk)
    task.refresh_from_db()
    assert task.open_slots == 3


def test_the_order_of_responses_is_seeded_and_stored(project: Project, cast: Cast) -> None:
    task = make_task(project, responses=4)
    held = claimed(project, cast.alice)
    assert sorted(held.response_order) == [0, 1, 2, 3]
    assert held.response_order == assignment.response_order(task, cast.alice)


def test_two_annotators_may_see_different_orders(project: Project, cast: Cast) -> None:
    task = make_task(project, responses=6)
    orders = {tuple(assignment.response_order(task, user)) for user in (*cast.annotators, cast.carol)}
    assert len(orders) > 1


def test_a_claim_costs_ten_queries(project: Project, cast: Cast) -> None:
    make_task(project)
    with CaptureQueriesContext(connection) as queries:
        claimed(project, cast.alice)
    # Two of them begin and end the transaction.
    assert len(queries) <= 10


def test_expired_leases_are_freed_in_the_background(project: Project, cast: Cast) -> None:
    task = make_task(project)
    claimed(project, cast.alice)
    assert assignment.expire_all(now=LATER) == 1
    task.refresh_from_db()
    assert task.open_slots == 3


# What keeps somebody from tasks ----------------------------------------------------------------------------


def test_a_paused_project_hands_out_nothing(project: Project, cast: Cast) -> None:
    make_task(project)
    Project.objects.update(paused=True)
    assert claim(Project.objects.get(), cast.alice, now=NOW).reason == "project_paused"


@pytest.mark.parametrize("how", ["paused", "project paused", "archived"])
def test_what_somebody_holds_is_theirs_through_a_pause(project: Project, cast: Cast, how: str) -> None:
    make_task(project), make_task(project)
    held = claimed(project, cast.alice)
    paused(project, cast.alice, how)
    assert claim(Project.objects.get(), cast.alice, now=NOW).assignment == held
    rate(Project.objects.get(), cast.alice)
    assert claim(Project.objects.get(), cast.alice, now=NOW).reason in {"paused", "project_paused", "project_archived"}


def paused(project: Project, user: User, how: str) -> None:
    if how == "paused":
        gold_tasks.pause(user.memberships.get(project=project), reason=PauseReason.MANAGER, now=NOW)
    elif how == "archived":
        archive(project, now=NOW)
    else:
        Project.objects.filter(pk=project.pk).update(paused=True)


@pytest.mark.parametrize("how", ["paused", "project paused", "archived"])
def test_the_page_shows_it_again_after_a_reload(project: Project, cast: Cast, client: Client, how: str) -> None:
    make_task(project, prompt="Is it still here?")
    claimed(project, cast.alice)
    paused(project, cast.alice, how)
    client.force_login(cast.alice)
    assert b"Is it still here?" in client.get("/projects/talk/annotate/").content


def test_a_test_asked_for_meanwhile_waits_for_what_is_held(project: Project, cast: Cast, client: Client) -> None:
    make_task(project, prompt="Is it still here?")
    claimed(project, cast.alice)
    Project.objects.update(qualification_required=True)
    client.force_login(cast.alice)
    assert b"Is it still here?" in client.get("/projects/talk/annotate/").content


def test_a_quota_ends_the_work_of_one(project: Project, cast: Cast) -> None:
    Project.objects.update(quota=1)
    project.refresh_from_db()
    make_task(project), make_task(project)
    rate(project, cast.alice)
    assert claim(project, cast.alice, now=NOW).reason == "quota"
    assert claim(project, cast.bob, now=NOW).assignment


def test_a_members_own_quota_goes_before_the_projects(project: Project, cast: Cast) -> None:
    Project.objects.update(quota=1)
    project.refresh_from_db()
    cast.alice.memberships.update(quota=0)
    make_task(project), make_task(project)
    rate(project, cast.alice)
    assert claim(project, cast.alice, now=NOW).assignment


def test_tasks_go_to_those_who_speak_their_language(project: Project, cast: Cast) -> None:
    german, open_to_all = make_task(project, lang="DE"), make_task(project)
    cast.alice.memberships.update(languages=["en"])
    cast.bob.memberships.update(languages=["de"])
    assert claimed(project, cast.alice).task == open_to_all
    rated = {rate(project, cast.bob).annotation.assignment.task for _ in range(2)}
    assert rated == {german, open_to_all}


def test_tasks_in_other_languages_are_given_as_the_reason(project: Project, cast: Cast) -> None:
    make_task(project, lang="de")
    cast.alice.memberships.update(languages=["en"])
    assert claim(project, cast.alice, now=NOW).reason == "other_languages"


def test_an_excluded_annotator_gets_nothing(project: Project, cast: Cast) -> None:
    make_task(project)
    Exclusion.objects.create(project=project, annotator=cast.alice, reason="bots", by=cast.carol, made_at=NOW)
    assert claim(project, cast.alice, now=NOW).reason == "excluded"


# The line of begun tasks -----------------------------------------------------------------------------------


def test_what_stands_behind_ones_place_in_line_is_found_in_the_end(project: Project, cast: Cast) -> None:
    task = make_task(project)
    claimed(project, cast.bob)
    Tally.objects.create(annotator=cast.alice, project=project, line=10**6)
    assert claimed(project, cast.alice).task == task


def test_ones_own_begun_tasks_are_passed_once(project: Project, cast: Cast) -> None:
    for _ in range(100):
        make_task(project)
    for _ in range(100):
        rate(project, cast.alice)
    place = Tally.objects.get(annotator=cast.alice)
    last = Task.objects.latest("line").line
    assert place.done == 100
    assert last - place.line <= task_choice.LOOK_BACK + task_choice.STEP + 1


def test_a_task_that_gets_room_goes_to_the_end_of_the_line(cast: Cast) -> None:
    narrow = make_project("narrow", base_annotators=2, max_annotators=2)
    first = make_task(narrow)
    held = claimed(narrow, cast.alice)
    claimed(narrow, cast.bob)
    before = Task.objects.get(pk=first.pk).line
    assignment.release(held.pk)
    assert Task.objects.get(pk=first.pk).line > before


def test_claims_follow_an_index(project: Project, cast: Cast) -> None:
    Task.objects.bulk_create(
        Task(project=project, external_id=f"t{n}", conversation=[], open_slots=3 - n % 2) for n in range(2000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE annotator_task")
    line, untouched = plans(project, cast.alice, now=NOW)
    assert "task_in_line" in line
    assert "task_untouched" in untouched
    assert "Seq Scan on annotator_task" not in line + untouched


def test_old_forms_go_unless_their_task_is_still_held(project: Project, cast: Cast) -> None:
    for name in ("left", "held", "young"):
        make_task(project, name)
    left, held, young = (claimed(project, user) for user in cast.annotators)
    long_ago = NOW - drafts.KEPT - timedelta(minutes=1)
    for assignment_, saved_at in ((left, long_ago), (held, long_ago), (young, NOW)):
        annotation.save_draft(assignment_.pk, {"helpfulness": "3"}, now=saved_at)
    Assignment.objects.filter(pk__in=[left.pk, young.pk]).update(state=Assignment.State.EXPIRED, slot=None)
    assert drafts.forget_old(now=NOW) == 1
    assert set(Draft.objects.values_list("assignment", flat=True)) == {held.pk, young.pk}
    assert drafts.forget_old(now=NOW) == 0
