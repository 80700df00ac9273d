"""What reviewers and managers see of it: the page, REST, the command."""

import io
import os
import re
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client

from annotator import tasks
from annotator.models import BackgroundFailure, Exclusion, Project, RaterQuality, User
from annotator.stages import review
from tests.annotator.analysis.quality.test_flags import FINE
from tests.builders import NOW, make_member, make_project, make_task, make_user, pseudonym, rate
from tests.conftest import As, Cast

PAGE = "/projects/talk/annotators/"
SAME = {"helpfulness": {"levels": 0.7, "usual": 0.6, "reliability": None, "stretch": 1.0}, "verbosity": None}
HURRIED = {"kind": "speeding", "evidence": {"hurried": 30, "timed": 40, "seconds": 9.0}}


@pytest.fixture
def known(project: Project, cast: Cast) -> Project:
    """alice is fine; bob hurries, as a task shows."""
    task = make_task(project, "t-17")
    for user, flags in ((cast.alice, []), (cast.bob, [{**HURRIED, "examples": [task.pk]}])):
        values = {"annotations": 40, "measures": FINE | {"rated_by_all": 0}, "flags": flags, "computed_at": NOW}
        RaterQuality.objects.create(project=project, annotator=user, **values)
    return project


def page(client: Client, user: User) -> str:
    client.force_login(user)
    answer = client.get(PAGE)
    assert answer.status_code == 200
    return answer.content.decode()


# The page --------------------------------------------------------------------------------------------------


def test_it_says_when_it_is_looked_into_anew(known: Project, cast: Cast, client: Client) -> None:
    assert "It is checked again once more tasks are rated" in page(client, cast.carol)
    make_task(known)
    rate(known, cast.alice)
    shown = page(client, cast.carol)
    assert "It is checked again after 4 more tasks, at" in shown


@pytest.mark.parametrize(
    ("odd", "why"), [({"ratings": 19}, "fewer than 20 responses that"), ({"scatter": SAME}, "almost the same score")]
)
def test_a_reliability_that_says_nothing_is_not_shown(
    known: Project, cast: Cast, client: Client, odd: dict[str, Any], why: str
) -> None:
    assert why not in page(client, cast.carol)
    RaterQuality.objects.filter(annotator=cast.bob).update(measures=FINE | {"rated_by_all": 0} | odd)
    assert why in page(client, cast.carol)


def test_a_manager_readmits_from_the_page(known: Project, cast: Cast, client: Client) -> None:
    review.exclude(known, cast.alice, reason="-", by=cast.carol, now=NOW)
    where = "/projects/talk/people/alice/readmit/"
    assert f'action="{where}"' in page(client, cast.carol)
    assert client.post(where, {"next": PAGE}).headers["Location"] == PAGE
    assert not Exclusion.objects.exists()


def test_nobody_standing_out_is_said_as_such(known: Project, cast: Cast, client: Client) -> None:
    RaterQuality.objects.update(flags=[])
    assert "Nothing stands out" in page(client, cast.carol)


@pytest.fixture
def unsure(known: Project, cast: Cast) -> Project:
    """Of alice and erin too little is known, and less good of erin."""
    few = FINE | {"rated_by_all": 0, "too_few": True, "shared": 8}
    RaterQuality.objects.filter(annotator=cast.alice).update(measures=few | {"kappa": 0.21})
    values = {"annotations": 9, "flags": [], "computed_at": NOW, "measures": few | {"kappa": 0.04}}
    RaterQuality.objects.create(project=known, annotator=cast.erin, **values)
    return known


def test_it_says_of_whom_too_little_is_known_and_shows_the_lowest(unsure: Project, cast: Cast, client: Client) -> None:
    shown = page(client, cast.carol)
    assert "2 annotators cannot be judged yet" in shown
    assert shown.index("(0.04, 8 responses)") < shown.index("(0.21, 8 responses)")
    assert shown.count("too few to judge") == 2


def test_the_page_of_a_person_says_that_too_little_is_known(unsure: Project, cast: Cast, client: Client) -> None:
    client.force_login(cast.carol)
    shown = client.get("/projects/talk/people/erin/").content.decode()
    assert "too few of the same responses to tell this work from guessing" in shown


def test_rest_says_of_whom_too_little_is_known(unsure: Project, cast: Cast, as_user: As) -> None:
    rows = as_user(cast.carol).get("/api/v1/projects/talk/annotators/").json()["results"]
    assert {row["annotator"]: row["too_few"] for row in rows} == {"alice": True, "bob": False, "erin": True}


def test_a_flag_comes_with_its_numbers_and_a_task_to_look_at(known: Project, cast: Cast, client: Client) -> None:
    shown = page(client, cast.carol)
    assert "30 of 40 tasks with a known duration" in shown
    assert f'<a href="/projects/talk/review/{known.tasks.get().public_id}/"><bdi>t-17</bdi></a>' in shown


def test_managers_see_names_and_reviewers_pseudonyms(known: Project, cast: Cast, client: Client, rita: User) -> None:
    assert "bob" in page(client, cast.carol)
    shown = page(client, rita)
    assert pseudonym(cast.bob, known) in shown
    assert not re.search(r"\bbob\b", shown), "the letters alone may stand in a token"


def test_only_managers_are_led_to_excluding(known: Project, cast: Cast, client: Client, rita: User) -> None:
    assert "Exclude …" in page(client, cast.carol)
    assert "Exclude …" not in page(client, rita)


def test_who_is_excluded_is_shown_as_such(known: Project, cast: Cast, client: Client) -> None:
    Exclusion.objects.create(project=known, annotator=cast.bob, reason="A bot.", by=cast.carol, made_at=NOW)
    shown = page(client, cast.carol)
    assert "excluded since" in shown
    assert "Exclude …" not in shown


def test_it_says_what_came_since(known: Project, cast: Cast, client: Client) -> None:
    rate(known, cast.erin)
    assert "1 task rated since then" in page(client, cast.carol)


def test_before_the_first_look_it_says_when_that_will_be(project: Project, cast: Cast, client: Client) -> None:
    assert "The light worker checks it" in page(client, cast.carol)


def test_a_task_that_is_gone_is_not_linked(known: Project, cast: Cast, client: Client) -> None:
    known.tasks.all().delete()
    assert 'class="examples"' not in page(client, cast.carol)


def test_many_cost_no_more_queries_than_few(
    known: Project, cast: Cast, client: Client, django_assert_max_num_queries: Callable[..., "pytest.MonkeyPatch"]
) -> None:
    for number in range(60):
        values = {
            "annotations": 1,
            "measures": FINE | {"rated_by_all": 0},
            "flags": [{**HURRIED, "examples": [number]}],
        }
        user = make_user(f"u{number}")
        make_member(known, user)
        RaterQuality.objects.create(project=known, annotator=user, computed_at=NOW, **values)
    client.force_login(cast.carol)
    with django_assert_max_num_queries(17):  # type: ignore[attr-defined]
        assert "?page=2" in client.get(PAGE).content.decode()


# REST ------------------------------------------------------------------------------------------------------


def test_rest_tells_flags_in_words_and_numbers(known: Project, cast: Cast, as_user: As, rita: User) -> None:
    alice, bob = as_user(rita).get("/api/v1/projects/talk/annotators/").json()["results"]
    assert (alice["annotator"], alice["flags"]) == (pseudonym(cast.alice, known), [])
    (flag,) = bob["flags"]
    assert (flag["kind"], flag["tasks"], flag["evidence"]["timed"]) == ("speeding", ["t-17"], 40)
    assert "30 of 40" in flag["sentence"]
    assert not bob["excluded"]


# The command and the worker --------------------------------------------------------------------------------


def test_the_command_looks_anew_and_prints_everybody(project: Project, cast: Cast) -> None:
    make_task(project)
    for user in cast.annotators:
        rate(project, user)
    out = io.StringIO()
    call_command("quality", "talk", stdout=out)
    assert [line.split()[0] for line in out.getvalue().splitlines()[1:]] == ["alice", "bob", "erin"]
    assert RaterQuality.objects.count() == 3


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_worker_looks_into_whatever_is_due_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    project, alice = make_project(), make_user("alice")
    make_member(project, alice)
    make_task(project)
    rate(project, alice)
    url = urlsplit(os.environ["DATABASE_URL"])
    monkeypatch.setenv("DATABASE_URL", urlunsplit(url._replace(path=f"/{connection.settings_dict['NAME']}")))
    monkeypatch.setenv("SECRET_KEY", "only-for-tests")
    assert (tasks.assess_annotators(), tasks.assess_annotators()) == (1, 0)


def test_a_process_that_fails_is_no_result_and_is_written_down(
    project: Project, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_task(project)
    rate(project, cast.alice)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert tasks.assess_annotators() == 0
    assert BackgroundFailure.objects.get().error == "AssessmentFailed: it ended with code 1"


@pytest.fixture
def listed(known: Project, cast: Cast) -> Project:
    """Alice is paused, bob flagged and excluded, erin has rated most and rates no more."""
    quality = {"project": known, "measures": FINE | {"rated_by_all": 0}, "computed_at": NOW}
    RaterQuality.objects.create(annotator=cast.erin, annotations=900, **quality)
    known.memberships.filter(user=cast.alice).update(paused_at=NOW)
    known.memberships.filter(user=cast.erin).delete()
    Exclusion.objects.create(project=known, annotator=cast.bob, reason="A bot.", by=cast.carol, made_at=NOW)
    return known


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", "alice bob erin"),
        ("annotator=bob", "bob"),
        ("annotator=bo", ""),
        ("q=LI", "alice"),
        ("role=annotator", "alice bob"),
        ("role=reviewer", ""),
        ("paused=true", "alice"),
        ("paused=false", "bob erin"),
        ("excluded=true", "bob"),
        ("excluded=false&flagged=false", "alice erin"),
        ("flagged=true", "bob"),
        ("flag=speeding", "bob"),
        ("flag=drifting", ""),
        ("ordering=-flags", "bob alice erin"),
        ("ordering=flags", "alice erin bob"),
        ("ordering=-annotations&role=annotator", "alice bob"),
    ],
)
def test_annotators_are_found_and_ordered(listed: Project, cast: Cast, as_user: As, query: str, names: str) -> None:
    answer = as_user(cast.carol).get(f"/api/v1/projects/talk/annotators/?{query}").json()
    assert [row["annotator"] for row in answer["results"]] == names.split()


def test_pages_of_ordered_annotators_hold_everybody_once(listed: Project, cast: Cast, as_user: As) -> None:
    carol, address, seen = (
        as_user(cast.carol),
        "/api/v1/projects/talk/annotators/?ordering=-annotations&page_size=1",
        [],
    )
    while address:
        page = carol.get(address).json()
        seen += [row["annotator"] for row in page["results"]]
        address = page["next"]
    assert (seen[0], sorted(seen)) == ("erin", ["alice", "bob", "erin"])


@pytest.mark.usefixtures("listed")
def test_a_reviewer_finds_nobody_by_a_username(known: Project, cast: Cast, as_user: As, rita: User) -> None:
    def found(query: str) -> int:
        return len(as_user(rita).get(f"/api/v1/projects/talk/annotators/?{query}").json()["results"])

    assert (found("annotator=bob"), found("q=bob")) == (0, 0)
    name = pseudonym(cast.bob, known)
    assert (found(f"annotator={name}"), found(f"q={name[1:]}")) == (1, 1)


@pytest.mark.parametrize("query", ["ordering=names", "role=owner", "flag=nice", "state=open"])
def test_what_the_list_does_not_know_is_refused(known: Project, cast: Cast, as_user: As, query: str) -> None:
    assert as_user(cast.carol).get(f"/api/v1/projects/talk/annotators/?{query}").status_code == 400
