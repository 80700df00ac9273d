"""The audit in the admin: to be read, by those whose projects it speaks of."""

import pytest
from django.test import Client

from annotator.infrastructure import audit
from annotator.models import AuditEntry, Project, User
from annotator.stages import review
from tests import builders
from tests.conftest import Cast

pytestmark = pytest.mark.django_db
LIST = "/admin/annotator/auditentry/"


@pytest.fixture
def entry(project: Project) -> AuditEntry:
    with audit.acting(via="page", actor="mallory"):
        audit.record("project.changed", "project talk", project=project, changed={"keep": [3, 2], "name": ["", "New"]})
    return AuditEntry.objects.latest("pk")


def listed(client: Client, **query: str) -> str:
    return client.get(LIST, query).content.decode()


def test_a_manager_reads_what_changed(staff: Client, entry: AuditEntry) -> None:
    page = staff.get(f"{LIST}{entry.pk}/change/").content.decode()
    assert "<strong>keep</strong>: 3 → 2" in page
    assert "<strong>name</strong>: - → New" in page


def test_a_manager_sees_no_other_projects_entries(staff: Client) -> None:
    audit.record("project.changed", "project other", project=builders.make_project("other"))
    audit.record("account.created", "account frank")
    page = listed(staff)
    assert "project other" not in page
    assert "account frank" not in page


def test_a_superuser_sees_what_is_of_no_project(staff: Client) -> None:
    staff.force_login(User.objects.create(username="root", is_staff=True, is_superuser=True))
    audit.record("account.created", "account frank")
    assert "account frank" in listed(staff, project="-")


@pytest.mark.parametrize(
    "query", [{"kind": "task"}, {"actor__icontains": "alice"}, {"at_from": "2999-01-01"}, {"at_to": "1999-12-31"}]
)
def test_filters_leave_out_the_rest(staff: Client, entry: AuditEntry, query: dict[str, str]) -> None:
    assert entry.subject in listed(staff)
    assert entry.subject not in listed(staff, **query)


def test_the_last_day_of_a_range_is_in_it(staff: Client, entry: AuditEntry) -> None:
    day = f"{entry.at:%Y-%m-%d}"
    assert entry.subject in listed(staff, at_from=day, at_to=day)


def test_annotators_own_work_can_be_left_out(staff: Client, entry: AuditEntry, project: Project) -> None:
    audit.record("annotation.submitted", "task t-17", project=project)
    page = listed(staff, kind="decisions")
    assert entry.subject in page
    assert "task t-17" not in page


def test_a_search_finds_the_actor(staff: Client, entry: AuditEntry) -> None:
    assert entry.subject in listed(staff, q="mallory")
    assert entry.subject not in listed(staff, q="nobody")


def test_nobody_changes_or_deletes_an_entry_here(staff: Client, entry: AuditEntry) -> None:
    staff.force_login(User.objects.create(username="root", is_staff=True, is_superuser=True))
    assert staff.post(f"{LIST}{entry.pk}/change/", {"actor": "alice"}).status_code == 403
    assert staff.post(f"{LIST}{entry.pk}/delete/", {"post": "yes"}).status_code == 403
    assert staff.post(f"{LIST}add/").status_code == 403


def test_the_list_takes_as_many_queries_for_many_as_for_one(
    staff: Client, entry: AuditEntry, project: Project, django_assert_max_num_queries: pytest.FixtureRequest
) -> None:
    for number in range(40):
        audit.record("test.made", f"task t-{number}", project=project)
    with django_assert_max_num_queries(12):  # type: ignore[operator]
        listed(staff)


def test_the_reason_of_an_exclusion_is_among_its_details(staff: Client, project: Project, cast: Cast) -> None:
    review.exclude(project, cast.bob, reason="Clicks without reading.", by=cast.carol, now=builders.NOW)
    entry = AuditEntry.objects.get(action="annotator.excluded")
    assert "Clicks without reading." in staff.get(f"{LIST}{entry.pk}/change/").content.decode()


def test_so_is_that_of_a_rejection(staff: Client, project: Project, cast: Cast) -> None:
    builders.make_task(project)
    held = builders.rate(project, cast.bob).annotation.assignment
    review.judge(held.pk, decision="rejected", comment="Misses the point.", by=cast.carol, now=builders.NOW)
    entry = AuditEntry.objects.get(action="annotation.rejected")
    assert "Misses the point." in staff.get(f"{LIST}{entry.pk}/change/").content.decode()


@pytest.mark.parametrize(("replaced", "back"), [(3, True), (1, False), (None, False)])
def test_a_rollback_is_named_as_such(staff: Client, project: Project, replaced: int | None, back: bool) -> None:
    audit.record("model.promoted", "model version 2", project=project, replaced=replaced)
    assert ("model.promoted (rolled back)" in listed(staff)) is back


def test_times_name_their_zone(staff: Client, entry: AuditEntry) -> None:
    assert f"{entry.at:%Y-%m-%d %H:%M:%S} UTC" in listed(staff)
