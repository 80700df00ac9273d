"""An older installation keeps its history, raters and pseudonyms, and its odd settings are mended.

There is one upgrade, as it takes seconds: of an installation with a project, or several, for each test.
"""

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
def upgraded_database(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[tuple[str, Any]]:
    """A database that was filled with the tables as they were, and the models as they are now."""
    present = connection.settings_dict["NAME"]
    name = f"{present}_older"
    with django_db_blocker.unblock():
        copy_database(name, of=present)
        with connected_to(name):
            old = migrated(BEFORE)
            rubric = made_rubric(old)
            for fill in (entries, people, raters, odd_settings, staff, preferences):
                fill(old, rubric)
            upgraded = migrated(newest())
        yield name, upgraded
        drop(name)


@pytest.fixture
def upgraded(upgraded_database: tuple[str, Any], transactional_db: None) -> Iterator[Any]:
    """The models as they are, over the upgraded database, in which no test changes anything."""
    name, apps = upgraded_database
    with connected_to(name):
        yield apps


def copy_database(name: str, *, of: str) -> None:
    """Makes a database out of another one, to which nobody else may be connected."""
    disconnect()
    drop(name)
    with connection._nodb_cursor() as cursor:
        # What an earlier test left connected, such as a thread that waits for nothing any more, is in the way.
        cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [of])
        cursor.execute(f'CREATE DATABASE "{name}" TEMPLATE "{of}"')


@contextmanager
def connected_to(name: str) -> Iterator[None]:
    present = connection.settings_dict["NAME"]
    disconnect()
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


def made_rubric(old: Any) -> Any:
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


def registered(old: Any, name: str, **fields: Any) -> Any:
    return old.get_model("annotator", "User").objects.create(username=name, **{"pseudonym": name, **fields})


def entries(old: Any, rubric: Any) -> None:
    """talk was deleted; its slug went to a project that is called chat since day 4; the third talk is of day 6."""
    noted(old, "talk", -1)
    opened(old, rubric, "chat", 2)
    noted(old, "talk", 3)
    noted(old, "chat", 4, "project.changed", changed={"slug": ["talk", "chat"]})
    noted(old, "chat", 5)
    opened(old, rubric, "talk", 6)
    noted(old, "talk", 7)


def test_entries_find_their_project(upgraded: Any) -> None:
    projects = upgraded.get_model("annotator", "Project").objects
    chat, talk = (projects.get(slug=slug).pk for slug in ("chat", "talk"))
    of_days = upgraded.get_model("annotator", "AuditEntry").objects.filter(subject__startswith="day ")
    owners = dict(of_days.values_list("subject", "project_id"))
    assert owners == {"day -1": None, "day 3": chat, "day 4": chat, "day 5": chat, "day 7": talk}
    with pytest.raises(Exception, match="never changed"):
        of_days.update(project_id=None)


def people(old: Any, rubric: Any) -> None:
    member_of, rated_in = (opened(old, rubric, slug, 0) for slug in ("member-of", "rated-in"))
    alice = registered(old, "alice", pseudonym="r-alice")
    old.get_model("annotator", "Membership").objects.create(user=alice, project=member_of)
    old.get_model("annotator", "Tally").objects.create(annotator=alice, project=rated_in)


def test_people_keep_their_pseudonyms(upgraded: Any) -> None:
    pseudonyms = upgraded.get_model("annotator", "Pseudonym").objects.filter(user__username="alice")
    kept = pseudonyms.values_list("project__slug", "name")
    assert sorted(kept) == [("member-of", "r-alice"), ("rated-in", "r-alice")]


def raters(old: Any, rubric: Any) -> None:
    """Of a project that was renamed, and of one whose raters have its slug."""
    tallies = old.get_model("annotator", "Tally").objects
    renamed, imported = (opened(old, rubric, slug, 0) for slug in ("renamed", "imported"))
    for slug, project in (("first", renamed), ("imported", imported)):
        rater = registered(old, f"imported.{slug}.rater-1", pseudonym=slug, is_active=False)
        tallies.create(annotator=rater, project=project)
    registered(old, "imported.imported.rater-2")


def test_imported_raters_are_known_by_their_work(upgraded: Any) -> None:
    known = upgraded.get_model("annotator", "ImportedRater").objects
    assert sorted(known.values_list("project__slug", "place", "user__username")) == [
        ("imported", "rater-1", "imported.imported.rater-1"),
        ("renamed", "rater-1", "imported.first.rater-1"),
    ]


ODD = {"keep": 9, "escalate_above": 7, "spread_attribute": "tone", "validation_share": 0.9}


def odd_settings(old: Any, rubric: Any) -> None:
    project = opened(old, rubric, "odd", 0, **ODD)
    languages = ["English", "DE", "Klingonisch"]
    old.get_model("annotator", "Membership").objects.create(
        user=registered(old, "polyglot"), project=project, languages=languages
    )


def test_settings_that_nobody_could_store_now_are_mended(upgraded: Any) -> None:
    mended = upgraded.get_model("annotator", "Project").objects.values(*ODD).get(slug="odd")
    assert mended == {"keep": 5, "escalate_above": 4, "spread_attribute": "helpfulness", "validation_share": 0.5}
    member = upgraded.get_model("annotator", "Membership").objects.get(project__slug="odd")
    assert sorted(member.languages) == ["de", "en", "klingonisch"]


def staff(old: Any, rubric: Any) -> None:
    project = opened(old, rubric, "managed", 0)
    for name in ("lead", "owner"):
        user = registered(old, name, is_staff=True)
        old.get_model("annotator", "Membership").objects.create(user=user, project=project, role="manager")
    given = {"at": NOW, "via": "rest", "subject": "account lead", "details": {"changed": {"is_staff": [False, True]}}}
    old.get_model("annotator", "AuditEntry").objects.create(action="account.changed", **given)


def test_managers_that_admission_made_staff_are_known(upgraded: Any) -> None:
    users = upgraded.get_model("annotator", "User").objects
    assert list(users.filter(staff_by_role=True).values_list("username", flat=True)) == ["lead"]


def preferences(old: Any, rubric: Any) -> None:
    """One that holds a slot, and an imported one, which holds none."""
    rater = registered(old, "rater")
    project = opened(old, rubric, "preferences", 0)
    for number, slot in enumerate((1, None)):
        task = old.get_model("annotator", "Task").objects.create(
            project=project, external_id=f"t{number}", conversation=[]
        )
        old.get_model("annotator", "Assignment").objects.create(
            task=task, annotator=rater, state="submitted", slot=slot, leased_at=NOW, lease_expires_at=NOW
        )
        old.get_model("annotator", "Consensus").objects.create(task=task, kept=[], annotators=1, computed_at=NOW)


def test_one_persons_preference_settles_no_open_task(upgraded: Any) -> None:
    """Imported preferences, which hold no slot, still do."""
    left = upgraded.get_model("annotator", "Consensus").objects.filter(task__project__slug="preferences")
    assert list(left.values_list("task__external_id", flat=True)) == ["t1"]
