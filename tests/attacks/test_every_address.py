"""Every address there is, asked by everybody with what nobody should send: none answers 500.

The addresses are found by walking the URLconf: pages, the admin and REST. Of many hostile values everybody sends one to
every address, by turns, and the others to those that looked at it: tests/attacks/reads.py.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLResolver, get_resolver

from annotator.models import Project, QualificationRun, Role, User
from tests.annotator.models.test_constraints import make_model
from tests.attacks.reads import Reads, watched_reads
from tests.builders import NOW, claimed, make_gold, make_member, make_task, make_user, rate
from tests.conftest import Cast

pytestmark = pytest.mark.slow
Value = TypeVar("Value")

HUGE = "9" * 30
VERY_LONG = "9" * 5_000
HALF = "%ED%A0%80"
"""Half a character pair, as an address would hold it."""
SENT = {
    "huge": HUGE,
    "very long": VERY_LONG,
    "half a pair": HALF,
    "other digits": quote("٣"),
}
PARAMETERS = [
    "_changelist_filters",
    "_popup",
    "_to_field",
    "after",
    "all",
    "annotator",
    "because",
    "before",
    "by",
    "confirm",
    "cursor",
    "dry_run",
    "e",
    "external_id",
    "find",
    "format",
    "from",
    "label",
    "language",
    "layout",
    "model",
    "name",
    "next",
    "o",
    "of",
    "ordering",
    "p",
    "page",
    "page_size",
    "project",
    "project__id__exact",
    "q",
    "raw",
    "revision",
    "reward_from",
    "reward_to",
    "select_across",
    "since",
    "skipped",
    "source",
    "spread",
    "start",
    "state",
    "task",
    "token",
    "url",
    "user",
    "username",
    "with",
]
FIELDS = [
    "_save",
    "_selected_action",
    "action",
    "active_seconds",
    "annotator",
    "attribute",
    "base_annotators",
    "category",
    "changed",
    "comment",
    "decision",
    "email",
    "index",
    "key",
    "kind",
    "language",
    "layout",
    "name",
    "new_password1",
    "new_password2",
    "next",
    "note",
    "old_password",
    "password",
    "preference",
    "previewed",
    "priority",
    "project",
    "quotes",
    "reason",
    "redact",
    "role",
    "select_across",
    "slug",
    "spans",
    "task",
    "understood",
    "user",
    "username",
]
UNKNOWN = "nobody_reads_this"
LEFT_OUT = ("logout/", "jsi18n/", "<app_label>", "static/")
ROLES = ("dave", "alice", "rita", "carol", "root")
"""A stranger, an annotator, a reviewer, a manager, a superuser."""


@pytest.fixture
def people(cast: Cast, project: Project) -> dict[str, User]:
    rita = make_user("rita")
    make_member(project, rita, role=Role.REVIEWER)
    carol = cast.carol
    carol.is_staff = True
    carol.save()
    root = make_user("root", is_staff=True, is_superuser=True)
    return {"dave": cast.dave, "alice": cast.alice, "rita": rita, "carol": carol, "root": root}


@pytest.fixture
def known(people: dict[str, User], project: Project, cast: Cast) -> dict[str, str]:
    """What stands for each kind of part in an address: rows that there are."""
    make_task(project)
    rate(project, cast.bob)
    make_gold(project, use="practice")
    held = claimed(project, people["alice"])
    member = people["alice"].memberships.get()
    run = QualificationRun.objects.create(member=member, kind="practice", number=1, started_at=NOW)
    model = make_model(project, 1)
    return {
        "slug": "talk",
        "assignment_id": str(held.pk),
        "task_id": str(held.task_id),
        "run_id": str(run.pk),
        "object_id": str(held.task_id),
        "pk": str(model.pk),
    }


def patterns(resolver: URLResolver, before: str = "") -> Iterator[str]:
    for url_pattern in resolver.url_patterns:
        place = before + str(url_pattern.pattern)
        if isinstance(url_pattern, URLResolver):
            yield from patterns(url_pattern, place)
        elif "(?P" not in place:
            yield place


def addresses(known: dict[str, str]) -> list[str]:
    places = {place for place in patterns(get_resolver()) if not any(part in place for part in LEFT_OUT)}
    return sorted("/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda part: known.get(part[1], "1"), place) for place in places)


def addresses_of(role: str, known: dict[str, str]) -> list[str]:
    """All addresses; within the project a superuser is one more manager, so root leaves that to carol."""
    return [address for address in addresses(known) if role != "root" or "/projects/talk/" not in address]


def hostile_addresses(role: str) -> list[str]:
    """Each part of each address is what no row is called: half of the values by turns, and the manager's others are
    the superuser's."""
    places = sorted(
        place for place in set(patterns(get_resolver())) if "<" in place and not any(part in place for part in LEFT_OUT)
    )
    values = (HUGE, "%00", "-1", VERY_LONG, HALF, "a" * 300)
    half = 3 * (ROLES.index(role) - ROLES.index("carol"))
    sent = [(place, value) for turn, place in enumerate(places) for value in turned(values, turn + half)[:3]]
    return ["/" + re.sub(r"<[^>]+>", value, place) for place, value in sent]


def answered(client: Client, method: str, address: str, **sent: Any) -> tuple[int, bytes]:
    """The status and the content of the answer; what the request changed is taken back."""
    with transaction.atomic():
        answer = client.generic(method, address, **sent)
        content = b"".join(answer) if answer.streaming else answer.content
        transaction.set_rollback(True)
    return answer.status_code, content


def broken(client: Client, method: str, address: str, **sent: Any) -> list[str]:
    """The request, if it was answered by 500."""
    return fault(method, address, answered(client, method, address, **sent)[0])


def fault(method: str, address: str, status: int) -> list[str]:
    return [f"{method} {address[:200]}: {status}"] if status in (500, 502) else []


@pytest.fixture
def role(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client_of(people: dict[str, User], role: str) -> Client:
    """Tells the answer of an error, as a server would, in place of the error."""
    client = Client(raise_request_exception=False)
    client.force_login(people[role])
    return client


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return watched_reads(monkeypatch)


by_everybody = pytest.mark.parametrize("role", ROLES, indirect=True)
by_readers = pytest.mark.parametrize("role", ["alice", "carol", "root"], indirect=True)
"""By those who read what they send: a stranger is turned away before, and a reviewer meets what a manager meets."""


def test_the_walk_finds_pages_the_admin_and_rest(known: dict[str, str]) -> None:
    walked = addresses(known)
    assert {"/projects/talk/annotate/", "/admin/annotator/task/", "/api/v1/projects/talk/tasks/"} <= set(walked)
    assert len(walked) > 150


def turned(values: Sequence[Value], turn: int) -> list[Value]:
    """The values from another one on, so that each is once the first."""
    start = turn % len(values)
    return [*values[start:], *values[:start]]


@by_readers
def test_no_query_breaks_an_address(client_of: Client, role: str, known: dict[str, str], reads: Reads) -> None:
    faults: list[str] = []
    for turn, address in enumerate(addresses_of(role, known), ROLES.index(role)):
        for value in turned(list(SENT.values()), turn):
            query = "&".join(f"{name}={value}" for name in PARAMETERS)
            reads.clear()
            faults += broken(client_of, "GET", f"{address}?{query}")
            if not reads.any_value:
                break
    assert faults == []


@by_readers
def test_no_single_parameter_breaks_an_address(
    client_of: Client, role: str, known: dict[str, str], reads: Reads
) -> None:
    """Alone, as a parameter that is refused hides those that are read after it.

    Those that an address asks for, and those that it asks for then, and one that nobody knows. A list names those that
    it has where it refuses that one.
    """
    faults: list[str] = []
    for address in addresses_of(role, known):
        if not address.startswith("/admin/"):
            sent: set[str] = set()
            asked, named = {UNKNOWN}, set[str]()
            while waiting := asked - sent:
                name = min(waiting)
                sent.add(name)
                reads.clear()
                asking = f"{address}?{quote(name)}={VERY_LONG}"
                status, content = answered(client_of, "GET", asking)
                faults += fault("GET", asking, status)
                named |= named_in(content)
                asked |= reads.names | named
                if (reads.whole or reads.all_names) and not named:
                    asked |= set(PARAMETERS)
    assert faults == []


def named_in(content: bytes) -> set[str]:
    """The parameters that a list has, as its refusal of another one says."""
    return {name.decode() for names in re.findall(rb"This list has: ([\w, ]+)", content) for name in names.split(b", ")}


@pytest.mark.parametrize("role", ["carol"], indirect=True)
def test_a_list_names_its_parameters(client_of: Client, known: dict[str, str]) -> None:
    _, content = answered(client_of, "GET", f"/api/v1/projects/talk/tasks/?{UNKNOWN}=1")
    assert {"cursor", "page_size", "state"} <= named_in(content)


@by_everybody
def test_no_path_breaks_the_server(client_of: Client, role: str) -> None:
    assert [refusal for address in hostile_addresses(role) for refusal in broken(client_of, "GET", address)] == []


@by_readers
def test_no_form_breaks_an_address(client_of: Client, role: str, known: dict[str, str], reads: Reads) -> None:
    faults: list[str] = []
    for turn, address in enumerate(addresses_of(role, known), ROLES.index(role)):
        if address.startswith("/api/"):
            continue
        for value in turned(list(SENT.values()), turn):
            form = "&".join(f"{name}={value}" for name in FIELDS)
            reads.clear()
            faults += broken(client_of, "POST", address, data=form, content_type="application/x-www-form-urlencoded")
            if not reads.any_value:
                break
    assert faults == []


NAMES = (*FIELDS, "ratings", "items", "query", "prompts", "scores", "reason")
VALUES: tuple[Any, ...] = ("a\0", "\ud800", 10**30, [], {}, None, True, VERY_LONG, {"a": {"a": 1}})
BODIES: tuple[Any, ...] = (5, [5], None, *(dict.fromkeys(NAMES, value) for value in VALUES))


@by_readers
def test_no_body_breaks_rest(client_of: Client, role: str, known: dict[str, str], reads: Reads) -> None:
    faults: list[str] = []
    for turn, address in enumerate(addresses_of(role, known), ROLES.index(role)):
        if not address.startswith("/api/"):
            continue
        for method in ("POST", "PUT", "PATCH"):
            for body in turned(BODIES, turn):
                reads.clear()
                faults += broken(client_of, method, address, data=json.dumps(body), content_type="application/json")
                if not reads.body:
                    break
    assert faults == []
