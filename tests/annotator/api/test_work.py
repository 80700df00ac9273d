"""The annotator's calls: next, annotation, skip, report, heartbeat, release."""

from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from annotator.models import Annotation, Assignment, AuditEntry, Draft, Membership, Project, Rating, Task
from annotator.models.public_ids import response_of
from tests.builders import ATTRIBUTES, NOW, make_member, make_project, make_task
from tests.conftest import As, Cast


def leased(client: APIClient) -> Any:
    answer = client.post("/api/v1/projects/talk/next/")
    assert answer.status_code == 200
    return answer.json()


def form(lease: Any, score: Any = 3, **fields: Any) -> dict[str, Any]:
    """Every attribute of every leased response at one level."""
    ratings = [
        {"response": response["id"], "scores": dict.fromkeys(ATTRIBUTES, score)}
        for response in lease["task"]["responses"]
    ]
    return {"ratings": ratings, **fields}


def submitted(client: APIClient, lease: Any, body: Any, query: str = "") -> Any:
    return client.put(f"/api/v1/assignments/{lease['assignment']}/annotation/{query}", body)


def told(answer: Any) -> tuple[int, str]:
    assert set(answer.json()) == {"detail", "code", "errors"}
    return answer.status_code, answer.json()["code"]


# Next ------------------------------------------------------------------------------------------------------


def test_next_leases_a_task(alice: APIClient, project: Project) -> None:
    task = make_task(project, "one")
    lease = leased(alice)
    assert set(lease) == {"assignment", "lease_expires_at", "task", "asks", "rubric"}
    assert set(lease["task"]) == {"id", "conversation", "responses"}
    assert lease["task"]["id"] == task.public_id
    assert lease["task"]["conversation"] == [{"role": "user", "content": "What is one?"}]
    assert {tuple(response) for response in lease["task"]["responses"]} == {("id", "text")}


def test_the_rubric_comes_with_a_text_for_each_level(alice: APIClient, project: Project) -> None:
    make_task(project)
    rubric = leased(alice)["rubric"]
    assert (rubric["key"], [attribute["key"] for attribute in rubric["attributes"]]) == ("helpsteer2", list(ATTRIBUTES))
    assert [len(attribute["levels"]) for attribute in rubric["attributes"]] == [5] * 5


def test_next_again_is_the_same_lease(alice: APIClient, project: Project) -> None:
    make_task(project)
    make_task(project)
    assert leased(alice)["assignment"] == leased(alice)["assignment"]


def test_nothing_left_comes_with_the_reason(alice: APIClient) -> None:
    assert leased(alice) == {"assignment": None, "reason": "empty", "detail": "This project has no tasks yet."}


def test_responses_keep_the_order_of_the_lease(project: Project, cast: Cast, as_user: As) -> None:
    make_task(project, responses=4)
    for user in cast.annotators:
        lease = leased(as_user(user))
        order = Assignment.objects.get(pk=lease["assignment"]).response_order
        assert [response["text"].split()[1] for response in lease["task"]["responses"]] == [
            str(place) for place in order
        ]


# Annotation ------------------------------------------------------------------------------------------------


def test_a_rating_is_stored_and_echoed(alice: APIClient, project: Project) -> None:
    make_task(project)
    lease = leased(alice)
    answer = submitted(alice, lease, form(lease, 2, justification=" Because. ", active_seconds=12.5))
    assert answer.status_code == 201
    wanted = {"annotation", "assignment", "counts", "revision", "ratings", "ranking", "submitted_at"}
    assert set(answer.json()) == wanted
    assert [rating["scores"] for rating in answer.json()["ratings"]] == [dict.fromkeys(ATTRIBUTES, 2)] * 2
    stored = Annotation.objects.get()
    assert (stored.justification, stored.active_seconds) == (" Because. ", 12.5)


def test_the_same_again_is_200_and_one_annotation(alice: APIClient, project: Project) -> None:
    make_task(project)
    lease = leased(alice)
    first, again = (submitted(alice, lease, form(lease)) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert Annotation.objects.count() == 1


def test_another_rating_is_a_revision(alice: APIClient, project: Project) -> None:
    make_task(project)
    lease = leased(alice)
    submitted(alice, lease, form(lease, 2))
    answer = submitted(alice, lease, form(lease, 4))
    assert (answer.status_code, answer.json()["revision"]) == (200, 2)


def test_a_complete_task_is_closed_for_edits(project: Project, cast: Cast, as_user: As) -> None:
    make_task(project)
    clients = [as_user(user) for user in cast.annotators]
    leases = [leased(client) for client in clients]
    for client, lease in zip(clients, leases, strict=True):
        submitted(client, lease, form(lease))
    assert told(submitted(clients[0], leases[0], form(leases[0], 1))) == (409, "refused")


@pytest.mark.parametrize("query", ["?next=1", "?next=true"])
def test_a_submit_may_answer_with_the_next_task(alice: APIClient, project: Project, query: str) -> None:
    both = {make_task(project).public_id, make_task(project).public_id}
    lease = leased(alice)
    answer = submitted(alice, lease, form(lease), query)
    assert (answer.status_code, {lease["task"]["id"], answer.json()["next"]["task"]["id"]}) == (201, both)
    last = submitted(alice, answer.json()["next"], form(answer.json()["next"]), query)
    assert (last.json()["next"]["assignment"], last.json()["next"]["reason"]) == (None, "you_did_all")


def test_an_unclear_next_stores_nothing(alice: APIClient, project: Project) -> None:
    make_task(project)
    lease = leased(alice)
    assert told(submitted(alice, lease, form(lease), "?next=perhaps")) == (400, "invalid")
    assert not Annotation.objects.exists()


@pytest.mark.parametrize("score", ["3", True, False, None, 3.0, 2.5, -1, 7, 10**30, [3], {"level": 3}, ""])
def test_a_score_that_is_no_level_is_refused(alice: APIClient, project: Project, score: Any) -> None:
    make_task(project)
    lease = leased(alice)
    answer = submitted(alice, lease, form(lease, score))
    assert told(answer) == (400, "invalid")
    assert "ratings.0.scores.helpfulness" in answer.json()["errors"]
    assert not Rating.objects.exists()


@pytest.mark.parametrize("score", [5, 6])
def test_a_score_above_the_attributes_own_levels_is_refused(alice: APIClient, project: Project, score: int) -> None:
    make_task(project)
    lease = leased(alice)
    answer = submitted(alice, lease, form(lease, score))
    assert told(answer) == (400, "incomplete")
    assert f"helpfulness is {score}: it must be a whole number from 0 to 4" in str(answer.json()["errors"])
    assert not Rating.objects.exists()


def test_an_attribute_without_answer_is_refused(alice: APIClient, project: Project) -> None:
    make_task(project)
    lease = leased(alice)
    body = form(lease)
    del body["ratings"][1]["scores"]["verbosity"]
    answer = submitted(alice, lease, body)
    assert told(answer) == (400, "incomplete")
    assert answer.json()["errors"] == {f"ratings.{body['ratings'][1]['response']}": ["Verbosity has no answer"]}
    assert not Annotation.objects.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"ratings": []},
        {"ratings": None},
        {"ratings": {}},
        {"ratings": [3]},
        {"preference": 0},
        {"preference": 10**30},
        {"preference": "1"},
        {"preference": True},
        {"justification": ["x"]},
        {"justification": "x" * 20_001},
        {"active_seconds": -1},
        {"active_seconds": "nan"},
        {"active_seconds": "12"},
        {"active_seconds": 1e300},
        {"active_seconds": 10**400},
        {"prefrence": 1},
    ],
    ids=str,
)
def test_a_form_that_is_not_right_is_400(alice: APIClient, project: Project, change: dict[str, Any]) -> None:
    make_task(project)
    lease = leased(alice)
    assert told(submitted(alice, lease, form(lease) | change))[0] == 400
    assert not Annotation.objects.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"response": 10**30},
        {"response": "1"},
        {"response": None},
        {"confidence": 3},
        {"confidence": "1"},
        {"safe": "perhaps"},
        {"unsafe_category": "boring"},
        {"checks": "repetitions"},
        {"checks": ["unheard of"]},
        {"checks": [{}]},
        {"scores": [3]},
        {"scores": {}},
        {"score": 3},
    ],
    ids=str,
)
def test_a_rating_that_is_not_right_is_400(alice: APIClient, project: Project, change: dict[str, Any]) -> None:
    make_task(project)
    lease = leased(alice)
    body = form(lease)
    body["ratings"][0] |= change
    assert told(submitted(alice, lease, body))[0] == 400
    assert not Annotation.objects.exists()


def test_a_response_is_rated_once(alice: APIClient, project: Project) -> None:
    make_task(project)
    lease = leased(alice)
    body = form(lease)
    body["ratings"].append(body["ratings"][0])
    answer = submitted(alice, lease, body)
    assert answer.json()["errors"] == {"ratings": ["A response is rated twice."]}


def test_what_the_project_asks_for_is_stored(alice: APIClient, cast: Cast) -> None:
    project = make_project("more", ask_preference=True, ask_safety=True, ask_confidence=True)
    make_member(project, cast.alice)
    make_task(project)
    lease = alice.post("/api/v1/projects/more/next/").json()
    extra = {"confidence": 2, "safe": False, "unsafe_category": "bias", "checks": ["repetitions"]}
    body = form(lease, preference=-2)
    body["ratings"] = [rating | extra for rating in body["ratings"]]
    assert submitted(alice, lease, body).status_code == 201
    stored = Rating.objects.values("confidence", "safe", "unsafe_category", "checks").first()
    assert stored == extra


def test_the_work_of_another_is_404(alice: APIClient, project: Project, cast: Cast, as_user: As) -> None:
    make_task(project)
    lease = leased(as_user(cast.bob))
    assert told(submitted(alice, lease, form(lease))) == (404, "not_found")
    assert not Annotation.objects.exists()


def test_who_left_the_project_submits_no_more(alice: APIClient, project: Project, cast: Cast) -> None:
    make_task(project)
    lease = leased(alice)
    Membership.objects.filter(user=cast.alice).delete()
    assert told(submitted(alice, lease, form(lease))) == (404, "not_found")


# Skip, report, heartbeat, release --------------------------------------------------------------------------


def called(client: APIClient, lease: Any, name: str, body: Any = None) -> Any:
    return client.post(f"/api/v1/assignments/{lease['assignment']}/{name}/", body)


def test_a_skip_is_for_this_person_only(alice: APIClient, project: Project) -> None:
    make_task(project)
    lease = leased(alice)
    answer = called(alice, lease, "skip", {"reason": "needs_coding", "note": "Rust."})
    expected = {"assignment": lease["assignment"], "reason": "needs_coding", "note": "Rust."}
    assert (answer.status_code, answer.json()) == (200, expected)
    assert Task.objects.get().state == Task.State.OPEN
    assert leased(alice)["reason"] == "you_did_all"


def test_personal_information_takes_the_task_away(alice: APIClient, project: Project) -> None:
    make_task(project)
    assert called(alice, leased(alice), "skip", {"reason": "pii"}).status_code == 200
    assert Task.objects.get().state == Task.State.QUARANTINED


def test_a_report_takes_the_task_away(alice: APIClient, project: Project) -> None:
    make_task(project)
    lease = leased(alice)
    answer = called(alice, lease, "report", {"category": "harmful", "note": "Look."})
    expected = {"assignment": lease["assignment"], "category": "harmful", "note": "Look."}
    assert (answer.status_code, answer.json()) == (200, expected)
    assert Task.objects.get().state == Task.State.QUARANTINED


def test_a_skip_for_pii_may_quote_what_is_personal(alice: APIClient, project: Project) -> None:
    task = make_task(project, prompt="I am Ola Nord.")
    assert called(alice, leased(alice), "skip", {"reason": "pii", "quotes": ["ola  nord"]}).status_code == 200
    assert list(task.pii_spans.values_list("turn", "start", "end", "kind")) == [(0, 5, 13, "other")]


def test_a_quote_that_is_nowhere_is_400(alice: APIClient, project: Project) -> None:
    make_task(project)
    answer = called(alice, leased(alice), "skip", {"reason": "pii", "quotes": ["Kari"]})
    assert told(answer) == (400, "not_in_the_text")
    assert "Copy each passage exactly" in answer.json()["errors"]["quotes"][0]


def test_quotes_beside_another_reason_are_400(alice: APIClient, project: Project) -> None:
    make_task(project, prompt="I am Ola Nord.")
    sent = {"reason": "other", "quotes": ["Ola Nord"]}
    assert told(called(alice, leased(alice), "skip", sent)) == (400, "marks_without_reason")


@pytest.mark.parametrize("name", ["skip", "report"])
@pytest.mark.parametrize(
    "body", [{}, {"reason": "bored"}, {"category": 3}, {"reason": "pii", "category": "harmful"}, {"note": "x" * 5001}]
)
def test_a_reason_that_is_none_is_400(alice: APIClient, project: Project, name: str, body: dict[str, Any]) -> None:
    make_task(project)
    assert told(called(alice, leased(alice), name, body)) == (400, "invalid")
    assert Task.objects.get().state == Task.State.OPEN


def test_a_skip_after_the_rating_is_409(alice: APIClient, project: Project) -> None:
    make_task(project)
    lease = leased(alice)
    submitted(alice, lease, form(lease))
    assert told(called(alice, lease, "skip", {"reason": "other"})) == (409, "refused")


def test_a_rating_is_withdrawn_by_a_skip_for_pii(alice: APIClient, project: Project) -> None:
    task = make_task(project)
    lease = leased(alice)
    submitted(alice, lease, form(lease))
    assert called(alice, lease, "skip", {"reason": "pii"}).status_code == 200
    assert not Annotation.objects.current().exists()
    task.refresh_from_db()
    assert task.state == Task.State.QUARANTINED
    assert set(AuditEntry.objects.values_list("action", flat=True)) >= {"annotation.withdrawn", "task.skipped"}


@pytest.mark.parametrize("reason", ["non_english", "needs_coding", "about_assistant", "other"])
def test_a_rating_is_withdrawn_for_no_other_reason(alice: APIClient, project: Project, reason: str) -> None:
    make_task(project)
    lease = leased(alice)
    submitted(alice, lease, form(lease))
    answer = called(alice, lease, "skip", {"reason": reason})
    assert told(answer) == (409, "refused")
    assert answer.json()["detail"] == (
        "You have already rated this task. You can now skip it only for personal information."
    )
    assert Annotation.objects.current().count() == 1


def test_a_rating_after_the_skip_is_409(alice: APIClient, project: Project) -> None:
    make_task(project)
    lease = leased(alice)
    called(alice, lease, "skip", {"reason": "other"})
    assert told(submitted(alice, lease, form(lease))) == (409, "refused")


def test_a_heartbeat_renews_the_lease(alice: APIClient, project: Project) -> None:
    make_task(project)
    lease = leased(alice)
    Assignment.objects.update(lease_expires_at=NOW)
    answer = called(alice, lease, "heartbeat")
    assert (answer.status_code, set(answer.json())) == (200, {"assignment", "lease_expires_at"})
    assert answer.json()["lease_expires_at"] >= lease["lease_expires_at"]


def test_a_lease_that_is_gone_cannot_be_renewed(alice: APIClient, project: Project) -> None:
    make_task(project)
    lease = leased(alice)
    submitted(alice, lease, form(lease))
    assert told(called(alice, lease, "heartbeat")) == (409, "not_leased")


def test_a_released_task_is_free_again(alice: APIClient, project: Project) -> None:
    task = make_task(project)
    lease = leased(alice)
    Draft.objects.create(assignment_id=lease["assignment"], saved_at=NOW)
    for _ in range(2):
        answer = alice.delete(f"/api/v1/assignments/{lease['assignment']}/")
        assert (answer.status_code, answer.content) == (204, b"")
    task.refresh_from_db()
    assert (task.open_slots, Draft.objects.count()) == (3, 0)


def test_finished_work_cannot_be_released(alice: APIClient, project: Project) -> None:
    make_task(project)
    lease = leased(alice)
    submitted(alice, lease, form(lease))
    assert told(alice.delete(f"/api/v1/assignments/{lease['assignment']}/")) == (409, "not_leased")


# The hot path ----------------------------------------------------------------------------------------------


def test_a_longer_queue_costs_no_more_queries(
    alice: APIClient, project: Project, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(20):
        make_task(project)
    lease = leased(alice)
    with django_assert_max_num_queries(34):
        submitted(alice, lease, form(lease), "?next=1")


# Rankings --------------------------------------------------------------------------------------------------


@pytest.fixture
def triple(cast: Cast, as_user: As) -> tuple[APIClient, Any]:
    """Alice and her lease of a task with three responses, which are to be ranked."""
    asking = make_project("ranked", ask_preference=True)
    make_member(asking, cast.alice)
    make_task(asking, responses=3)
    client = as_user(cast.alice)
    return client, client.post("/api/v1/projects/ranked/next/").json()


def numbers(lease: Any) -> list[int]:
    return [response["id"] for response in lease["task"]["responses"]]


@pytest.mark.parametrize(("responses", "asked"), [(1, []), (2, ["preference"]), (3, ["ranking"]), (9, ["ranking"])])
def test_next_says_what_is_asked(cast: Cast, as_user: As, responses: int, asked: list[str]) -> None:
    asking = make_project("ranked", ask_preference=True, ask_safety=True)
    make_member(asking, cast.alice)
    make_task(asking, responses=responses)
    assert as_user(cast.alice).post("/api/v1/projects/ranked/next/").json()["asks"] == [*asked, "safe"]


def test_a_ranking_is_stored_and_echoed(triple: tuple[APIClient, Any]) -> None:
    client, lease = triple
    one, two, three = numbers(lease)
    answer = submitted(client, lease, form(lease, ranking=[[three], [one, two]]))
    assert answer.status_code == 201
    assert [set(tier) for tier in answer.json()["ranking"]] == [{three}, {one, two}]
    again = submitted(client, lease, form(lease, ranking=[[three], [two, one]]))
    assert (again.status_code, again.json()) == (200, answer.json())


def test_a_ranking_is_listed_and_revised(triple: tuple[APIClient, Any], cast: Cast, as_user: As) -> None:
    client, lease = triple
    one, two, three = numbers(lease)
    submitted(client, lease, form(lease, ranking=[[one], [two], [three]]))
    assert submitted(client, lease, form(lease, ranking=[[three], [two], [one]])).json()["revision"] == 2
    make_member(Project.objects.get(slug="ranked"), cast.carol, role="manager")
    listed = as_user(cast.carol).get("/api/v1/projects/ranked/annotations/").json()["results"]
    assert listed[0]["ranking"] == [[three], [two], [one]]


@pytest.mark.parametrize(
    ("broken", "told_of"),
    [
        (lambda one, two, three: None, "put all 3 responses into tiers of ids"),
        (lambda one, two, three: [[one], [two]], "response 3 is not ranked: put its id"),
        (lambda one, two, three: [[one], [two, one], [three]], "is ranked twice: name it once"),
        (lambda one, two, three: [[one], [two], [three, 5]], "does not belong to this task"),
        (lambda one, two, three: [[one], [], [two], [three]], "a tier of the ranking is empty: leave it out"),
    ],
)
def test_a_broken_ranking_is_refused_with_what_to_do(
    triple: tuple[APIClient, Any], broken: Callable[..., Any], told_of: str
) -> None:
    client, lease = triple
    body = form(lease, ranking=broken(*sorted(numbers(lease), key=lambda number: response_of(number) or 0)))
    answer = submitted(client, lease, body)
    assert told(answer) == (400, "incomplete")
    assert told_of in answer.json()["errors"]["ranking"][0]
    assert not Annotation.objects.exists()


@pytest.mark.parametrize(
    "broken", [5, "a", {"1": 2}, [1, 2, 3], [["1"]], [[True]], [[1.5]], [[-1]], [[10**30]], [[None]]]
)
def test_a_ranking_that_is_none_is_refused(triple: tuple[APIClient, Any], broken: Any) -> None:
    client, lease = triple
    answer = submitted(client, lease, form(lease, ranking=broken))
    assert told(answer) == (400, "invalid")
    assert not Annotation.objects.exists()


def test_a_preference_of_three_and_a_ranking_of_two_are_refused(
    triple: tuple[APIClient, Any], alice: APIClient, project: Project
) -> None:
    client, lease = triple
    answer = submitted(client, lease, form(lease, preference=1, ranking=[numbers(lease)]))
    assert answer.json()["errors"]["preference"] == [
        "a preference needs exactly two responses: use `ranking` for three or more"
    ]
    make_task(project)
    lease = leased(alice)
    answer = submitted(alice, lease, form(lease, ranking=[numbers(lease)]))
    assert answer.json()["errors"]["ranking"] == ["a ranking needs three responses or more: use `preference` for two"]
