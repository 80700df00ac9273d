"""The queue, authoritative ratings and verdicts over REST."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from annotator.models import Adjudication, Assignment, Label, Project, Task, User, Verdict
from tests.builders import ATTRIBUTES, imported, make_task, pseudonym, rate, ratings_row
from tests.conftest import As, Cast


@pytest.fixture
def client(rita: User, as_user: As) -> APIClient:
    return as_user(rita)


@pytest.fixture
def task(project: Project, cast: Cast) -> Task:
    """A dropped one."""
    Project.objects.update(max_annotators=3)
    project.refresh_from_db()
    made = make_task(project, "t-1", prompt="Which bird is this?")
    for user, level in zip(cast.annotators, (0, 4, 4), strict=True):
        rate(project, user, level, justification=f"{user} says so.")
    made.refresh_from_db()
    return made


def decision(task: Task, *levels: int, **fields: Any) -> dict[str, Any]:
    pairs = zip(task.responses.all(), levels or (3, 1), strict=True)
    ratings = [
        {"response": response.public_id, "scores": dict.fromkeys(ATTRIBUTES, level)} for response, level in pairs
    ]
    return {"ratings": ratings, "reason": "slip", **fields}


# The queue -------------------------------------------------------------------------------------------------


def test_the_queue_says_what_waits_and_why(client: APIClient, task: Task) -> None:
    (waiting,) = client.get("/api/v1/projects/talk/review/").json()["results"]
    assert waiting == {
        "task": task.public_id,
        "id": "t-1",
        "state": "complete",
        "because": "dropped",
        "spread": 4,
        "raters": 3,
        "beginning": "Which bird is this?",
    }


def spreads(client: APIClient, address: str) -> list[list[int]]:
    """Page by page."""
    listed_ids = []
    while address:
        page = client.get(address).json()
        listed_ids.append([row["spread"] for row in page["results"]])
        address = page["next"]
    return listed_ids


def test_the_widest_spread_comes_first_on_every_page(project: Project, client: APIClient) -> None:
    Project.objects.update(max_annotators=3)
    project.refresh_from_db()
    rows = (ratings_row(f"p{number}", "a", [0, 4, 4 - number % 2]) for number in range(4))
    imported(project, *rows, ratings_row("q", "a", [0, 3, 3]), ratings_row("r", "a", [3, 3, 3]))
    assert spreads(client, "/api/v1/projects/talk/review/?page_size=2") == [[4, 4], [4, 4], [3]]


def test_the_queue_is_filtered_by_kind(client: APIClient, task: Task) -> None:
    for because, count in (("dropped", 1), ("safety", 0)):
        assert len(client.get(f"/api/v1/projects/talk/review/?because={because}").json()["results"]) == count
    assert client.get("/api/v1/projects/talk/review/?because=boredom").status_code == 400


def test_a_cursor_of_somebody_elses_making_is_refused(client: APIClient, task: Task) -> None:
    for cursor in ("x", "1", "1.x", "9" * 30):
        assert client.get(f"/api/v1/projects/talk/review/?cursor={cursor}").status_code == 404


# One task --------------------------------------------------------------------------------------------------


def test_a_task_comes_with_all_ratings_and_no_names(client: APIClient, cast: Cast, task: Task) -> None:
    answer = client.get(f"/api/v1/review/{task.public_id}/")
    body = answer.json()
    assert [rater["number"] for rater in body["raters"]] == [1, 2, 3]
    assert sorted(rater["ratings"][0]["scores"]["helpfulness"] for rater in body["raters"]) == [0, 4, 4]
    for secret in ("model-0", *(pseudonym(user, task.project) for user in cast.annotators)):
        assert secret not in answer.content.decode()
    assert body["adjudication"] is None


def test_the_raters_keep_their_numbers(client: APIClient, task: Task) -> None:
    first, again = (client.get(f"/api/v1/review/{task.public_id}/").json()["raters"] for _ in range(2))
    assert first == again


def test_a_reviewer_settles_a_task_and_takes_it_back(client: APIClient, task: Task) -> None:
    address = f"/api/v1/tasks/{task.public_id}/adjudication/"
    answer = client.put(address, decision(task, comment="Alice mixed them up."))
    assert (answer.status_code, answer.json()["by"]) == (200, "rita")
    assert [label.scores["helpfulness"] for label in Label.objects.in_force().order_by("response")] == [3, 1]
    assert client.get(f"/api/v1/review/{task.public_id}/").json()["adjudication"]["comment"] == "Alice mixed them up."
    assert client.delete(address).status_code == 204
    assert not Label.objects.in_force().exists()


def test_the_same_put_twice_makes_one(client: APIClient, task: Task) -> None:
    for _ in range(2):
        client.put(f"/api/v1/tasks/{task.public_id}/adjudication/", decision(task))
    assert Adjudication.objects.count() == 1


@pytest.mark.parametrize(
    "wrong", [{"ratings": []}, {"reason": "boredom"}, {"preference": 0}, {"preference": "1"}, {"mood": "good"}]
)
def test_a_wrong_decision_is_refused(client: APIClient, task: Task, wrong: dict[str, Any]) -> None:
    answer = client.put(f"/api/v1/tasks/{task.public_id}/adjudication/", decision(task) | wrong)
    assert answer.status_code == 400
    assert not Adjudication.objects.exists()


def test_a_response_is_decided_once(client: APIClient, task: Task) -> None:
    body = decision(task)
    body["ratings"] *= 2
    assert client.put(f"/api/v1/tasks/{task.public_id}/adjudication/", body).status_code == 400


def test_an_open_task_is_refused(project: Project, client: APIClient) -> None:
    task = make_task(project)
    answer = client.put(f"/api/v1/tasks/{task.public_id}/adjudication/", decision(task))
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")


# Verdicts --------------------------------------------------------------------------------------------------


def test_a_rejection_takes_an_annotation_out(client: APIClient, task: Task) -> None:
    held = task.assignments.order_by("pk")[0]
    answer = client.post(f"/api/v1/assignments/{held.pk}/verdict/", {"decision": "rejected", "comment": "No."})
    assert (answer.status_code, answer.json()["decision"]) == (200, "rejected")
    assert not Assignment.objects.get(pk=held.pk).counts
    listed = client.get("/api/v1/projects/talk/annotations/").json()["results"]
    assert [row["counts"] for row in listed] == [False, True, True]
    seen = client.get(f"/api/v1/review/{task.public_id}/").json()["raters"]
    assert [(rater["counts"], rater["verdict"]["comment"]) for rater in seen if rater["verdict"]] == [(False, "No.")]


def test_a_rejection_without_a_comment_is_refused(client: APIClient, task: Task) -> None:
    held = task.assignments.order_by("pk")[0]
    answer = client.post(f"/api/v1/assignments/{held.pk}/verdict/", {"decision": "rejected"})
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["comment"])
    assert not Verdict.objects.exists()


def test_ones_own_annotation_is_refused(project: Project, rita: User, client: APIClient) -> None:
    make_task(project)
    held = rate(project, rita).annotation.assignment
    answer = client.post(f"/api/v1/assignments/{held.pk}/verdict/", {"decision": "accepted"})
    assert (answer.status_code, answer.json()["code"]) == (409, "own_work")


# Rankings --------------------------------------------------------------------------------------------------


def test_rankings_are_told_and_settled(project: Project, client: APIClient, cast: Cast) -> None:
    Project.objects.update(ask_preference=True)
    project.refresh_from_db()
    made = make_task(project, responses=3)
    rows = list(made.responses.all())
    for user in cast.annotators:
        rate(project, user, ranking=[[rows[2].pk], [rows[0].pk, rows[1].pk]])
    one, two, three = (row.public_id for row in rows)
    shown = client.get(f"/api/v1/review/{made.public_id}/").json()
    assert [rater["ranking"] for rater in shown["raters"]] == [[[three], [one, two]]] * 3
    address = f"/api/v1/tasks/{made.public_id}/adjudication/"
    missing = client.put(address, decision(made, 3, 2, 1))
    assert (missing.status_code, list(missing.json()["errors"])) == (400, ["ranking"])
    settled = client.put(address, decision(made, 3, 2, 1, ranking=[[one], [two], [three]]))
    assert (settled.status_code, settled.json()["ranking"]) == (200, [[one], [two], [three]])
