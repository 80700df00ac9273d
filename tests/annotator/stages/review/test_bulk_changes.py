"""Changing many tasks at once, and undoing it."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.refusals import Refusal
from annotator.managing.archive import archive
from annotator.models import Assignment, AuditEntry, BulkChange, ChangedTask, Label, Project, Report, Task, User
from annotator.stages import annotation
from annotator.stages.annotation import decide_quarantine
from annotator.stages.review import bulk_changes
from annotator.stages.review.bulk_changes import bulk_change_preview, change_many, finish, finish_all, undo
from tests.builders import NOW, claimed, make_gold, make_project, make_task, rate, submission
from tests.conftest import Cast
from tests.refusals import refusal

DATA = "/projects/talk/data/"
CHANGE = f"{DATA}change/"
CHANGES = f"{DATA}changes/"
REST = "/api/v1/projects/talk/bulk-changes/"


def ids(*tasks: Task) -> list[int]:
    return [task.pk for task in tasks]


def states(*tasks: Task) -> list[str]:
    by_id = dict(Task.objects.values_list("pk", "state"))
    return [by_id[task.pk] for task in tasks]


def complete(project: Project, cast: Cast, name: str) -> Task:
    task = make_task(project, name, priority=1000)
    for user in cast.annotators:
        rate(project, user)
    Task.objects.filter(pk=task.pk).update(priority=0)
    return task


def set_aside(project: Project, user: User, name: str) -> Task:
    task = make_task(project, name, priority=1000)
    annotation.report(claimed(project, user).pk, category="bias", note="Look.", now=NOW)
    Task.objects.filter(pk=task.pk).update(priority=0)
    return task


def made(project: Project, cast: Cast, action: str, *tasks: Task, priority: int | None = None) -> BulkChange:
    return change_many(project, ids(*tasks), action=action, priority=priority, by=cast.carol, now=NOW)


# What becomes of the tasks ---------------------------------------------------------------------------------


def test_retiring_takes_labels_away_and_undoing_brings_them_back(project: Project, cast: Cast) -> None:
    done, waiting = complete(project, cast, "t-1"), make_task(project, "t-2")
    labels = Label.objects.in_force().count()
    assert labels == 2
    change = made(project, cast, "retire", done, waiting)
    assert (change.chosen, change.changed, change.finished_at) == (2, 2, NOW)
    assert states(done, waiting) == ["retired", "retired"]
    assert not Label.objects.in_force().exists()
    back = undo(change, now=NOW)
    assert (back.put_back, back.undone_at) == (2, NOW)
    assert states(done, waiting) == ["complete", "open"]
    assert Label.objects.in_force().count() == labels


def test_what_is_retired_comes_back_as_its_ratings_make_it(project: Project, cast: Cast) -> None:
    done, waiting = complete(project, cast, "t-1"), make_task(project, "t-2")
    made(project, cast, "retire", done, waiting)
    change = made(project, cast, "reopen", done, waiting)
    assert states(done, waiting) == ["complete", "open"]
    undo(change, now=NOW)
    assert states(done, waiting) == ["retired", "retired"]


def test_priorities_come_back_one_by_one(project: Project, cast: Cast) -> None:
    tasks = [make_task(project, f"t-{number}", priority=number) for number in range(3)]
    change = made(project, cast, "priority", *tasks, priority=2)
    assert set(Task.objects.values_list("priority", flat=True)) == {2}
    assert (change.chosen, change.changed) == (3, 2), "one had the priority already"
    undo(change, now=NOW)
    assert list(Task.objects.order_by("pk").values_list("priority", flat=True)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("action", "state", "decision"), [("release", "open", "dismissed"), ("uphold", "retired", "upheld")]
)
def test_decisions_on_quarantined_tasks_can_be_undone(
    project: Project, cast: Cast, action: str, state: str, decision: str
) -> None:
    task, other = set_aside(project, cast.alice, "t-1"), make_task(project, "t-2")
    change = made(project, cast, action, task, other)
    assert (states(task, other), Report.objects.get().decision) == ([state, "open"], decision)
    undo(change, now=NOW)
    assert (states(task), Report.objects.get().decision) == (["quarantined"], "")


def test_an_earlier_decision_is_not_undone_with_a_later_one(project: Project, cast: Cast) -> None:
    task = set_aside(project, cast.alice, "t-1")
    decide_quarantine(task.pk, safe_to_use=True, now=NOW)
    annotation.report(claimed(project, cast.bob).pk, category="bias", note="", now=NOW)
    undo(made(project, cast, "uphold", task), now=NOW)
    assert sorted(Report.objects.values_list("decision", flat=True)) == ["", "dismissed"]


def test_what_somebody_has_changed_since_is_not_put_back(project: Project, cast: Cast) -> None:
    first, second = make_task(project, "t-1"), make_task(project, "t-2")
    change = made(project, cast, "retire", first, second)
    made(project, cast, "reopen", first)
    assert undo(change, now=NOW).put_back == 1
    assert states(first, second) == ["open", "open"]
    raised = made(project, cast, "priority", first, second, priority=5)
    made(project, cast, "priority", second, priority=7)
    undo(raised, now=NOW)
    assert list(Task.objects.order_by("pk").values_list("priority", flat=True)) == [0, 7]


def test_gold_tasks_and_those_of_others_are_left_out(project: Project, cast: Cast) -> None:
    gold, foreign = make_gold(project, "gold-1"), make_task(make_project("other"), "t-9")
    with refusal("nothing_to_change"):
        made(project, cast, "retire", gold, foreign)
    assert states(gold, foreign) == ["gold", "open"]
    assert bulk_change_preview(project, ids(gold, foreign), action="retire").chosen == 0


def test_whoever_is_rating_a_retired_task_can_finish(project: Project, cast: Cast) -> None:
    task = make_task(project, "t-1")
    held = claimed(project, cast.alice)
    assert bulk_change_preview(project, ids(task), action="retire").leases == 1
    made(project, cast, "retire", task)
    annotation.submit(held.pk, submission(task), now=NOW)
    assert Assignment.objects.get().state == Assignment.State.SUBMITTED


def test_the_preview_says_what_the_change_then_does(project: Project, cast: Cast) -> None:
    done, waiting = complete(project, cast, "t-1"), make_task(project, "t-2")
    aside = set_aside(project, cast.alice, "t-3")
    foreseen = bulk_change_preview(project, ids(done, waiting, aside), action="retire")
    assert (foreseen.chosen, foreseen.changing, foreseen.staying, foreseen.labels) == (3, 2, 1, 2)
    change = made(project, cast, "retire", done, waiting, aside)
    assert (change.chosen, change.changed) == (3, 2)
    assert bulk_change_preview(project, ids(done, waiting), action="reopen").labels == 2


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=st.lists(st.sampled_from(["retire", "reopen", "priority"]), min_size=1, max_size=4))
def test_undoing_all_changes_in_reverse_restores_everything(project: Project, cast: Cast, actions: list[str]) -> None:
    with transaction.atomic():
        tasks = [complete(project, cast, ""), make_task(project), make_task(project)]

        def as_it_is() -> list[tuple[str, int]]:
            return list(Task.objects.order_by("pk").values_list("state", "priority"))

        before, done = as_it_is(), []
        for number, action in enumerate(actions):
            try:
                done.append(made(project, cast, action, *tasks, priority=number + 1 if action == "priority" else None))
            except Refusal:
                continue
        for change in reversed(done):
            undo(change, now=NOW)
        assert as_it_is() == before
        transaction.set_rollback(True)


# In the background -----------------------------------------------------------------------------------------


@pytest.fixture
def few_at_the_door(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_changes, "SYNC_LIMIT", 1)
    monkeypatch.setattr(bulk_changes, "AT_ONCE", 2)


@pytest.mark.usefixtures("few_at_the_door")
def test_many_tasks_need_a_worker(project: Project, cast: Cast) -> None:
    tasks = [make_task(project, f"t-{number}") for number in range(3)]
    with refusal("no_worker"):
        made(project, cast, "retire", *tasks)
    assert not BulkChange.objects.exists()


@pytest.mark.usefixtures("few_at_the_door")
def test_a_change_of_many_that_changed_few_is_undone_at_once_though_no_worker_listens(
    project: Project, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    retired = [make_task(project, f"old-{number}") for number in range(5)]
    Task.objects.update(state=Task.State.RETIRED)
    task = make_task(project, "t-1")
    with monkeypatch.context() as listening:
        listening.setattr(heartbeats, "require", lambda queue: None)
        change = made(project, cast, "retire", *retired, task)
    assert finish_all(now=NOW) == 1
    change.refresh_from_db()
    assert (change.chosen, change.changed, states(task)) == (6, 1, ["retired"])
    undone = undo(change, now=NOW)
    assert (undone.undone_at, undone.put_back, states(task)) == (NOW, 1, ["open"])


@pytest.mark.usefixtures("few_at_the_door")
def test_a_worker_carries_out_what_another_began(project: Project, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "require", lambda queue: None)
    tasks = [make_task(project, f"t-{number}") for number in range(5)]
    change = made(project, cast, "retire", *tasks)
    assert (change.finished_at, states(*tasks)) == (None, ["open"] * 5)
    with refusal("cannot_be_undone"):
        undo(change, now=NOW)

    # The first worker dies in its second batch.
    batches = []

    def dies(*args: Any) -> None:
        batches.append(args)
        if len(batches) == 2:
            raise RuntimeError("killed")
        apply(*args)

    apply = bulk_changes._apply
    monkeypatch.setattr(bulk_changes, "_apply", dies)
    with pytest.raises(RuntimeError):
        finish(change.pk, now=NOW)
    assert states(*tasks) == ["retired"] * 2 + ["open"] * 3
    monkeypatch.setattr(bulk_changes, "_apply", apply)
    assert finish_all(now=NOW) == 1
    change.refresh_from_db()
    assert (change.changed, change.finished_at) == (5, NOW)
    undo(change, now=NOW)
    assert finish_all(now=NOW) == 1
    change.refresh_from_db()
    assert (change.put_back, states(*tasks)) == (5, ["open"] * 5)
    assert finish_all(now=NOW) == 0


# Refusals --------------------------------------------------------------------------------------------------


def test_a_change_is_undone_once(project: Project, cast: Cast) -> None:
    change = made(project, cast, "retire", make_task(project))
    undo(change, now=NOW)
    with refusal("cannot_be_undone"):
        undo(change, now=NOW)


def test_an_archived_project_is_left_alone(project: Project, cast: Cast) -> None:
    task = make_task(project)
    change = made(project, cast, "retire", task)
    archive(project, now=NOW)
    with refusal("archived"):
        undo(change, now=NOW)
    with refusal("archived"):
        made(project, cast, "reopen", task)


@pytest.mark.parametrize(("action", "priority"), [("priority", None), ("priority", 1001), ("retire", 3)])
def test_a_priority_that_does_not_fit_is_refused(
    project: Project, cast: Cast, action: str, priority: int | None
) -> None:
    with refusal("bad_priority"):
        made(project, cast, action, make_task(project), priority=priority)


def test_more_tasks_than_at_once_are_refused(project: Project, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_changes, "MOST_TASKS", 1)
    with refusal("too_many_tasks", match="Add a filter"):
        made(project, cast, "retire", make_task(project), make_task(project))


def test_the_database_knows_what_belongs_together(project: Project) -> None:
    for fields in ({"action": "priority"}, {"action": "retire", "priority": 1}, {"action": "retire", "changed": 2}):
        with pytest.raises(IntegrityError), transaction.atomic():
            BulkChange.objects.create(project=project, made_at=NOW, chosen=1, **fields)


# The pages -------------------------------------------------------------------------------------------------


def test_a_manager_ticks_tasks_looks_ahead_and_undoes(project: Project, cast: Cast, pages: Client) -> None:
    first, second = make_task(project, "t-1"), make_task(project, "t-2")
    assert f'value="{first.public_id}"' in pages.get(DATA).content.decode()
    chosen: dict[str, Any] = {"tasks": "ticked", "task": [first.public_id], "action": "retire", "priority": ""}
    shown = pages.get(CHANGE, chosen)
    assert (shown.status_code, states(first)) == (200, ["open"])
    assert "Change 1 task" in shown.content.decode()
    answer = pages.post(f"{CHANGE}?{shown.request['QUERY_STRING']}", follow=True)
    assert "1 task was changed." in answer.content.decode()
    assert states(first, second) == ["retired", "open"]
    change = BulkChange.objects.get()
    assert change.by == cast.carol
    assert "Changed together with other tasks" in pages.get(f"{DATA}tasks/{first.public_id}/").content.decode()
    answer = pages.post(f"{CHANGES}{change.pk}/undo/", follow=True)
    assert "1 task is as before again." in answer.content.decode()
    assert states(first) == ["open"]
    assert "A change of many tasks was undone" in pages.get(f"{DATA}tasks/{first.public_id}/").content.decode()
    assert list(AuditEntry.objects.filter(action__startswith="bulk").order_by("pk").values_list("action", "via")) == [
        ("bulk_change.made", "page"),
        ("bulk_change.undone", "page"),
    ]


def test_all_that_are_found_are_those_of_the_filters(project: Project, cast: Cast, pages: Client) -> None:
    done, waiting = complete(project, cast, "t-1"), make_task(project, "t-2")
    address = f"{CHANGE}?tasks=all&action=priority&priority=7&state=open"
    assert "Change 1 task" in pages.get(address).content.decode()
    assert pages.post(address).status_code == 302
    assert dict(Task.objects.values_list("pk", "priority")) == {done.pk: 0, waiting.pk: 7}


def test_a_change_of_everything_is_announced(project: Project, pages: Client) -> None:
    make_task(project)
    everything = "this concerns every task of the project"
    assert everything in pages.get(f"{CHANGE}?tasks=all&action=retire").content.decode()
    assert everything not in pages.get(f"{CHANGE}?tasks=all&action=retire&state=open").content.decode()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", "This field is required."),
        ("tasks=ticked&action=retire", "Tick the tasks in the list first"),
        ("tasks=ticked&action=retire&task=x&task=-1&task=99999999999999999999", "Tick the tasks"),
        ("tasks=all&action=priority", "Write the new priority."),
        ("tasks=all&action=priority&priority=1001", "less than or equal to 1000"),
        ("tasks=all&action=burn", "not one of the available choices"),
    ],
)
def test_a_choice_that_is_none_says_what_to_do(pages: Client, project: Project, query: str, words: str) -> None:
    make_task(project)
    for answer in (pages.get(f"{CHANGE}?{query}"), pages.post(f"{CHANGE}?{query}")):
        assert (answer.status_code, words in answer.content.decode()) == (422, True)
    assert not BulkChange.objects.exists()


def test_a_task_that_the_manager_is_rating_is_left_out(project: Project, cast: Cast, pages: Client) -> None:
    task = make_task(project)
    claimed(project, cast.carol)
    address = f"{CHANGE}?tasks=ticked&action=retire&task={task.public_id}"
    assert "Change 0 tasks" in pages.get(address).content.decode()
    assert pages.post(address).status_code == 409


def test_a_reviewer_ticks_no_task(project: Project, rita: User, pages: Client) -> None:
    make_task(project)
    assert 'type="checkbox"' in pages.get(DATA).content.decode()
    pages.force_login(rita)
    assert 'type="checkbox"' not in pages.get(DATA).content.decode()


def test_a_change_of_another_project_is_not_undone(project: Project, cast: Cast, pages: Client) -> None:
    other = make_project("other")
    change = change_many(other, ids(make_task(other)), action="retire", by=cast.dave, now=NOW)
    assert pages.post(f"{CHANGES}{change.pk}/undo/").status_code == 404


def test_the_pages_cost_the_same_for_many(
    project: Project, cast: Cast, pages: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    tasks = [make_task(project, f"t-{number}") for number in range(30)]
    for _ in range(13):
        undo(made(project, cast, "retire", *tasks), now=NOW)
        made(project, cast, "priority", *tasks, priority=BulkChange.objects.count())
    with django_assert_max_num_queries(12):
        shown = pages.get(CHANGES).content.decode()
    assert "Older changes" in shown
    with django_assert_max_num_queries(20):
        pages.get(f"{CHANGE}?tasks=all&action=retire")


# REST ------------------------------------------------------------------------------------------------------


def test_rest_does_what_the_page_does(project: Project, cast: Cast) -> None:
    task, other = make_task(project, "t-1"), make_task(project, "t-2")
    client = APIClient()
    client.force_authenticate(cast.carol)
    asked = {"action": "retire", "tasks": [task.public_id]}
    foreseen = client.post(f"{REST}?dry_run=1", asked, format="json")
    assert foreseen.json() == {"chosen": 1, "changing": 1, "labels": 0, "leases": 0}
    made_change = client.post(REST, asked, format="json")
    assert (made_change.status_code, made_change.json()["changed"], states(task, other)) == (
        201,
        1,
        ["retired", "open"],
    )
    assert client.get(REST).json()["results"][0]["by"] == "carol"
    back = client.post(f"{REST}{made_change.json()['id']}/undo/")
    assert (back.status_code, back.json()["put_back"], states(task)) == (200, 1, ["open"])
    again = client.post(f"{REST}{made_change.json()['id']}/undo/")
    assert (again.status_code, again.json()["code"]) == (409, "cannot_be_undone")
    filtered = client.post(REST, {"action": "retire", "filters": {"state": "open"}}, format="json")
    assert (filtered.status_code, filtered.json()["changed"]) == (201, 2)


@pytest.mark.parametrize(
    "body",
    [
        {"action": "retire"},
        {"action": "retire", "tasks": [1], "filters": {}},
        {"action": "retire", "filters": {"state": "burnt"}},
        {"action": "retire", "filters": {"colour": "red"}},
        {"action": "priority", "tasks": [1]},
        {"action": "priority", "tasks": [1], "priority": 10**30},
        {"action": "retire", "tasks": ["x"]},
        {"action": "retire", "tasks": [10**40]},
    ],
)
def test_rest_refuses_what_is_unclear(project: Project, cast: Cast, body: dict[str, Any]) -> None:
    client = APIClient()
    client.force_authenticate(cast.carol)
    assert client.post(REST, body, format="json").status_code == 400
    assert not ChangedTask.objects.exists()
