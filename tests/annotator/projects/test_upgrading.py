"""An older installation keeps its history, raters and pseudonyms, and its odd settings are mended."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from pytest_django import DjangoDbBlocker

from tests.builders import NOW

BEFORE = [("annotator", "0012_unlikely_annotations")]
pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def migrated(targets: list[tuple[str, str]]) -> Any:
    executor = MigrationExecutor(connection)
    executor.migrate(targets)
    return MigrationExecutor(connection).loader.project_state(targets).apps


@pytest.fixture(scope="module")
def older_database(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """A copy of the database with the tables as they were; going back takes seconds, copying a tenth of one."""
    present = connection.settings_dict["NAME"]
    older = f"{present}_older"
    with django_db_blocker.unblock(), connected_to_copy(older, of=present):
        migrated(BEFORE)
    yield older
    with django_db_blocker.unblock():
        drop(older)


@pytest.fixture
def old(older_database: str, transactional_db: None) -> Iterator[Any]:
    """The models as they were, over a database of the test's own."""
    upgrading = f"{older_database}_copy"
    with connected_to_copy(upgrading, of=older_database):
        yield MigrationExecutor(connection).loader.project_state(BEFORE).apps
    drop(upgrading)


@contextmanager
def connected_to_copy(name: str, *, of: str) -> Iterator[None]:
    """Makes a database out of another one, to which nobody else may be connected, and uses it for a while."""
    present = connection.settings_dict["NAME"]
    disconnect()
    drop(name)
    with connection._nodb_cursor() as cursor:
        # What an earlier test left connected, such as a thread that waits for nothing any more, is in the way.
        cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [of])
        cursor.execute(f'CREATE DATABASE "{name}" TEMPLATE "{of}"')
    connection.settings_dict["NAME"] = name
    try:
        yield
    finally:
        disconnect()
        connection.settings_dict["NAME"] = present


def disconnect() -> None:
    """Closes the connections of the pool too, which would lead to the same database for ever."""
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]


def drop(name: str) -> None:
    with connection._nodb_cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def newest() -> list[tuple[str, str]]:
    return [
        leaf_node
        for leaf_node in MigrationExecutor(connection).loader.graph.leaf_nodes()
        if leaf_node[0] == "annotator"
    ]


@pytest.fixture
def rubric(old: Any) -> Any:
    made, _ = old.get_model("annotator", "Rubric").objects.get_or_create(key="h", defaults={"name": "H"})
    made.attributes.create(key="helpfulness", name="Helpfulness", description="", levels=["a"] * 5)
    return made


def opened(old: Any, rubric: Any, slug: str, days: int, **fields: Any) -> Any:
    model = old.get_model("annotator", "Project")
    made = model.objects.create(slug=slug, name=slug, rubric=rubric, **fields)
    model.objects.filter(pk=made.pk).update(created_at=NOW + timedelta(days=days))
    return made


def noted(old: Any, slug: str, days: float, action: str = "label.adjudicated", **details: Any) -> None:
    given = {"at": NOW + timedelta(days=days), "via": "rest", "project": slug, "subject": f"day {days}"}
    old.get_model("annotator", "AuditEntry").objects.create(action=action, details=details, **given)


def test_entries_find_their_project(old: Any, rubric: Any) -> None:
    """talk was deleted; its slug went to a project that is called chat since day 4; the third talk is of day 6."""
    noted(old, "talk", -1)
    chat = opened(old, rubric, "chat", 2)
    noted(old, "talk", 3)
    noted(old, "chat", 4, "project.changed", changed={"slug": ["talk", "chat"]})
    noted(old, "chat", 5)
    talk = opened(old, rubric, "talk", 6)
    noted(old, "talk", 7)
    entries = migrated(newest()).get_model("annotator", "AuditEntry").objects.order_by("at")
    owners = dict(entries.values_list("subject", "project_id"))
    assert owners == {"day -1": None, "day 3": chat.pk, "day 4": chat.pk, "day 5": chat.pk, "day 7": talk.pk}
    with pytest.raises(Exception, match="never changed"):
        entries.update(project_id=None)


def test_people_keep_their_pseudonyms(old: Any, rubric: Any) -> None:
    talk, other = (opened(old, rubric, slug, 0) for slug in ("talk", "other"))
    alice = old.get_model("annotator", "User").objects.create(username="alice", pseudonym="r-alice")
    old.get_model("annotator", "Membership").objects.create(user=alice, project=talk)
    old.get_model("annotator", "Tally").objects.create(annotator=alice, project=other)
    pseudonyms = migrated(newest()).get_model("annotator", "Pseudonym").objects
    assert sorted(pseudonyms.values_list("project", "name")) == [(talk.pk, "r-alice"), (other.pk, "r-alice")]


def test_imported_raters_are_known_by_their_work(old: Any, rubric: Any) -> None:
    """Of a project that was renamed, and of one whose raters have its slug."""
    users, tallies = (old.get_model("annotator", name).objects for name in ("User", "Tally"))
    chat, talk = (opened(old, rubric, slug, 0) for slug in ("chat", "talk"))
    for slug, project in (("first", chat), ("talk", talk)):
        rater = users.create(username=f"imported.{slug}.rater-1", pseudonym=slug, is_active=False)
        tallies.create(annotator=rater, project=project)
    users.create(username="imported.talk.rater-2", pseudonym="x")
    known = migrated(newest()).get_model("annotator", "ImportedRater").objects
    assert sorted(known.values_list("project", "place", "user__username")) == [
        (chat.pk, "rater-1", "imported.first.rater-1"),
        (talk.pk, "rater-1", "imported.talk.rater-1"),
    ]


def test_settings_that_nobody_could_store_now_are_mended(old: Any, rubric: Any) -> None:
    odd = {"keep": 9, "escalate_above": 7, "spread_attribute": "tone", "validation_share": 0.9}
    project = opened(old, rubric, "odd", 0, **odd)
    alice = old.get_model("annotator", "User").objects.create(username="alice", pseudonym="r-alice")
    languages = ["English", "DE", "Klingonisch"]
    old.get_model("annotator", "Membership").objects.create(user=alice, project=project, languages=languages)
    apps = migrated(newest())
    mended = apps.get_model("annotator", "Project").objects.values(*odd).get()
    assert mended == {"keep": 5, "escalate_above": 4, "spread_attribute": "helpfulness", "validation_share": 0.5}
    member = apps.get_model("annotator", "Membership").objects.get()
    assert sorted(member.languages) == ["de", "en", "klingonisch"]


def test_managers_that_admission_made_staff_are_known(old: Any, rubric: Any) -> None:
    project = opened(old, rubric, "talk", 0)
    users, memberships = (old.get_model("annotator", name).objects for name in ("User", "Membership"))
    for name in ("lead", "owner"):
        user = users.create(username=name, pseudonym=name, is_staff=True)
        memberships.create(user=user, project=project, role="manager")
    given = {"at": NOW, "via": "rest", "subject": "account lead", "details": {"changed": {"is_staff": [False, True]}}}
    old.get_model("annotator", "AuditEntry").objects.create(action="account.changed", **given)
    users = migrated(newest()).get_model("annotator", "User").objects
    assert list(users.filter(staff_by_role=True).values_list("username", flat=True)) == ["lead"]


def test_one_persons_preference_settles_no_open_task(old: Any, rubric: Any) -> None:
    """Imported preferences, which hold no slot, still do."""
    alice = old.get_model("annotator", "User").objects.create(username="alice", pseudonym="r-alice")
    project = opened(old, rubric, "talk", 0)
    for number, slot in enumerate((1, None)):
        task = old.get_model("annotator", "Task").objects.create(
            project=project, external_id=f"t{number}", conversation=[]
        )
        old.get_model("annotator", "Assignment").objects.create(
            task=task, annotator=alice, state="submitted", slot=slot, leased_at=NOW, lease_expires_at=NOW
        )
        old.get_model("annotator", "Consensus").objects.create(task=task, kept=[], annotators=1, computed_at=NOW)
    left = migrated(newest()).get_model("annotator", "Consensus").objects
    assert list(left.values_list("task__external_id", flat=True)) == ["t1"]
