"""The fixed cast and a project to work in. alice, bob and erin annotate, carol manages, dave is a stranger."""

import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest
from django.conf import LazySettings
from django.conf import settings as django_settings
from django.db import connection
from django.test import Client, TransactionTestCase
from django.utils import translation
from pytest_django import DjangoDbBlocker
from pytest_django.plugin import blocking_manager_key
from rest_framework.test import APIClient
from whitenoise.middleware import WhiteNoiseMiddleware

from annotator.infrastructure.background import heartbeats, messages
from annotator.launch.compiled_translations import compile_translations
from annotator.models import Membership, Project, Role, User
from annotator.models.rubric import attributes_by_version
from annotator.stages.assignment import task_choice
from tests import builders, emptying
from tests.insertions import insert

# How long an example takes says how busy the machine is.
hypothesis.settings.register_profile("patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("patient")
VARIABLES = re.compile(r"\b(READERS|SHARED_DATA|DATASETS)\b")
"""What names other people's software or data; tests that wait for one of them are those of `make test-readers`."""
As = Callable[[User], APIClient]
LONGEST_ID = 100
"""The characters of a text that the name of a test repeats."""


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Names long texts by their length: the name of a test is in the environment of every process that it starts."""
    return f"{argname} of {len(val):,}" if isinstance(val, str | bytes) and len(val) > LONGEST_ID else None


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """Tests that share a server or the like stay in one worker, which starts it once.

    The longest groups come first: no worker is left alone with a long one at the end.
    """
    # Marked before pytest-xdist reads the groups, sorted after pytest-django has sorted by the use of the database:
    # tests/emptying.py leaves the tables as they were, so that needs no order.
    for item in items:
        if any(VARIABLES.search(str(mark.kwargs.get("reason"))) for mark in item.iter_markers("skipif")):
            item.add_marker(pytest.mark.readers)
        if shares_with_its_module(item) and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    yield
    items.sort(key=place_in_the_queue)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how many tests were skipped for each reason: what nobody has checked."""
    skipped = [report.longrepr for report in terminalreporter.stats.get("skipped", [])]
    reasons = Counter(str(place[2]).removeprefix("Skipped: ") for place in skipped if isinstance(place, tuple))
    for reason, number in reasons.most_common():
        terminalreporter.write_line(f"{number} skipped: {reason}")


def shares_with_its_module(item: pytest.Item) -> bool:
    fixtures = item._fixtureinfo.name2fixturedefs.values() if isinstance(item, pytest.Function) else ()
    return any(definition.scope == "module" for definitions in fixtures for definition in definitions)


def place_in_the_queue(item: pytest.Item) -> tuple[int, int]:
    groups = [mark.args[0] for mark in item.iter_markers("xdist_group")]
    if "training" in groups or "scoring" in groups:
        return 0, 0
    if "storm" in groups:
        return 1, 0
    # The browser's tests, which mostly wait, are mixed with those that compute.
    return 2, zlib.crc32(item.nodeid.partition("::")[0].encode())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """What a large test has rolled back is in everybody's way: no vacuum comes."""
    yield
    # By the fixtures that were set up: before a test that is skipped there may be no database yet.
    if item.get_closest_marker("slow") and "django_db_setup" in item.funcargs:  # type: ignore[attr-defined]
        with item.config.stash[blocking_manager_key].unblock():
            emptying.truncate_grown_tables()


@dataclass(frozen=True)
class Cast:
    alice: User
    bob: User
    erin: User
    carol: User
    dave: User

    @property
    def annotators(self) -> list[User]:
        return [self.alice, self.bob, self.erin]


@pytest.fixture
def project(db: None) -> Project:
    return builders.make_project()


@pytest.fixture
def cast(project: Project) -> Cast:
    names = ["alice", "bob", "erin", "carol", "dave"]
    made = Cast(*insert(User, username=names, password=["!"] * len(names)))
    members = [user.pk for user in (*made.annotators, made.carol)]
    roles = [Role.ANNOTATOR.value] * 3 + [Role.MANAGER.value]
    insert(Membership, project_id=[project.pk] * len(members), user_id=members, role=roles)
    return made


@pytest.fixture
def as_user() -> As:
    """A REST client that speaks for the user."""

    def client(user: User) -> APIClient:
        made = APIClient()
        made.force_authenticate(user)
        return made

    return client


@pytest.fixture
def carol(cast: Cast, as_user: As) -> APIClient:
    """The manager over REST, where a file does not say otherwise."""
    return as_user(cast.carol)


@pytest.fixture
def alice(cast: Cast, as_user: As) -> APIClient:
    """An annotator over REST, where a file does not say otherwise."""
    return as_user(cast.alice)


@pytest.fixture
def pages(cast: Cast, client: Client) -> Client:
    """The manager's browser."""
    client.force_login(cast.carol)
    return client


@pytest.fixture
def alice_page(cast: Cast, client: Client) -> Client:
    """An annotator's browser."""
    client.force_login(cast.alice)
    return client


@pytest.fixture
def staff(cast: Cast, pages: Client) -> Client:
    """The manager's browser, who may look into the admin."""
    cast.carol.is_staff = True
    cast.carol.save()
    return pages


@pytest.fixture
def rita(project: Project) -> User:
    """A reviewer."""
    return builders.make_member(project, builders.make_user("rita"), Role.REVIEWER).user


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker is said to listen to every queue."""
    health = dict.fromkeys(heartbeats.QUEUES, heartbeats.QueueHealth(1, 0.5))
    monkeypatch.setattr(heartbeats, "listening", lambda: health)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """A test with real transactions ends by emptying every table, the audit too, which refuses that elsewhere.

    Its trigger goes for those who are no superusers: tests/emptying.py skips all triggers where it may.
    """
    TransactionTestCase._fixture_teardown = emptying.empty_tables  # type: ignore[attr-defined]
    with django_db_blocker.unblock():
        emptying.save_rows()
        let_audit_be_emptied()


def let_audit_be_emptied() -> None:
    with connection.cursor() as cursor:
        # The audit's months are tables with a trigger each.
        cursor.execute("SELECT tgrelid::regclass FROM pg_trigger WHERE tgname = 'audit_is_never_truncated'")
        for (table,) in cursor.fetchall():
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER audit_is_never_truncated")


# pytest looks up every fixture again for every test, those of the session too: these are one.
@pytest.fixture(autouse=True, scope="session")
def _same_for_all() -> Iterator[None]:
    """What holds for every test."""
    compile_translations()
    # Served straight from the finders; whitenoise only warns about a folder that is not there.
    django_settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", files_found_once())
        # The queue is read from its beginning, so that a test knows which task comes next.
        patch.setattr(task_choice, "random_place", lambda: 0)
        # The real hasher is slow on purpose.
        patch.setattr(django_settings, "PASSWORD_HASHERS", ["django.contrib.auth.hashers.MD5PasswordHasher"])
        yield


def files_found_once() -> Callable[[WhiteNoiseMiddleware], None]:
    """Each client of Django's makes the middleware anew, for which whitenoise looks at some 300 files."""
    look = WhiteNoiseMiddleware.add_files_from_finders
    values: dict[str, object] = {}

    def look_once(middleware: WhiteNoiseMiddleware) -> None:
        if not values:
            look(middleware)
            values.update(middleware.files)
        middleware.files.update(values)

    return look_once


@pytest.fixture
def german() -> Iterator[Mapping[str, str]]:
    """The reader's language is German; these are the headers by which a request asks for it."""
    with translation.override("de"):  # afterwards, what a request has left to the thread is gone too
        yield {"accept-language": "de"}


@pytest.fixture(autouse=True)
def _anew(settings: LazySettings, tmp_path: Path) -> None:
    """What one test leaves in the process or on the disk is not what the next one finds."""
    settings.ARTIFACTS = tmp_path / "artifacts"
    attributes_by_version.cache_clear()
    translation.deactivate()  # a request leaves its language to the thread
    messages._hung_until = -math.inf  # whoever waited for Redis in vain in one test has not in the next one
