"""Segments rated one by one: leased, submitted, compared, agreed on and settled, at every door."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from rest_framework.test import APIClient

from annotator.models import Annotation, AuditEntry, Draft, Label, Project, Rating, Response, Rubric, Task, User
from annotator.stages import consensus
from annotator.stages.annotation import cuts_of
from annotator.stages.consensus.rules import Rated, Rules, mean_scores, spread
from annotator.stages.pii.redaction import Choice, redact
from annotator.stages.segmenting import is_partition, ranges
from rewards.models import Score
from tests.builders import NOW, imported, make_member, make_project, make_task, make_user, task_row
from tests.conftest import As
from tests.rewards.api.test_api import make_model

TEXT = "It rains. It pours. It ends."
ASPECTS = ["helpfulness", "correctness", "safety", "completeness", "clarity"]


@pytest.fixture
def project(db: None) -> Project:
    project = make_project(max_annotators=3)
    project.rubric = Rubric.objects.get(key="helpsteer2d", project=None)
    project.save()
    return project


@pytest.fixture
def task(project: Project) -> Task:
    row = task_row("t1") | {"responses": [{"id": "a", "text": TEXT}, {"id": "b", "text": "One."}]}
    assert imported(project, row).created == 1
    return Task.objects.get(project=project)


@pytest.fixture
def raters(project: Project) -> list[User]:
    users = [make_user(name) for name in ("alice", "bob", "erin")]
    for user in users:
        make_member(project, user)
    return users


def body(lease: Any, *levels: int | None, **fields: Any) -> dict[str, Any]:
    """A rating of every segment: the nth segment of each response gets the nth level in every aspect."""
    ratings = [
        {
            "response": response["id"],
            "scores": {},
            "segments": [
                {"index": segment["index"], "scores": dict.fromkeys(ASPECTS, levels[segment["index"]])}
                for segment in response["segments"]
            ],
        }
        for response in lease["task"]["responses"]
    ]
    return {"ratings": ratings, **fields}


def lease(client: APIClient) -> Any:
    return client.post("/api/v1/projects/talk/next/").json()


def rate(client: APIClient, *levels: int | None) -> Any:
    leased = lease(client)
    answer = client.put(f"/api/v1/assignments/{leased['assignment']}/annotation/", body(leased, *levels), format="json")
    assert answer.status_code == 201, answer.json()
    return answer.json()


def number(leased: Any, text: str) -> int:
    return next(place for place, one in enumerate(leased["task"]["responses"]) if one["text"] == text)


def refused(client: APIClient, change: Callable[[Any], None]) -> str:
    """What is said to a rating of the segmented response that was changed in this way."""
    leased = lease(client)
    sent = body(leased, 3, 3, 3)
    change(sent["ratings"][number(leased, TEXT)])
    answer = client.put(f"/api/v1/assignments/{leased['assignment']}/annotation/", sent, format="json")
    assert answer.status_code == 400
    return str(answer.json())


def test_a_lease_names_the_segments(task: Task, raters: list[User], as_user: As) -> None:
    leased = lease(as_user(raters[0]))
    of_text = leased["task"]["responses"][number(leased, TEXT)]["segments"]
    assert of_text == [
        {"index": 0, "start": 0, "end": 10},
        {"index": 1, "start": 10, "end": 20},
        {"index": 2, "start": 20, "end": 28},
    ]
    assert "segments" in leased["asks"]


def test_the_cut_is_stored_and_stays(task: Task, raters: list[User], as_user: As) -> None:
    lease(as_user(raters[0]))
    stored = Response.objects.get(external_id="a")
    assert stored.segments == [[0, 10], [10, 20], [20, 28]]
    Response.objects.filter(pk=stored.pk).update(segments=[[0, 28]])
    leased = lease(as_user(raters[1]))
    assert len(leased["task"]["responses"][number(leased, TEXT)]["segments"]) == 1


def test_a_rating_is_stored_by_segment_and_aspect(task: Task, raters: list[User], as_user: As) -> None:
    answer = rate(as_user(raters[0]), 4, 0, None)
    annotation = Annotation.objects.get(pk=answer["annotation"])
    assert annotation.aspects == ASPECTS
    assert annotation.ratings.get(response__external_id="a").segment_scores == [[4] * 5, [0] * 5, [None] * 5]
    sent = next(one for one in answer["ratings"] if len(one["segments"]) == 3)
    assert sent["segments"][2] == {"index": 2, "scores": dict.fromkeys(ASPECTS)}


def test_the_same_rating_again_changes_nothing(task: Task, raters: list[User], as_user: As) -> None:
    leased = lease(as_user(raters[0]))
    address = f"/api/v1/assignments/{leased['assignment']}/annotation/"
    first, again, other = (
        as_user(raters[0]).put(address, body(leased, *levels), format="json")
        for levels in ((1, 2, 3), (1, 2, 3), (1, 2, 4))
    )
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 200)
    assert again.json() == first.json()
    assert other.json()["revision"] == 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda rating: rating["segments"].pop(), "it has 3 segments, and 2 are rated"),
        (lambda rating: rating.pop("segments"), "it has 3 segments, and 0 are rated"),
        (lambda rating: rating["segments"][0]["scores"].pop("safety"), "segment 1: Safety has no answer"),
        (lambda rating: rating["segments"][1]["scores"].update(safety=5), "segment 2, safety is 5"),
        (lambda rating: rating["segments"][1]["scores"].update(wit=1), "segment 2: wit is not an attribute"),
        (lambda rating: rating["segments"][1].update(index=0), "Give each segment once"),
        (lambda rating: rating["segments"][1]["scores"].update(safety=True), "whole numbers by aspect"),
        (lambda rating: rating["segments"][1]["scores"].update(safety="4"), "whole numbers by aspect"),
        (lambda rating: rating.update(segments="all fine"), "Send a list of segments"),
        (lambda rating: rating.update(cut=[[0, 28]]), "allows nobody to change the segments"),
        (lambda rating: rating.update(comments=[{"start": 5, "end": 99, "text": "?"}]), "of a text that has 28"),
        (lambda rating: rating.update(comments=[{"start": 5, "end": 9, "text": " "}]), "comment 1 is empty"),
        (lambda rating: rating.update(comments=[{"start": 5, "end": 9, "text": "a\0b"}]), "cannot be stored"),
    ],
)
def test_a_rating_off_the_segments_is_refused(
    task: Task, raters: list[User], as_user: As, change: Callable[[Any], None], says: str
) -> None:
    assert says in refused(as_user(raters[0]), change)


def test_a_comment_is_kept_with_its_place(task: Task, raters: list[User], as_user: As) -> None:
    leased = lease(as_user(raters[0]))
    sent = body(leased, 3, 3, 3)
    sent["ratings"][number(leased, TEXT)]["comments"] = [{"start": 3, "end": 8, "text": "It snows."}]
    answer = as_user(raters[0]).put(f"/api/v1/assignments/{leased['assignment']}/annotation/", sent, format="json")
    assert answer.status_code == 201
    assert Rating.objects.get(response__external_id="a").comments == [[3, 8, "It snows."]]


def test_three_ratings_become_labels_of_segments(task: Task, raters: list[User], as_user: As) -> None:
    for user, levels in zip(raters, ((4, 1, None), (3, 1, None), (4, 2, 2)), strict=True):
        rate(as_user(user), *levels)
    label = Label.objects.get(response__external_id="a")
    assert label.aspects == ASPECTS
    assert label.segment_scores == [[4] * 5, [1] * 5, [None] * 5]
    assert label.segment_means == [[pytest.approx(11 / 3)] * 5, [pytest.approx(4 / 3)] * 5, [None] * 5]


def test_a_wide_spread_on_one_segment_asks_for_more(task: Task, raters: list[User], as_user: As) -> None:
    Project.objects.update(max_annotators=5)
    for user, level in zip(raters, (0, 4, 4), strict=True):
        rate(as_user(user), 4, level, 4)
    task.refresh_from_db()
    assert (task.state, task.slots_wanted) == (Task.State.OPEN, 5)


def test_a_share_of_segments_may_differ_more(task: Task, raters: list[User], as_user: As) -> None:
    Project.objects.update(max_annotators=5, spread_share=0.4)
    for user, level in zip(raters, (0, 4, 4), strict=True):
        rate(as_user(user), 4, level, 4)
    task.refresh_from_db()
    assert task.state == Task.State.COMPLETE


@pytest.mark.parametrize(("share", "width"), [(0.0, 4), (0.1, 4), (0.25, 3), (0.5, 2), (0.75, 1), (0.9, 1)])
def test_the_spread_that_more_than_a_share_of_segments_reach(share: float, width: int) -> None:
    levels = ((0, 0, 0, 0), (4, 3, 2, 1))
    rated = [Rated(n, {(7, i): {"clarity": level} for i, level in enumerate(row)}) for n, row in enumerate(levels)]
    assert spread(rated, "clarity", share) == width


def test_the_mean_of_a_segment_is_that_of_those_to_whom_the_aspect_applies() -> None:
    rows: Sequence[dict[str, int]] = ({"safety": 4}, {"safety": 3}, {})
    rated = [Rated(n, {(7, 0): scores}, aspects=("safety",)) for n, scores in enumerate(rows)]
    assert mean_scores(rated) == {(7, 0): {"safety": 3.5}}
    assert mean_scores([*rated[1:], Rated(3, {(7, 0): {}}, aspects=("safety",))]) == {(7, 0): {}}


def test_own_segments_are_compared_on_the_finest_common_cut(task: Task, raters: list[User], as_user: As) -> None:
    Project.objects.update(allow_recut=True)
    rate(as_user(raters[0]), 4, 2, 0)
    leased = lease(as_user(raters[1]))
    sent = body(leased, 3, 1, 1)
    rating = sent["ratings"][number(leased, TEXT)]
    rating |= {"cut": [[0, 20], [20, 25], [25, 28]]}
    assert (
        as_user(raters[1])
        .put(f"/api/v1/assignments/{leased['assignment']}/annotation/", sent, format="json")
        .json()["ratings"]
    )
    rate(as_user(raters[2]), 4, 2, 1)
    label = Label.objects.get(response__external_id="a")
    assert label.cut == [[0, 10], [10, 20], [20, 25], [25, 28]]
    assert [row[0] for row in label.segment_means or []] == [
        pytest.approx(11 / 3),
        pytest.approx(7 / 3),
        pytest.approx(2 / 3),
        pytest.approx(2 / 3),
    ]
    assert consensus.spread([], "clarity") is None


def test_an_own_cut_must_partition_the_text(task: Task, raters: list[User], as_user: As) -> None:
    Project.objects.update(allow_recut=True)
    assert "belong to none" in refused(
        as_user(raters[0]), lambda rating: rating.update(cut=[[0, 5], [6, 20], [20, 28]])
    )


def test_the_database_refuses_cells_off_every_scale(task: Task, raters: list[User], as_user: As) -> None:
    rate(as_user(raters[0]), 4, 1, 1)
    bad: Any
    for bad in ([[7]], [[1.5]], [["4"]], [[True]], [4], {"0": [4]}, [[[1]]], "x"):
        with pytest.raises(IntegrityError), transaction.atomic():
            Rating.objects.update(segment_scores=bad)
    for bad in ([[0]], [[3, 3]], [[-1, 2]], [["0", 2]], [0, 2], {}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Response.objects.update(segments=bad)


def test_a_project_of_whole_responses_takes_no_segments(db: None, as_user: As) -> None:
    project = make_project("plain")
    make_task(project, "t")
    alice = make_user("alice")
    make_member(project, alice)
    leased = as_user(alice).post("/api/v1/projects/plain/next/").json()
    assert "segments" not in leased["task"]["responses"][0]
    scores = dict.fromkeys(project.attribute_keys(), 3)
    ratings = [{"response": one["id"], "scores": scores, "segments": []} for one in leased["task"]["responses"]]
    ratings[0]["segments"] = [{"index": 0, "scores": {"safety": 1}}]
    answer = as_user(alice).put(
        f"/api/v1/assignments/{leased['assignment']}/annotation/", {"ratings": ratings}, format="json"
    )
    assert "leave out the segments" in str(answer.json())


def test_a_reviewer_settles_segments(task: Task, raters: list[User], as_user: As) -> None:
    for user in raters:
        rate(as_user(user), 4, 1, 1)
    judge = make_user("judge")
    make_member(Project.objects.get(), judge, "manager")
    client = as_user(judge)
    seen = client.get(f"/api/v1/review/{task.public_id}/").json()
    assert seen["raters"][0]["ratings"][0]["segments"]
    ratings = [{"response": one["id"], "scores": {}} for one in seen["responses"]]
    ratings[0]["segments"] = [
        {"index": segment["index"], "scores": dict.fromkeys(ASPECTS, 2)} for segment in seen["responses"][0]["segments"]
    ]
    answer = client.put(
        f"/api/v1/tasks/{task.public_id}/adjudication/", {"ratings": ratings, "reason": "slip"}, format="json"
    )
    assert answer.status_code == 200, answer.json()
    labels = {label.response.external_id: label for label in Label.objects.filter(source="adjudicated")}
    assert labels["a"].segment_scores == [[2] * 5] * 3
    assert labels["b"].segment_scores == [[4] * 5]  # the annotators' own, which the reviewer left alone


def test_a_reviewer_settles_all_segments_of_a_response_or_none(task: Task, raters: list[User], as_user: As) -> None:
    for user in raters:
        rate(as_user(user), 4, 1, 1)
    judge = make_user("judge")
    make_member(Project.objects.get(), judge, "manager")
    responses = [{"response": one.public_id, "scores": {}} for one in Response.objects.order_by("position")]
    responses[0]["segments"] = [{"index": 0, "scores": dict.fromkeys(ASPECTS, 2)}]
    answer = as_user(judge).put(
        f"/api/v1/tasks/{task.public_id}/adjudication/", {"ratings": responses, "reason": "slip"}, format="json"
    )
    assert answer.status_code == 400
    assert "it has 3 segments, and 1 are rated" in str(answer.json())


def test_rules_are_read_with_the_share() -> None:
    assert Rules.of(Project(spread_share=0.25)).share == 0.25


# Erased texts ----------------------------------------------------------------------------------------------


def redacted(task: Task, *quotes: str) -> Response:
    Task.objects.filter(pk=task.pk).update(state="quarantined")
    redact(task.pk, Choice(quotes=quotes), now=NOW)
    response = Response.objects.get(external_id="a")
    assert is_partition(len(response.text), ranges(response.segments))
    return response


def test_segments_move_with_a_redaction(task: Task, raters: list[User], as_user: As) -> None:
    rate(as_user(raters[0]), 4, 1, 2)
    Rating.objects.filter(response__external_id="a").update(comments=[[13, 18, "It pours, you say."]])
    response = redacted(task, "pours")
    texts = [segment.of(response.text) for segment in ranges(response.segments)]
    removed = "[personal information removed]"
    assert texts == ["It rains. ", f"It {removed}. ", "It ends."]
    rating = Rating.objects.get(response=response)
    assert rating.segment_scores == [[4] * 5, [1] * 5, [2] * 5]
    assert rating.comments == [[13, 13 + len(removed), f"It {removed}, you say."]]


def test_a_segment_that_is_erased_takes_its_scores_along(task: Task, raters: list[User], as_user: As) -> None:
    for user in raters:
        rate(as_user(user), 4, 1, 2)
    response = redacted(task, "rains. It pours. It")
    texts = [segment.of(response.text) for segment in ranges(response.segments)]
    assert texts == ["It [personal information removed]", " ends."]
    for rating in Rating.objects.filter(response=response):
        assert rating.segment_scores == [[4] * 5, [2] * 5]
    label = Label.objects.get(response=response)
    assert (label.segment_scores, label.segment_means) == ([[4] * 5, [2] * 5], [[4.0] * 5, [2.0] * 5])


def test_a_draft_says_nothing_of_another_segment(task: Task, raters: list[User], as_user: As) -> None:
    leased = lease(as_user(raters[0]))
    response = Response.objects.get(external_id="a")
    form = {f"seg-{response.public_id}-2-safety": "3", f"cut-{response.public_id}": "28", "justification": "So."}
    Draft.objects.create(assignment_id=leased["assignment"], form=form, saved_at=NOW)
    redacted(task, "rains. It pours. It")
    assert Draft.objects.get().form == {"justification": "So."}


# A manager's cut -------------------------------------------------------------------------------------------


@pytest.fixture
def boss(project: Project) -> User:
    user = make_user("boss")
    make_member(project, user, "manager")
    return user


def put_segments(client: APIClient, task: Task, segments: Any) -> Any:
    response = Response.objects.get(external_id="a").public_id
    body = {"responses": [{"response": response, "segments": segments}]}
    return client.put(f"/api/v1/tasks/{task.public_id}/segments/", body, format="json")


@pytest.mark.parametrize("given", [[[0, 20], [20, 28]], ["It rains. It pours. ", "It ends."]])
def test_a_manager_changes_the_segments_before_anybody_rates(task: Task, boss: User, as_user: As, given: Any) -> None:
    answer = put_segments(as_user(boss), task, given)
    assert answer.status_code == 200, answer.json()
    assert Response.objects.get(external_id="a").segments == [[0, 20], [20, 28]]
    shown = as_user(boss).get(f"/api/v1/tasks/{task.public_id}/segments/").json()
    assert [len(one["segments"]) for one in shown["responses"]] == [2, 1]
    assert AuditEntry.objects.filter(action="task.recut").exists()


def test_of_two_managers_who_change_segments_one_is_told(task: Task, boss: User, as_user: As) -> None:
    client, path = as_user(boss), f"/api/v1/tasks/{task.public_id}/segments/"
    read = client.get(path).json()["responses"][0]
    seen = [[one["start"], one["end"]] for one in read["segments"]]
    body = {"responses": [{"response": read["id"], "segments": [[0, len(read["text"])]], "seen": seen}]}
    assert client.put(path, body, format="json").status_code == 200
    again = client.put(path, body, format="json")
    assert (again.status_code, again.json()["code"]) == (409, "recut_meanwhile")


def test_a_models_scores_of_former_segments_go(task: Task, boss: User, as_user: As) -> None:
    response = Response.objects.get(external_id="a")
    cuts_of(task.project, task, [response])
    rows = [[3.0] * 5, [1.0] * 5, [2.0] * 5]
    Score.objects.create(
        reward_model=make_model(task.project), response=response, scores={}, segment_scores=rows, reward=0.5
    )
    redacted(task, "rains. It pours. It")
    assert Score.objects.get().segment_scores == [rows[0], rows[2]]
    Task.objects.update(state="open")
    whole = [[0, len(Response.objects.get(external_id="a").text)]]
    assert put_segments(as_user(boss), task, whole).status_code == 200
    assert Score.objects.get().segment_scores is None


def test_segments_that_somebody_rates_stay(task: Task, boss: User, raters: list[User], as_user: As) -> None:
    lease(as_user(raters[0]))
    answer = put_segments(as_user(boss), task, [[0, 28]])
    assert (answer.status_code, answer.json()["code"]) == (409, "in_use")
    assert len(Response.objects.get(external_id="a").segments or []) == 3


def test_a_cut_that_does_not_fit_is_refused(task: Task, boss: User, as_user: As) -> None:
    for given in ([[0, 5]], ["It snows."], [[0, 28], "x"], "all", []):
        assert put_segments(as_user(boss), task, given).status_code == 400, given


def test_the_page_changes_segments_written_as_parts(task: Task, boss: User, client: Client) -> None:
    client.force_login(boss)
    address = f"/projects/talk/data/tasks/{task.public_id}/"
    assert "It rains. \n-----\nIt pours. " in client.get(address).content.decode()
    text = "It rains.\r\n-----\r\nIt pours. It ends."
    client.post(f"{address}segments/", {"position": 0, "parts": text})
    assert Response.objects.get(external_id="a").segments == [[0, 10], [10, 28]]
    told = client.post(f"{address}segments/", {"position": 0, "parts": "It snows."}, follow=True).content.decode()
    assert "does not follow the one before" in told
