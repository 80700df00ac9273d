"""What annotators and reviewers could find out that would sway their ratings, or tell them which tasks measure them."""

from typing import Any

import pytest
from django.test import Client

from annotator.models import Assignment, Project, Task, User
from annotator.stages import assignment
from annotator.stages.review import adjudicate, judge, withdraw
from tests.builders import ATTRIBUTES, NOW, claimed, make_gold, make_task, rate
from tests.conftest import As, Cast
from tests.refusals import refusal


def settled(task: Task) -> dict[str, Any]:
    return {
        "scores": {response.pk: dict.fromkeys(ATTRIBUTES, 1) for response in task.responses.all()},
        "reason": "other",
    }


def test_numbers_tell_no_annotator_what_was_imported_together(project: Project, cast: Cast, as_user: As) -> None:
    for _ in range(3):
        make_task(project)
    shown = []
    alice = as_user(cast.alice)
    for _ in range(3):
        lease = alice.post("/api/v1/projects/talk/next/").json()
        shown += [lease["task"]["id"], *(response["id"] for response in lease["task"]["responses"])]
        alice.post(f"/api/v1/assignments/{lease['assignment']}/skip/", {"reason": "other"})
    rows = {*project.tasks.values_list("pk", flat=True), *project.tasks.values_list("responses", flat=True)}
    assert not rows & set(shown)
    assert shown != sorted(shown)


def test_the_rating_page_names_no_row(project: Project, cast: Cast, client: Client) -> None:
    task = make_task(project)
    client.force_login(cast.alice)
    page = client.get("/projects/talk/annotate/").content.decode()
    for response in task.responses.all():
        assert f"helpfulness-{response.public_id}" in page
        assert f'helpfulness-{response.pk}"' not in page


def test_a_refused_rating_names_no_row(project: Project, cast: Cast, as_user: As) -> None:
    task = make_task(project)
    alice = as_user(cast.alice)
    lease = alice.post("/api/v1/projects/talk/next/").json()
    answer = alice.put(f"/api/v1/assignments/{lease['assignment']}/annotation/", {"ratings": []})
    assert set(answer.json()["errors"]) == {f"ratings.{response.public_id}" for response in task.responses.all()}


def test_reviewers_do_not_list_what_measures_them(project: Project, cast: Cast, rita: User, as_user: As) -> None:
    make_task(project, "t-1")
    make_gold(project, "g-1")
    names = [
        [row["id"] for row in as_user(user).get("/api/v1/projects/talk/tasks/").json()["results"]]
        for user in (rita, cast.carol)
    ]
    assert names == [["t-1"], ["t-1", "g-1"]]


def test_reviewers_read_no_ratings_of_gold_tasks(cast: Cast, project: Project, rita: User, as_user: As) -> None:
    Project.objects.update(gold_every=1)
    project.refresh_from_db()
    make_task(project)
    make_gold(project)
    rate(project, cast.alice)
    assert as_user(rita).get("/api/v1/projects/talk/annotations/").json()["results"] == []


def test_who_rates_a_task_does_not_see_its_ratings(
    project: Project, cast: Cast, rita: User, as_user: As, client: Client
) -> None:
    task = make_task(project)
    rate(project, cast.alice, justification="Alice was here.")
    claimed(project, rita)
    client.force_login(rita)
    seen: list[Any] = [
        as_user(rita).get(f"/api/v1/review/{task.public_id}/"),
        as_user(rita).get("/api/v1/projects/talk/annotations/"),
        client.get(f"/projects/talk/review/{task.public_id}/"),
        client.get("/projects/talk/review/submissions/"),
    ]
    assert [answer.status_code for answer in seen] == [409, 200, 302, 200]
    assert not any("Alice was here." in answer.content.decode() for answer in seen)
    exported: Any = as_user(rita).get("/api/v1/projects/talk/export/?layout=annotations")
    assert b"".join(exported.streaming_content) == b""


@pytest.mark.parametrize("is_superuser", [False, True])
def test_the_admin_hides_them_too(project: Project, cast: Cast, client: Client, is_superuser: bool) -> None:
    make_task(project)
    theirs = rate(project, cast.alice, justification="Alice was here.").annotation
    User.objects.filter(pk=cast.carol.pk).update(is_staff=True, is_superuser=is_superuser)
    client.force_login(cast.carol)
    page = f"/admin/annotator/annotation/{theirs.pk}/change/"
    assert b"Alice was here." in client.get(page).content
    claimed(project, cast.carol)
    assert client.get(page).status_code == 302
    assert client.get("/admin/annotator/annotation/").context["cl"].result_count == 0


def test_once_they_have_rated_they_see_them(project: Project, cast: Cast, rita: User, as_user: As) -> None:
    task = make_task(project)
    rate(project, cast.alice)
    rate(project, rita)
    assert len(as_user(rita).get(f"/api/v1/review/{task.public_id}/").json()["raters"]) == 2


def test_who_rates_a_task_neither_judges_nor_settles_it(project: Project, cast: Cast, rita: User) -> None:
    task = make_task(project)
    theirs = rate(project, cast.alice).annotation.assignment
    held = claimed(project, rita)
    with refusal("still_rating"):
        judge(theirs.pk, decision="accepted", by=rita, now=NOW)
    with refusal("still_rating"):
        adjudicate(task.pk, **settled(task), by=rita, now=NOW)
    with refusal("still_rating"):
        withdraw(task.pk, by=rita, now=NOW)
    assignment.release(held.pk)
    judge(theirs.pk, decision="accepted", by=rita, now=NOW)
    assert Assignment.objects.filter(pk=theirs.pk, verdicts__decision="accepted").exists()


def test_nobody_settles_what_they_alone_have_rated(project: Project, rita: User) -> None:
    Project.objects.update(base_annotators=1)
    project.refresh_from_db()
    task = make_task(project)
    rate(project, rita)
    with refusal("own_work"):
        adjudicate(task.pk, **settled(task), by=rita, now=NOW)
    with refusal("own_work"):
        withdraw(task.pk, by=rita, now=NOW)


@pytest.mark.parametrize("door", ["page", "rest"])
def test_nobody_takes_back_a_label_that_leaves_their_own_work(
    project: Project, cast: Cast, rita: User, as_user: As, client: Client, door: str
) -> None:
    Project.objects.update(base_annotators=1)
    project.refresh_from_db()
    task = make_task(project)
    rate(project, rita)
    adjudicate(task.pk, **settled(task), by=cast.carol, now=NOW)
    client.force_login(rita)
    if door == "page":
        client.post(f"/projects/talk/review/{task.public_id}/withdraw/")
    else:
        assert as_user(rita).delete(f"/api/v1/tasks/{task.public_id}/adjudication/").status_code == 409
    task.refresh_from_db()
    assert task.adjudicated
