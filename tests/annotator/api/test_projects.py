"""Projects, members, tasks, annotations."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from annotator.models import Guideline, Membership, Project, Role, Rubric, Tally, User
from annotator.reading.search.word_index import take_words
from tests.builders import ATTRIBUTES, make_member, make_project, make_task, make_user, pseudonym, rate
from tests.conftest import As, Cast


def opened(client: APIClient, **fields: Any) -> Any:
    return client.post("/api/v1/projects/", {"slug": "new", "name": "New", **fields})


def changed(client: APIClient, **fields: Any) -> Any:
    return client.patch("/api/v1/projects/talk/", fields)


def queries(client: APIClient, path: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert client.get(f"/api/v1/{path}").status_code == 200
    return len(captured)


# Projects --------------------------------------------------------------------------------------------------


def test_a_new_project_follows_helpsteer2(carol: APIClient) -> None:
    answer = opened(carol)
    assert answer.status_code == 201
    protocol = ("rubric", "base_annotators", "max_annotators", "escalate_above", "keep", "drop_above", "spread_scope")
    assert [answer.json()[key] for key in protocol] == ["helpsteer2", 3, 5, 2, 3, 2, "kept"]
    assert answer.json()["progress"] == {"tasks": 0, "open": 0, "complete": 0, "quarantined": 0, "as_of": None}


def test_limits_that_no_ratings_exceed_are_named(carol: APIClient, project: Project) -> None:
    assert carol.get("/api/v1/projects/talk/").json()["warnings"] == []
    foreseen = carol.patch("/api/v1/projects/talk/?dry_run=1", {"escalate_above": 4}).json()["warnings"]
    assert ["the spread never asks for more annotators" in text for text in foreseen] == [True]
    assert changed(carol, escalate_above=4).json()["warnings"] == foreseen
    (listed,) = carol.get("/api/v1/projects/").json()["results"]
    assert listed["warnings"] == foreseen


def test_who_opens_a_project_manages_it(carol: APIClient, cast: Cast) -> None:
    opened(carol)
    assert Membership.objects.get(project__slug="new").user == cast.carol
    assert opened(carol).status_code == 400


def test_staff_may_open_projects(as_user: As, project: Project) -> None:
    assert opened(as_user(make_user("staff", is_staff=True))).status_code == 201


def test_more_annotators_at_first_raise_the_most(carol: APIClient) -> None:
    assert opened(carol, base_annotators=7).json()["max_annotators"] == 7


def test_the_protocol_can_be_given(carol: APIClient) -> None:
    wanted: dict[str, Any] = {
        "base_annotators": 2,
        "max_annotators": 4,
        "escalate_above": 1,
        "keep": 2,
        "drop_above": 1,
    }
    wanted |= {"spread_scope": "all", "lease_minutes": 5, "ask_preference": True, "validation_share": 0.25}
    answer = opened(carol, **wanted).json()
    assert {key: answer[key] for key in wanted} == wanted


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("base_annotators", 0),
        ("base_annotators", -1),
        ("base_annotators", 6),
        ("base_annotators", "many"),
        ("base_annotators", None),
        ("base_annotators", True),
        ("max_annotators", 2),
        ("max_annotators", 26),
        ("max_annotators", 3.5),
        ("keep", 0),
        ("escalate_above", -1),
        ("drop_above", []),
        ("lease_minutes", 0),
        ("spread_scope", "some"),
        ("spread_attribute", "beauty"),
        ("rubric", "none"),
        ("rubric", None),
        ("validation_share", 0),
        ("validation_share", 0.6),
        ("validation_share", "nan"),
        ("validation_share", "0.2"),
        ("retrain_after_labels", -1),
        ("training_config", []),
        ("training_config", "fast"),
        ("training_config", None),
        ("training_config", {"seed": 2**31}),
        ("slug", "a b"),
        ("slug", ""),
        ("name", ""),
        ("name", {}),
        ("ask_safety", "perhaps"),
        ("base_anotators", 3),
    ],
)
def test_a_bad_value_changes_nothing(carol: APIClient, project: Project, field: str, value: Any) -> None:
    before = Project.objects.values().get()
    answer = changed(carol, **{field: value})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert any(place.split(".")[0] in {field, "max_annotators"} for place in answer.json()["errors"])
    assert Project.objects.values().get() == before


def test_more_annotators_than_there_may_be_are_refused(carol: APIClient) -> None:
    assert opened(carol, base_annotators=26).status_code == 400


def test_a_slug_is_taken_once(carol: APIClient, project: Project) -> None:
    answer = opened(carol, slug="talk")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["slug"])


def test_an_answer_can_be_sent_back(carol: APIClient) -> None:
    answer = carol.get("/api/v1/projects/talk/").json()
    assert carol.patch("/api/v1/projects/talk/", answer).json() == answer


def test_a_changed_guideline_is_a_new_version(carol: APIClient, project: Project) -> None:
    for text in ("First.", "First.", "Second."):
        assert changed(carol, guidelines=text).status_code == 200
    assert list(project.guidelines.values_list("version", "text")) == [(2, "Second."), (1, "First.")]


def test_an_empty_guideline_is_none(carol: APIClient) -> None:
    opened(carol, guidelines="")
    assert not Guideline.objects.exists()


def test_progress_counts_tasks_by_state(carol: APIClient, project: Project, cast: Cast) -> None:
    make_task(project)
    for user in cast.annotators:
        rate(project, user)
    make_task(project)
    progress = carol.get("/api/v1/projects/talk/").json()["progress"]
    assert [progress[name] for name in ("tasks", "open", "complete", "quarantined")] == [2, 1, 1, 0]


def test_people_see_their_projects_only(carol: APIClient, as_user: As, cast: Cast) -> None:
    make_project("other")
    assert [row["slug"] for row in carol.get("/api/v1/projects/").json()["results"]] == ["talk"]
    assert as_user(cast.dave).get("/api/v1/projects/").json()["results"] == []


def test_a_deleted_project_takes_its_tasks_along(carol: APIClient, project: Project, cast: Cast) -> None:
    make_task(project)
    rate(project, cast.alice)
    carol.post("/api/v1/projects/talk/archive/")
    assert carol.delete("/api/v1/projects/talk/?confirm=talk").status_code == 204
    assert not Project.objects.exists()


# Members ---------------------------------------------------------------------------------------------------


def admitted(client: APIClient, **fields: Any) -> Any:
    return client.post("/api/v1/projects/talk/members/", fields)


def test_an_account_joins_by_its_name(carol: APIClient, cast: Cast, project: Project) -> None:
    answer = admitted(carol, username="dave", role="reviewer")
    assert answer.status_code == 201
    fields = {
        "username",
        "pseudonym",
        "role",
        "offered_role",
        "accepted",
        "quota",
        "languages",
        "created_at",
        "tasks_ahead",
    }
    fields |= {"paused_at", "pause_reason", "qualified_at", "extra_tries", "acknowledged_version"}
    assert set(answer.json()) == fields
    assert answer.json()["pseudonym"] == pseudonym(cast.dave, project)


def test_a_password_makes_the_account(carol: APIClient) -> None:
    assert admitted(carol, username="frank", role="annotator", password=" tall order 9 ").status_code == 201
    assert User.objects.get(username="frank").check_password(" tall order 9 ")


def test_a_second_invitation_changes_the_role(carol: APIClient) -> None:
    answer = admitted(carol, username="alice", role="reviewer")
    assert (answer.status_code, answer.json()["role"]) == (200, "reviewer")


def test_no_role_leaves_the_role(carol: APIClient) -> None:
    assert admitted(carol, username="carol").json()["role"] == "manager"
    assert admitted(carol, username="dave").json()["role"] == "annotator"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"username": "frank"}, "unknown_account"),
        ({"username": "frank", "password": "short"}, "weak_password"),
        ({"username": "fr ank", "password": "tall order 9"}, "refused_name"),
        ({"username": "dave", "role": "king"}, "invalid"),
        ({"username": "", "role": "annotator"}, "invalid"),
        ({"username": "x" * 151, "password": "tall order 9"}, "invalid"),
        ({"role": "annotator"}, "invalid"),
        ({"username": "dave", "rôle": "manager"}, "invalid"),
    ],
)
def test_a_bad_invitation_is_400(carol: APIClient, fields: dict[str, str], code: str) -> None:
    answer = admitted(carol, **fields)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert not Membership.objects.filter(user__username__in=["dave", "frank"]).exists()


# Tasks, annotations ----------------------------------------------------------------------------------------


def test_a_task_is_shown_as_it_was_imported(carol: APIClient, project: Project) -> None:
    make_task(project, "one", metadata={"lang": "en"})
    (row,) = carol.get("/api/v1/projects/talk/tasks/").json()["results"]
    assert (row["id"], row["state"], row["metadata"]) == ("one", "open", {"lang": "en"})
    assert row["conversation"] == [{"role": "user", "content": "What is one?"}]
    assert row["responses"][1] == {"id": "2", "text": "Answer 1 to one.", "metadata": {}, "model": "model-1"}


def test_tasks_are_found_by_state_and_id(carol: APIClient, project: Project) -> None:
    make_task(project, "one")
    make_task(project, "two")
    results = carol.get("/api/v1/projects/talk/tasks/?external_id=two&state=open").json()["results"]
    assert [row["id"] for row in results] == ["two"]
    assert carol.get("/api/v1/projects/talk/tasks/?state=complete").json()["results"] == []


def test_tasks_are_found_by_the_filters_of_the_page(carol: APIClient, project: Project, cast: Cast) -> None:
    one = make_task(project, "one")
    make_task(project, "two", lang="de")
    take_words()
    rate(project, cast.alice, [0, 4])
    names = {
        "q=what+is+one": ["one"],
        "q=nobody": [],
        "language=German": ["two"],
        f"source={one.from_import_id}": ["one"],
    }
    names |= {"label=none": ["one", "two"], "label=labelled": [], "model=model-1&q=two": ["two"], "spread=1": []}
    for query, expected in names.items():
        results = carol.get(f"/api/v1/projects/talk/tasks/?{query}").json()["results"]
        assert [row["id"] for row in results] == expected, query


@pytest.mark.parametrize("wrong", ["label=x", "spread=many", "language=xx-nope", "source=1e3", "reward_from=x"])
def test_a_filter_of_tasks_that_there_is_not_is_400(carol: APIClient, project: Project, wrong: str) -> None:
    answer = carol.get(f"/api/v1/projects/talk/tasks/?{wrong}")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [wrong.partition("=")[0]])


def test_a_reviewer_cannot_filter_by_what_they_do_not_see(as_user: As, project: Project) -> None:
    rita = make_user("rita")
    make_member(project, rita, role=Role.REVIEWER)
    answer = as_user(rita).get("/api/v1/projects/talk/tasks/?model=model-1")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["model"])


def test_pages_lead_to_every_row_once(carol: APIClient, project: Project) -> None:
    for number in range(5):
        make_task(project, f"t{number}")
    seen, page = [], carol.get("/api/v1/projects/talk/tasks/?page_size=2").json()
    while True:
        seen += [row["id"] for row in page["results"]]
        if not page["next"]:
            break
        page = carol.get(page["next"]).json()
    assert (seen, set(page)) == ([f"t{number}" for number in range(5)], {"next", "previous", "results"})
    assert len(carol.get(page["previous"]).json()["results"]) == 2


@pytest.mark.parametrize(("size", "rows"), [("2", 2), ("0", 3), ("-1", 3), ("many", 3), ("9" * 30, 3)])
def test_a_page_size_that_is_none_is_the_usual(carol: APIClient, project: Project, size: str, rows: int) -> None:
    for _ in range(3):
        make_task(project)
    assert len(carol.get(f"/api/v1/projects/talk/tasks/?page_size={size}").json()["results"]) == rows


def test_an_annotation_is_shown_under_a_pseudonym(carol: APIClient, project: Project, cast: Cast) -> None:
    make_task(project, "one")
    rate(project, cast.alice, 2, justification="Because.", active_seconds=1.5)
    (row,) = carol.get("/api/v1/projects/talk/annotations/").json()["results"]
    assert (row["task"], row["annotator"], row["revision"]) == ("one", pseudonym(cast.alice, project), 1)
    assert (row["justification"], row["active_seconds"], row["origin"]) == ("Because.", 1.5, "person")
    assert row["ratings"][0]["scores"] == dict.fromkeys(ATTRIBUTES, 2)


def test_annotations_are_found_by_time(carol: APIClient, project: Project, cast: Cast) -> None:
    make_task(project)
    rate(project, cast.alice)
    path = "/api/v1/projects/talk/annotations/?submitted_at__{}=2026-02-01T00:00:00Z"
    assert len(carol.get(path.format("lt")).json()["results"]) == 1
    assert carol.get(path.format("gte")).json()["results"] == []


def test_an_odd_offset_is_a_time_all_the_same(carol: APIClient, project: Project, cast: Cast) -> None:
    """PostgreSQL itself refuses offsets of 16 hours and more."""
    make_task(project)
    rate(project, cast.alice)
    path = "/api/v1/projects/talk/annotations/?submitted_at__gte=2026-01-01T00:00:00-23:30"
    assert len(carol.get(path).json()["results"]) == 1


# As many queries for twenty rows as for three --------------------------------------------------------------


def grown(make: Callable[[int], object], count: Callable[[], int]) -> tuple[int, int]:
    for number in range(3):
        make(number)
    few = count()
    for number in range(3, 20):
        make(number)
    return few, count()


def test_the_list_of_projects_grows_without_queries(carol: APIClient, cast: Cast) -> None:
    def make(number: int) -> None:
        rubric = Rubric.objects.create(key=f"r{number}", name="R")
        project = Project.objects.create(slug=f"p{number}", name="P", rubric=rubric)
        make_member(project, cast.carol, role=Role.MANAGER)

    few, many = grown(make, lambda: queries(carol, "projects/"))
    assert few == many == 4


def test_the_list_of_memberships_grows_without_queries(carol: APIClient, cast: Cast) -> None:
    few, many = grown(lambda number: make_member(make_project(f"p{number}"), cast.carol), lambda: queries(carol, "me/"))
    assert few == many == 1


@pytest.mark.parametrize("name", ["tasks", "members"])
def test_a_project_s_lists_grow_without_queries(carol: APIClient, project: Project, name: str) -> None:
    def make(number: int) -> None:
        make_task(project)
        make_member(project, make_user(f"user-{number}"))

    few, many = grown(make, lambda: queries(carol, f"projects/talk/{name}/"))
    assert few == many


def test_the_list_of_annotations_grows_without_queries(carol: APIClient, project: Project, cast: Cast) -> None:
    for _ in range(20):
        make_task(project)
    users = [cast.alice, cast.bob]
    few, many = grown(
        lambda number: rate(project, users[number % 2]), lambda: queries(carol, "projects/talk/annotations/")
    )
    assert few == many


def test_a_member_may_be_limited_in_number_and_language(carol: APIClient, project: Project, cast: Cast) -> None:
    Tally.objects.create(annotator=cast.alice, project=project, line=50)
    answer = admitted(carol, username="alice", quota=100, languages=["de", "pt-br"])
    assert (answer.status_code, answer.json()["quota"], answer.json()["languages"]) == (200, 100, ["de", "pt-br"])
    assert Tally.objects.get().line == 0


@pytest.mark.parametrize("limits", [{"quota": -1}, {"quota": "many"}, {"languages": ["Deutsch!"]}, {"languages": "de"}])
def test_limits_that_make_no_sense_are_refused(carol: APIClient, cast: Cast, limits: dict[str, object]) -> None:
    assert admitted(carol, username="alice", **limits).status_code == 400
