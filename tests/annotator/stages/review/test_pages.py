"""The pages of reviewers: the queue, one task, recent submissions."""

import re
from typing import Any

import pytest
from django.test import Client

from annotator.models import (
    Adjudication,
    Assignment,
    Exclusion,
    Label,
    Project,
    Report,
    Response,
    Task,
    User,
    Verdict,
)
from annotator.stages import annotation
from annotator.stages.annotation import Submission
from annotator.stages.review import judge
from annotator.stages.review.queue import QueueKey, how_many_wait
from tests.builders import (
    ATTRIBUTES,
    NOW,
    claimed,
    imported,
    make_gold,
    make_task,
    pseudonym,
    rate,
    ratings_row,
    submission,
)
from tests.conftest import Cast

QUEUE = "/projects/talk/review/"
SUBMISSIONS = "/projects/talk/review/submissions/"


@pytest.fixture
def client(rita: User, client: Client) -> Client:
    client.force_login(rita)
    return client


@pytest.fixture
def dropped(project: Project, cast: Cast) -> Task:
    Project.objects.update(max_annotators=3)
    project.refresh_from_db()
    return far_apart(project, cast, "t-1")


def far_apart(project: Project, cast: Cast, name: str, *, least: int = 0) -> Task:
    made = make_task(project, name, prompt=f"What is {name}?\n\nSay it briefly.")
    for user, level in zip(cast.annotators, (least, 4, 4), strict=True):
        rate(project, user, level, justification="Because of the second line.")
    made.refresh_from_db()
    return made


def page_of(task: Task) -> str:
    return f"{QUEUE}{task.public_id}/"


def filled(task: Task, *levels: int, **fields: Any) -> dict[str, Any]:
    pairs = zip(task.responses.all(), levels or (3, 1), strict=True)
    scores = {f"{key}-{response.public_id}": level for response, level in pairs for key in ATTRIBUTES}
    return {**scores, "reason": "slip", **fields}


def read(client: Client, address: str) -> str:
    return client.get(address).content.decode()


# The queue -------------------------------------------------------------------------------------------------


def test_the_queue_lists_the_widest_spread_first(project: Project, cast: Cast, client: Client, dropped: Task) -> None:
    far_apart(project, cast, "t-2", least=1)
    said = read(client, QUEUE)
    assert said.index("What is t-1? Say it briefly.") < said.index("What is t-2?")
    assert "2 tasks are waiting." in said


def test_the_queue_comes_in_pages_without_gaps(project: Project, client: Client) -> None:
    Project.objects.update(max_annotators=3)
    project.refresh_from_db()
    imported(project, *(ratings_row(f"p{number:02}", "a", [0, 4, 4 - number % 2]) for number in range(30)))
    first = read(client, QUEUE)
    further = re.search(r'after=([\d.]+)"', first)
    assert further is not None
    second = read(client, f"{QUEUE}?after={further[1]}")
    shown = [re.findall(r">p(\d\d)<", page) for page in (first, second)]
    assert [len(numbers) for numbers in shown] == [25, 5]
    assert sorted(shown[0] + shown[1]) == [f"{number:02}" for number in range(30)]


def test_the_queue_is_narrowed_to_a_kind(client: Client, dropped: Task) -> None:
    assert "What is t-1?" in read(client, f"{QUEUE}?because=dropped")
    assert "No tasks of this kind are waiting." in read(client, f"{QUEUE}?because=safety")


def test_a_list_costs_the_same_for_many_rows(
    project: Project, client: Client, django_assert_max_num_queries: Any
) -> None:
    Project.objects.update(max_annotators=3)
    project.refresh_from_db()
    imported(project, *(ratings_row(f"p{number:02}", "a", [0, 4, 4]) for number in range(20)))
    with django_assert_max_num_queries(7):
        client.get(QUEUE)
    with django_assert_max_num_queries(13):
        client.get(SUBMISSIONS)


def test_counting_stops_where_nobody_reads_on(
    project: Project, cast: Cast, dropped: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    far_apart(project, cast, "t-2")
    monkeypatch.setattr("annotator.stages.review.queue.MOST_COUNTED", 0)
    assert how_many_wait(project) == 1


def test_places_are_read_as_they_are_written() -> None:
    assert QueueKey.read(str(QueueKey(3, 17))) == QueueKey(3, 17)
    assert [QueueKey.read(text) for text in ("", "3", "3.", "x.1", "3.-1", "3.1.1", "9" * 40, "1.²")] == [None] * 8


def test_any_task_is_found_by_its_id(project: Project, client: Client) -> None:
    task = make_task(project, "far away/1")
    assert client.get(QUEUE, {"find": " far away/1 "}).headers["Location"] == page_of(task)
    assert (
        "There is no task with the id “nothing”" in client.get(QUEUE, {"find": "nothing"}, follow=True).content.decode()
    )
    assert client.get(QUEUE, {"find": "\0"}).status_code == 400


def test_gold_tasks_stay_unseen(project: Project, client: Client) -> None:
    gold = make_gold(project, "g-1")
    assert client.get(page_of(gold)).status_code == 404
    assert "There is no task" in client.get(QUEUE, {"find": "g-1"}, follow=True).content.decode()


# Who may ---------------------------------------------------------------------------------------------------


def test_home_leads_reviewers_to_the_review(client: Client, cast: Cast) -> None:
    assert QUEUE in read(client, "/")
    client.force_login(cast.alice)
    assert QUEUE not in read(client, "/")


# One task --------------------------------------------------------------------------------------------------


def test_all_ratings_stand_side_by_side_without_names_and_models(
    client: Client, cast: Cast, dropped: Task, project: Project
) -> None:
    said = read(client, page_of(dropped))
    assert [f"Rater {number}" in said for number in (1, 2, 3, 4)] == [True, True, True, False]
    assert said.count("Because of the second line.") == 3
    for secret in ("model-0", "alice", *(pseudonym(user, dropped.project) for user in cast.annotators)):
        assert secret not in said


def test_nothing_is_chosen_beforehand(client: Client, dropped: Task) -> None:
    assert "checked" not in read(client, page_of(dropped))
    assert read(client, f"{page_of(dropped)}?start=means").count("checked") == 10


def test_settling_leads_to_the_next_task(project: Project, cast: Cast, client: Client, dropped: Task) -> None:
    following = far_apart(project, cast, "t-2", least=1)
    answer = client.post(page_of(dropped), filled(dropped, comment="Look at line 2."))
    assert answer.headers["Location"] == page_of(following)
    made = Adjudication.objects.get()
    assert (made.by.username, made.reason, made.comment) == ("rita", "slip", "Look at line 2.")
    assert [label.scores["helpfulness"] for label in Label.objects.in_force().order_by("response")] == [3, 1]
    assert client.post(page_of(following), filled(following)).headers["Location"] == QUEUE


def test_the_kind_that_was_chosen_stays_chosen(project: Project, cast: Cast, client: Client, dropped: Task) -> None:
    following = far_apart(project, cast, "t-2", least=1)
    answer = client.post(f"{page_of(dropped)}?because=dropped", filled(dropped))
    assert answer.headers["Location"] == f"{page_of(following)}?because=dropped"


def test_what_is_missing_is_said_and_what_was_chosen_kept(client: Client, dropped: Task) -> None:
    sent = filled(dropped)
    del sent["reason"]
    answer = client.post(page_of(dropped), sent)
    assert answer.status_code == 422
    assert "Say why the ratings differ." in answer.content.decode()
    assert answer.content.decode().count("checked") == 10
    assert not Adjudication.objects.exists()


def test_a_settled_task_shows_it_and_can_be_changed_or_taken_back(client: Client, dropped: Task) -> None:
    client.post(page_of(dropped), filled(dropped, comment="Look at line 2."))
    assert "Look at line 2." in read(client, page_of(dropped))
    assert read(client, f"{page_of(dropped)}?start=settled").count("checked") == 11
    client.post(f"{page_of(dropped)}withdraw/")
    assert not Label.objects.in_force().exists()


def test_the_preference_is_relative_to_the_shown_order(client: Client, dropped: Task) -> None:
    Project.objects.update(ask_preference=True)
    assert client.post(page_of(dropped), filled(dropped)).status_code == 422
    client.post(page_of(dropped), filled(dropped, preference=-2))
    assert Adjudication.objects.get().preference == -2
    assert "A is better" in read(client, page_of(dropped))


def test_an_open_task_is_to_be_read(project: Project, cast: Cast, client: Client) -> None:
    task = make_task(project)
    rate(project, cast.alice, 2)
    said = read(client, page_of(task))
    assert "This task is still waiting for annotators" in said
    assert 'class="likert' not in said
    answer = client.post(page_of(task), filled(task), follow=True)
    assert "This task is still waiting for annotators" in answer.content.decode()
    assert not Adjudication.objects.exists()


def test_everything_that_was_answered_is_shown(project: Project, cast: Cast, client: Client) -> None:
    Project.objects.update(ask_safety=True, ask_confidence=True)
    task = make_task(project, responses=1)
    rating = annotation.ResponseRating(
        dict.fromkeys(ATTRIBUTES, 2), ("repetitions",), confidence=1, safe=False, unsafe_category="bias"
    )
    made = Submission({Response.objects.get(task=task).pk: rating}, active_seconds=42)
    annotation.submit(claimed(project, cast.bob).pk, made, now=NOW)
    said = read(client, page_of(task))
    for text in ("Repeats itself", "Somewhat sure", "Unsafe: Bias or stereotype", "42 s of work"):
        assert text in said


def test_an_excluded_annotators_rating_is_marked(project: Project, cast: Cast, client: Client, dropped: Task) -> None:
    Exclusion.objects.create(project=project, annotator=cast.bob, reason="-", by=cast.carol, made_at=NOW)
    Assignment.objects.filter(annotator=cast.bob).update(counts=False, slot=None)
    assert "This rating does not count, because its annotator is excluded." in read(client, page_of(dropped))


# Quarantine ------------------------------------------------------------------------------------------------


@pytest.fixture
def set_aside(project: Project, cast: Cast, dropped: Task) -> Task:
    annotation.report(dropped.assignments.order_by("pk")[0].pk, category="bias", note="Sailors.", now=NOW)
    return dropped


def test_a_reviewer_reads_why_a_task_is_set_aside(client: Client, set_aside: Task) -> None:
    said = read(client, page_of(set_aside))
    assert 'Bias or stereotype: <span dir="auto">Sailors.</span>' in said
    assert "back to the queue" not in said
    assert client.post(f"{page_of(set_aside)}decide/", {"decision": "release"}).status_code == 403


@pytest.mark.parametrize("decision", ["", "retired"])
def test_a_word_that_is_none_of_the_buttons_decides_nothing(
    client: Client, cast: Cast, set_aside: Task, decision: str
) -> None:
    client.force_login(cast.carol)
    answer = client.post(f"{page_of(set_aside)}decide/", {"decision": decision}, follow=True)
    set_aside.refresh_from_db()
    assert set_aside.state == Task.State.QUARANTINED
    assert "Choose one of the two buttons" in answer.content.decode()


@pytest.mark.parametrize(("decision", "state"), [("release", "complete"), ("retire", "retired")])
def test_a_manager_decides_on_the_same_page(
    client: Client, cast: Cast, set_aside: Task, decision: str, state: str
) -> None:
    client.force_login(cast.carol)
    assert "False alarm: back to the queue" in read(client, page_of(set_aside))
    client.post(f"{page_of(set_aside)}decide/", {"decision": decision})
    set_aside.refresh_from_db()
    assert set_aside.state == state
    again = client.post(f"{page_of(set_aside)}decide/", {"decision": decision}, follow=True)
    assert "no longer set aside" in again.content.decode()
    assert Report.objects.exclude(decision="").count() == 1


# Submissions -----------------------------------------------------------------------------------------------


def test_submissions_come_newest_first_until_they_are_judged(
    project: Project, cast: Cast, client: Client, rita: User
) -> None:
    for name in ("one", "two"):
        make_task(project, name)
        held = rate(project, cast.alice, 2).annotation.assignment
    said = read(client, SUBMISSIONS)
    assert said.index("What is two?") < said.index("What is one?")
    judge(held.pk, decision="accepted", by=rita, now=NOW)
    assert "What is two?" not in read(client, SUBMISSIONS)
    assert "What is two?" in read(client, f"{SUBMISSIONS}?verdict=all")


def test_submissions_are_narrowed_to_a_verdict(project: Project, cast: Cast, client: Client, rita: User) -> None:
    for name, decisions in (("one", ["accepted"]), ("two", ["accepted", "rejected"]), ("three", [])):
        make_task(project, name)
        held = rate(project, cast.alice, 2).annotation.assignment
        for decision in decisions:
            judge(held.pk, decision=decision, comment="Look.", by=rita, now=NOW)
    shown = {
        verdict: sorted(re.findall(r">What is (\w+)\?</a>", read(client, f"{SUBMISSIONS}?verdict={verdict}")))
        for verdict in ("accepted", "rejected", "unjudged", "all", "nonsense")
    }
    assert shown == {
        "accepted": ["one"],
        "rejected": ["two"],
        "unjudged": ["three"],
        "all": ["one", "three", "two"],
        "nonsense": ["three"],
    }


def test_submissions_are_narrowed_to_an_annotator_by_pseudonym(project: Project, cast: Cast, client: Client) -> None:
    make_task(project)
    rate(project, cast.alice, justification="The one.")
    rate(project, cast.bob, justification="The other.")
    name = pseudonym(cast.bob, project)
    said = read(client, f"{SUBMISSIONS}?annotator={name}")
    assert ("The one." in said, "The other." in said) == (False, True)
    assert f"<option selected>{name}</option>" in said
    assert ("alice" in said, "bob" in said) == (False, False)
    assert "The one." in read(client, f"{SUBMISSIONS}?annotator=alice")


def test_a_submission_opens_to_the_beginnings_of_its_texts(project: Project, cast: Cast, client: Client) -> None:
    make_task(project, "long", prompt="Why? " * 300)
    rate(project, cast.alice, justification="As it says.")
    said = read(client, SUBMISSIONS)
    assert "Answer 1 to long." in said
    assert "As it says." in said
    assert said.count("Why?") < 250


def test_older_submissions_keep_to_what_was_chosen(project: Project, cast: Cast, client: Client) -> None:
    for number in range(26):
        make_task(project, f"n{number}")
        rate(project, cast.alice)
    name = pseudonym(cast.alice, project)
    said = read(client, f"{SUBMISSIONS}?verdict=all&annotator={name}")
    older = re.search(r'href="(\?[^"]*before=\d+)"', said)
    assert older is not None
    assert {"verdict=all", f"annotator={name}"} <= set(older[1][1:].split("&amp;"))


def test_settling_leads_a_reviewer_past_what_a_manager_decides(
    project: Project, cast: Cast, client: Client, dropped: Task
) -> None:
    aside, following = (far_apart(project, cast, name, least=least) for name, least in (("t-2", 0), ("t-3", 1)))
    annotation.report(aside.assignments.earliest("pk").pk, category="bias", note="Look.", now=NOW)
    assert client.post(page_of(dropped), filled(dropped)).headers["Location"] == page_of(following)
    client.force_login(cast.carol)
    assert client.post(page_of(following), filled(following)).headers["Location"] == page_of(aside)


def test_ones_own_are_no_work_for_oneself(project: Project, client: Client, rita: User) -> None:
    make_task(project, "mine")
    rate(project, rita)
    assert "What is mine?" not in read(client, SUBMISSIONS)
    every = read(client, f"{SUBMISSIONS}?verdict=all")
    assert "Your own rating: somebody else has to judge it." in every
    assert ("Your own</span>" in every, "Read or reject" in every) == (True, False)


def test_gold_submissions_are_left_out(project: Project, cast: Cast, client: Client) -> None:
    gold = make_gold(project, "g-1")
    held = Assignment.objects.create(
        task=gold, annotator=cast.alice, slot=1, response_order=[0, 1], leased_at=NOW, lease_expires_at=NOW
    )
    annotation.submit(held.pk, submission(gold), now=NOW)
    assert "g-1" not in read(client, f"{SUBMISSIONS}?verdict=all")


def test_submissions_come_in_pages(project: Project, cast: Cast, client: Client) -> None:
    for number in range(27):
        make_task(project, f"n{number:02}")
        rate(project, cast.alice)
    first = read(client, SUBMISSIONS)
    older = re.search(r"before=(\d+)", first)
    assert older is not None
    assert re.findall(r"What is (n\d\d)\?</a>", read(client, f"{SUBMISSIONS}?before={older[1]}")) == ["n01", "n00"]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"decision": "accepted"}, "Accepted."),
        ({"decision": "rejected", "comment": "No."}, "Rejected. The rating no longer counts."),
        ({"decision": "rejected"}, "Say why you reject the rating"),
    ],
)
def test_a_verdict_is_given_where_it_was_read(client: Client, dropped: Task, sent: dict[str, str], said: str) -> None:
    held = dropped.assignments.order_by("pk")[0]
    answer = client.post(f"{SUBMISSIONS}{held.pk}/", {**sent, "next": f"{SUBMISSIONS}?verdict=all"}, follow=True)
    assert answer.redirect_chain == [(f"{SUBMISSIONS}?verdict=all", 302)]
    assert said in answer.content.decode()
    assert Verdict.objects.count() == (said != "Say why you reject the rating")


def test_a_verdict_without_a_place_leads_to_the_task(client: Client, dropped: Task) -> None:
    held = dropped.assignments.order_by("pk")[0]
    sent = {"decision": "accepted", "next": "https://example.org/"}
    assert client.post(f"{SUBMISSIONS}{held.pk}/", sent).headers["Location"] == page_of(dropped)
    assert client.post(f"{SUBMISSIONS}{held.pk}/", {"decision": "perhaps"}).status_code == 404
