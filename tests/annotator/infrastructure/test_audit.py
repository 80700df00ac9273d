"""Who did what: recorded with the change, kept for good."""

import pytest
from django.db import IntegrityError, connection, transaction
from django.http import HttpResponse
from django.test import RequestFactory

from annotator import tasks
from annotator.infrastructure import audit
from annotator.models import AuditEntry, Project, User
from tests.conftest import Cast


def made() -> AuditEntry:
    return AuditEntry.objects.latest("pk")


# Kept for good ---------------------------------------------------------------------------------------------


@pytest.fixture
def entry(project: Project) -> AuditEntry:
    audit.record("test.made", "task t-1", project=project, number=1)
    return made()


def test_the_database_refuses_to_change_an_entry(entry: AuditEntry) -> None:
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        AuditEntry.objects.filter(pk=entry.pk).update(actor="mallory")


def test_the_database_refuses_to_delete_an_entry(entry: AuditEntry) -> None:
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic():
        entry.delete()


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE annotator_auditentry SET actor = 'mallory'",
        "DELETE FROM annotator_auditentry",
        "INSERT INTO annotator_auditentry TABLE annotator_auditentry ON CONFLICT (id) DO UPDATE SET actor = ''",
    ],
)
def test_plain_sql_is_refused_too(entry: AuditEntry, sql: str) -> None:
    with pytest.raises(IntegrityError, match="never changed"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)


def test_entries_outlive_their_project_and_their_actor(cast: Cast, project: Project) -> None:
    with audit.acting(via="page", actor=cast.dave.username):
        audit.record("test.made", "task t-1", project=project)
    project.delete()
    cast.dave.delete()
    assert (made().project, made().actor) == ("talk", "dave")


def test_an_entry_goes_with_a_change_that_is_taken_back(project: Project) -> None:
    with transaction.atomic():
        audit.record("test.made", "task t-1", project=project)
        transaction.set_rollback(True)
    assert not AuditEntry.objects.exists()


# Who acts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "via"), [("/settings/", "page"), ("/api/v1/projects/", "rest"), ("/admin/", "admin")])
def test_a_request_stands_for_its_user(cast: Cast, path: str, via: str) -> None:
    request = RequestFactory().get(path)
    request.user = cast.alice
    answer = audit.ActorMiddleware(lambda _: HttpResponse(str(audit.acting_now())))(request)
    assert answer.content.decode() == str(audit.Acting(via=via, actor="alice"))


def test_the_command_line_is_the_account_at_the_computer() -> None:
    assert audit.acting_now().via == "command"
    assert audit.acting_now().actor.startswith("os:")


def test_a_worker_is_nobody(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[audit.Acting] = []
    monkeypatch.setattr("annotator.stages.assignment.expire_all", lambda **_: seen.append(audit.acting_now()))
    tasks.expire_leases()
    assert seen == [audit.Acting(via="worker")]


def test_what_follows_from_a_rule_is_the_systems() -> None:
    with audit.acting(via="rest", actor="alice"), audit.by_the_system():
        assert audit.acting_now() == audit.Acting(via="rest")


def test_a_stored_password_is_noted_without_it(db: None) -> None:
    user = User(username="frank")
    user.set_password("very-secret-98")
    user.save()
    assert made().action == "password.set"
    assert "very-secret-98" not in str(vars(made()))


# Differences -----------------------------------------------------------------------------------------------


def test_differences_name_what_changed(project: Project) -> None:
    before = audit.fields_of(project)
    project.keep = 2
    assert audit.differences(before, audit.fields_of(project)) == {"keep": [3, 2]}


def test_long_texts_are_shortened(project: Project) -> None:
    project.description = "x" * 2000
    assert len(str(audit.fields_of(project)["description"])) < 600
