"""Whatever a manager or a command changes leaves an entry in the audit, through whichever door."""

from pathlib import Path

import pytest
from django.test import Client
from rest_framework.test import APIClient

from annotator.admin.audit import KINDS
from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.background.heartbeats import QueueHealth
from annotator.models import AuditEntry, Project, Token, User
from rewards.admin import urls
from tests.audited.changes import CHANGES, LEAVES_NONE, READS_ONE_MOMENT
from tests.audited.doors import doors
from tests.audited.sending import TALK
from tests.audited.world import World
from tests.builders import task_row
from tests.conftest import Cast

BUTTONS = [f"page {url.name}" for url in urls.urlpatterns]
BUTTONS += ["page admin-logout", "page admin-password"]


@pytest.fixture
def world(project: Project, cast: Cast, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    User.objects.filter(pk=cast.carol.pk).update(is_staff=True, is_superuser=True)
    cast.carol.refresh_from_db()
    client.force_login(cast.carol)
    rest = APIClient()
    rest.credentials(HTTP_AUTHORIZATION=f"Token {Token.objects.create(cast.carol)[1]}")
    monkeypatch.setattr(heartbeats, "listening", lambda: dict.fromkeys(heartbeats.QUEUES, QueueHealth(1, 0.5)))
    monkeypatch.setattr("rewards.api.scores.SCORE_WAIT_SECONDS", 0.0)
    return World(project, cast, client, rest, tmp_path)


def via(door: str) -> str:
    """The machine half's buttons are the admin's, on pages of their own."""
    return "admin" if door in BUTTONS else door.split(maxsplit=1)[0]


@pytest.mark.parametrize("door", CHANGES)
def test_a_change_leaves_an_entry(world: World, door: str) -> None:
    leaves_an_entry(world, door)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("door", READS_ONE_MOMENT)
def test_a_change_in_a_transaction_of_its_own_leaves_an_entry(world: World, door: str) -> None:
    leaves_an_entry(world, door)


def leaves_an_entry(world: World, door: str) -> None:
    action, change = (CHANGES | READS_ONE_MOMENT)[door]
    last = AuditEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    answer = change(world)
    assert answer is None or getattr(answer, "status_code", 200) < 400, answer.content
    made = AuditEntry.objects.filter(pk__gt=last, action=action).order_by("pk").last()
    assert made, list(AuditEntry.objects.values_list("action", flat=True))
    assert made.via == via(door)
    assert made.actor.startswith("os:") if made.via == "command" else made.actor == "carol"


def test_every_door_is_known(world: World) -> None:
    assert doors(world.page, world.cast.carol) - {*CHANGES, *READS_ONE_MOMENT} - LEAVES_NONE == set()


def test_every_kind_of_entry_can_be_filtered_by() -> None:
    assert {action.split(".")[0] for action, _ in (CHANGES | READS_ONE_MOMENT).values()} <= set(KINDS)


def test_a_dry_run_leaves_none(world: World) -> None:
    world.rest.post(f"{TALK}/import/?dry_run=1", [task_row("t-9")])
    assert not AuditEntry.objects.filter(action="tasks.imported").exists()


def test_no_entry_holds_a_secret(world: World) -> None:
    for door in ("admin user add", "page quarantined-task", "rest token post", "page admin-password"):
        CHANGES[door][1](world)
    entries = str(list(AuditEntry.objects.values()))
    assert all(secret not in entries for secret in ("other-pass-98", "old-pass-123", "What is"))
