"""The admin's opening page for administrators: everything of the installation is there or one step away."""

from collections.abc import Iterator

import pytest
from django.conf import LazySettings
from django.core import mail
from django.test import Client

from annotator.infrastructure.background import heartbeats, redis_client
from annotator.infrastructure.background.fitness import UnfitReason
from annotator.models import AuditEntry, ImportedRater, Project, User
from tests.builders import make_user
from tests.conftest import Cast

LISTS = ("user", "token", "invitation", "webhook")


@pytest.fixture
def root(client: Client, db: None) -> Client:
    client.force_login(User.objects.create_superuser("root", "root@example.org", "only-for-tests"))
    return client


@pytest.fixture
def workers() -> Iterator[None]:
    redis_client.connection().delete(heartbeats.KEY)
    heartbeats.beat("light@here", ["light"])
    heartbeats.beat("train@there", ["train"], UnfitReason.GPU)
    yield
    redis_client.connection().delete(heartbeats.KEY)


@pytest.mark.usefixtures("workers")
def test_an_administrator_finds_accounts_workers_queues_disks_and_versions(root: Client, project: Project) -> None:
    project.export_jobs.create(requested_by=make_user("carol"), created_at="2026-01-01T00:00Z")
    page = root.get("/admin/").content.decode()
    for name in LISTS:
        address = f"/admin/annotator/{name}/"
        assert f'href="{address}"' in page
        assert root.get(address).status_code == 200
    assert "light@here" in page
    assert "takes no work: it finds no GPU, although GPU_QUEUES promises one" in page
    assert "<span>exports</span> <span>1</span>" in page
    assert all(name in page for name in ("Messages in Redis", "Free disk space", "PostgreSQL"))


def test_a_manager_is_shown_nothing_of_the_installation(client: Client, cast: Cast) -> None:
    cast.carol.is_staff = True
    cast.carol.save()
    client.force_login(cast.carol)
    page = client.get("/admin/")
    assert "installation" not in page.context
    assert all(f"/admin/annotator/{name}/" not in page.content.decode() for name in LISTS)


def test_those_behind_imported_raters_are_not_among_people(root: Client, project: Project) -> None:
    ImportedRater.objects.create(project=project, place="rater-1", user=make_user("talk-rater-1"))
    assert "talk-rater-1" not in root.get("/admin/annotator/user/").content.decode()
    assert "root" in root.get("/admin/annotator/user/").content.decode()
    for whose in ("imported", "all"):
        assert "talk-rater-1" in root.get(f"/admin/annotator/user/?whose={whose}").content.decode()


@pytest.mark.parametrize(("address", "title"), [("user", "Accounts"), ("token", "Tokens"), ("task", "Tasks")])
def test_a_list_is_called_what_it_is(root: Client, address: str, title: str) -> None:
    page = root.get(f"/admin/annotator/{address}/")
    assert page.context["title"] == title
    assert "Select " not in page.context["title"]


def test_a_test_mail_goes_to_the_one_who_asks(root: Client, settings: LazySettings) -> None:
    settings.EMAIL_HOST = "mail.example.org"
    assert "Send me a test mail" in root.get("/admin/").content.decode()
    page = root.post("/admin/test-mail/", follow=True).content.decode()
    assert "A test mail is on its way to root@example.org." in page
    assert [message.to for message in mail.outbox] == [["root@example.org"]]
    assert AuditEntry.objects.filter(action="mail.tested").exists()


def test_it_is_said_why_no_mail_goes_out(root: Client, settings: LazySettings) -> None:
    settings.EMAIL_HOST = ""
    page = root.post("/admin/test-mail/", follow=True).content.decode()
    assert "This installation sends no mail: EMAIL_URL names no server." in page
    assert mail.outbox == []
