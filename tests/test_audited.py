"""Whatever a manager or a command changes leaves an entry in the audit, through whichever door."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.forms import model_to_dict
from django.test import Client
from knox.models import AuthToken
from rest_framework.test import APIClient

from annotator import workers
from annotator.admin.audit import KINDS
from annotator.models import AuditEntry, Gold, Membership, Project, Task, User
from annotator.workers import QueueHealth
from rewards.models import RewardModel, RunState, TrainingRun
from tests.audited import doors
from tests.builders import ATTRIBUTES, imported, json_lines, label_row, make_gold, make_task, task_row
from tests.conftest import Cast

LEAVES_NONE = {
    # One's own rating work: an annotation, a skip or a report is itself a row that says who and when.
    "page submit",
    "page revise",
    "page skip",
    "page undo-skip",
    "page report",
    "rest annotation put",
    "rest skip post",
    "rest report post",
    # Leases and drafts come and go; the test's answers are rows of their own.
    "page draft",
    "page heartbeat",
    "page begin-qualification",
    "page draft-qualification",
    "page take-qualification",
    "rest next post",
    "rest heartbeat post",
    "rest assignment delete",
    # What concerns oneself alone.
    "page guidelines",
    "page settings",
    "page layout",
    "page set_language",
    "page login",
    "page logout",
    # Leads to a page that changes something, or computes from what is there.
    "admin task redact",
    "command agreement",
}


@dataclass(frozen=True)
class World:
    """carol, a superuser who manages the project, before a page and with a token."""

    project: Project
    cast: Cast
    page: Client
    rest: APIClient
    folder: Path

    def form(self, name: str, row: Any = None, /, **fields: Any) -> Any:
        """Sends one of the admin's forms, filled as it is shown."""
        shown = model_to_dict(row) if row else {}
        kept = {key: value for key, value in shown.items() if value is not None and value is not False}
        place = f"/admin/{name}/{row.pk}/change/" if row else f"/admin/{name}/add/"
        return self.page.post(place, kept | fields)

    def act(self, name: str, action: str, *rows: Any) -> Any:
        form = {"action": action, "_selected_action": [row.pk for row in rows], "post": "yes"}
        return self.page.post(f"/admin/{name}/", form)

    def quarantined(self) -> Task:
        task = make_task(self.project, "t-1")
        Task.objects.filter(pk=task.pk).update(state=Task.State.QUARANTINED)
        return task

    def file(self) -> str:
        path = self.folder / "rows.jsonl"
        path.write_bytes(json_lines(task_row("t-9")).getvalue())
        return str(path)

    def model(self, *, is_champion: bool = False) -> RewardModel:
        run = self.run(RunState.PROMOTED)
        weights = dict.fromkeys(ATTRIBUTES, 0.2)
        given = {"attributes": list(ATTRIBUTES), "attribute_weights": weights, "manifest": {}, "path": "models/none"}
        return RewardModel.objects.create(project=self.project, run=run, version=1, is_champion=is_champion, **given)

    def run(self, state: str = RunState.QUEUED) -> TrainingRun:
        return TrainingRun.objects.create(project=self.project, reason="a test", state=state)

    def token(self) -> AuthToken:
        return AuthToken.objects.create(self.cast.alice)[0]

    def member(self) -> Membership:
        return self.cast.alice.memberships.get()

    def gold(self) -> Gold:
        return make_gold(self.project).gold


TALK = "/api/v1/projects/talk"
NO_GUIDELINES = {"guidelines-TOTAL_FORMS": 0, "guidelines-INITIAL_FORMS": 0, "training_config": "{}"}
NO_RESPONSES = {"responses-TOTAL_FORMS": 0, "responses-INITIAL_FORMS": 0}
NO_RUNS = {"qualification_runs-TOTAL_FORMS": 0, "qualification_runs-INITIAL_FORMS": 0}
ITEMS = [{"conversation": [{"role": "user", "content": "Why?"}], "response": "Because."}]
Change = Callable[[World], Any]


def own_password(world: World) -> Any:
    world.cast.carol.set_password("old-pass-123")
    world.cast.carol.save()
    world.page.force_login(world.cast.carol)
    new = {"new_password1": "other-pass-98", "new_password2": "other-pass-98"}
    return world.page.post("/admin/password_change/", {"old_password": "old-pass-123", **new})


def token_by_password(world: World) -> Any:
    world.cast.carol.set_password("old-pass-123")
    world.cast.carol.save()
    return APIClient().post("/api/v1/token/", {"username": "carol", "password": "old-pass-123"})


def redaction(world: World) -> Any:
    task = world.quarantined()
    address = f"/admin/annotator/task/redact/?task={task.pk}"
    form = {f"task-{task.pk}-quotes": "What is", "redact": "1"}
    (shown,) = world.page.post(address, {f"task-{task.pk}-quotes": "What is"}).context["forms"]
    return world.page.post(address, {**form, f"task-{task.pk}-previewed": shown.key()})


def rating_of_an_expert(world: World) -> Any:
    gold = world.gold()
    form: dict[str, Any] = {"use": gold.use, "ratings-TOTAL_FORMS": 2, "ratings-INITIAL_FORMS": 2}
    for number, each in enumerate(gold.ratings.order_by("pk")):
        form |= {f"ratings-{number}-id": each.pk, f"ratings-{number}-explanation": "Better now."}
        form |= {
            f"ratings-{number}-gold": gold.pk,
            f"ratings-{number}-scores": json.dumps(dict.fromkeys(ATTRIBUTES, 0)),
        }
    return world.page.post(f"/admin/annotator/gold/{gold.pk}/change/", form)


def a_new_account(world: World) -> Any:
    form = {"username": "frank", "password1": "other-pass-98", "password2": "other-pass-98", "usable_password": "true"}
    return world.form("annotator/user", **form)


def an_account(world: World) -> Any:
    joined = {"date_joined_0": "2026-01-31", "date_joined_1": "12:00:00", "is_staff": "on"}
    return world.form("annotator/user", world.cast.alice, **joined, user_permissions=[], groups=[])


def a_token(world: World) -> Any:
    return world.form("knox/authtoken", world.token(), expiry_0="2030-01-31", expiry_1="12:00:00")


def deleted(name: str, row: Callable[[World], Any]) -> Change:
    return lambda world: world.page.post(f"/admin/{name}/{row(world).pk}/delete/", {"post": "yes"})


def command(*words: Any, **options: Any) -> Change:
    """What is callable among the words makes one."""

    def run(world: World) -> None:
        call_command(*(str(word(world)) if callable(word) else word for word in words), stdout=io.StringIO(), **options)

    return run


def snapshot(world: World) -> Any:
    imported(world.project, *(label_row(f"Question {number}?", f"Answer {number}.") for number in range(60)))
    return world.rest.post(f"{TALK}/snapshots/")


def scores(world: World) -> None:
    world.model(is_champion=True)
    command("score", "talk")(world)


def evaluation(world: World) -> None:
    """Without the process that loads the model."""
    with mock.patch("rewards.management.commands.evaluate._measured", return_value={}):
        command("evaluate", world.model().pk, World.file)(world)


def new_project(world: World) -> dict[str, Any]:
    shown = {key: value for key, value in model_to_dict(world.project).items() if value not in (None, "")}
    return {key: value for key, value in shown.items() if value is not False} | {"slug": "new"}


def group(world: World) -> Group:
    return Group.objects.get_or_create(name="a group")[0]


CHANGES: dict[str, tuple[str, Change]] = {
    # REST
    "rest token post": ("token.issued", token_by_password),
    "rest projects post": ("project.created", lambda w: w.rest.post("/api/v1/projects/", {"slug": "new", "name": "N"})),
    "rest project patch": ("project.changed", lambda w: w.rest.patch(f"{TALK}/", {"keep": 2})),
    "rest project delete": ("project.deleted", lambda w: w.rest.delete(f"{TALK}/")),
    "rest members post": ("membership.created", lambda w: w.rest.post(f"{TALK}/members/", {"username": "dave"})),
    "rest import post": ("tasks.imported", lambda w: w.rest.post(f"{TALK}/import/", [task_row("t-9")])),
    "rest export get": ("labels.exported", lambda w: w.rest.get(f"{TALK}/export/")),
    "rest snapshots post": ("snapshot.taken", snapshot),
    "rest training-runs post": ("run.requested", lambda w: w.rest.post(f"{TALK}/training-runs/", {"reason": "a test"})),
    "rest cancel-training-run post": (
        "run.cancelled",
        lambda w: w.rest.post(f"/api/v1/training-runs/{w.run().pk}/cancel/"),
    ),
    "rest promote post": ("model.promoted", lambda w: w.rest.post(f"/api/v1/reward-models/{w.model().pk}/promote/")),
    "rest score post": (
        "scoring.asked",
        lambda w: w.rest.post("/api/v1/score/", {"model": w.model().pk, "items": ITEMS}),
    ),
    # The admin's own buttons
    "page retrain": ("run.requested", lambda w: w.page.post("/admin/projects/talk/retrain/")),
    "page cancel-run": ("run.cancelled", lambda w: w.page.post(f"/admin/training-runs/{w.run().pk}/cancel/")),
    "page promote-model": ("model.promoted", lambda w: w.page.post(f"/admin/reward-models/{w.model().pk}/promote/")),
    "admin annotator_task_redact": ("task.redacted", redaction),
    "admin annotator_task_decide": (
        "task.released",
        lambda w: w.page.post(f"/admin/annotator/task/{w.quarantined().pk}/decide/", {"decision": "release"}),
    ),
    "admin password_change": ("password.set", own_password),
    # Its actions
    "admin task release": ("task.released", lambda w: w.act("annotator/task", "release", w.quarantined())),
    "admin task retire": ("task.retired", lambda w: w.act("annotator/task", "retire", w.quarantined())),
    "admin membership pause": ("membership.paused", lambda w: w.act("annotator/membership", "pause", w.member())),
    "admin membership let_go_on": (
        "membership.resumed",
        lambda w: w.act("annotator/membership", "let_go_on", w.member()),
    ),
    "admin membership give_another_try": (
        "membership.given_another_try",
        lambda w: w.act("annotator/membership", "give_another_try", w.member()),
    ),
    "admin membership qualify": (
        "membership.qualified",
        lambda w: w.act("annotator/membership", "qualify", w.member()),
    ),
    "admin membership remove_from_project": (
        "membership.ended",
        lambda w: w.act("annotator/membership", "remove_from_project", w.member()),
    ),
    "admin user delete_selected": (
        "account.deleted",
        lambda w: w.act("annotator/user", "delete_selected", w.cast.dave),
    ),
    "admin group delete_selected": ("group.deleted", lambda w: w.act("auth/group", "delete_selected", group(w))),
    "admin authtoken delete_selected": (
        "token.deleted",
        lambda w: w.act("knox/authtoken", "delete_selected", w.token()),
    ),
    # Its forms
    "admin task change": (
        "task.changed",
        lambda w: w.form("annotator/task", make_task(w.project), priority=7, **NO_RESPONSES),
    ),
    "admin gold change": ("gold.rating_changed", rating_of_an_expert),
    "admin project add": (
        "project.created",
        lambda w: w.form("annotator/project", **(new_project(w) | NO_GUIDELINES)),
    ),
    "admin project change": (
        "project.changed",
        lambda w: w.form("annotator/project", w.project, keep=2, **NO_GUIDELINES),
    ),
    "admin membership add": (
        "membership.created",
        lambda w: w.form("annotator/membership", project=w.project.pk, username="dave", role="annotator"),
    ),
    "admin membership change": (
        "membership.changed",
        lambda w: w.form("annotator/membership", w.member(), role="reviewer", extra_tries=1, **NO_RUNS),
    ),
    "admin user add": ("account.created", a_new_account),
    "admin user change": ("account.changed", an_account),
    "admin user delete": ("account.deleted", deleted("annotator/user", lambda w: w.cast.dave)),
    "admin group add": ("group.created", lambda w: w.form("auth/group", name="new")),
    "admin group change": ("group.changed", lambda w: w.form("auth/group", group(w), name="new", permissions=[])),
    "admin group delete": ("group.deleted", deleted("auth/group", group)),
    "admin authtoken add": ("token.created", lambda w: w.form("knox/authtoken", user=w.cast.alice.pk)),
    "admin authtoken change": ("token.changed", a_token),
    "admin authtoken delete": ("token.deleted", deleted("knox/authtoken", World.token)),
    # Commands
    "command import_tasks": ("tasks.imported", command("import_tasks", "talk", World.file)),
    "command export_labels": ("labels.exported", command("export_labels", "talk", output="/dev/null")),
    "command issue_token": ("token.issued", command("issue_token", "alice")),
    "command evaluate": ("model.evaluated", evaluation),
    "command recount": ("project.recounted", command("recount", "talk")),
    "command retrain": ("run.requested", command("retrain", "talk")),
    "command score": ("scoring.started", scores),
    "command seed_demo": ("project.created", command("seed_demo")),
}


@pytest.fixture
def world(project: Project, cast: Cast, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    User.objects.filter(pk=cast.carol.pk).update(is_staff=True, is_superuser=True)
    cast.carol.refresh_from_db()
    client.force_login(cast.carol)
    rest = APIClient()
    rest.credentials(HTTP_AUTHORIZATION=f"Token {AuthToken.objects.create(cast.carol)[1]}")
    monkeypatch.setattr(workers, "listening", lambda: dict.fromkeys(workers.QUEUES, QueueHealth(1, 0.5)))
    monkeypatch.setattr("rewards.api.SCORE_WAIT_SECONDS", 0.0)
    return World(project, cast, client, rest, tmp_path)


@pytest.mark.parametrize("door", CHANGES)
def test_a_change_leaves_an_entry(world: World, door: str) -> None:
    action, change = CHANGES[door]
    last = AuditEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    answer = change(world)
    assert answer is None or getattr(answer, "status_code", 200) < 400, answer.content
    made = AuditEntry.objects.filter(pk__gt=last, action=action).order_by("pk").last()
    assert made, list(AuditEntry.objects.values_list("action", flat=True))
    assert made.via == {"page": "admin"}.get(door.split(maxsplit=1)[0], door.split(maxsplit=1)[0])
    assert made.actor.startswith("os:") if made.via == "command" else made.actor == "carol"


def test_every_door_is_known(world: World) -> None:
    assert doors(world.page, world.cast.carol) - set(CHANGES) - LEAVES_NONE == set()


def test_every_kind_of_entry_can_be_filtered_by() -> None:
    assert {action.split(".")[0] for action, _ in CHANGES.values()} <= set(KINDS)


def test_a_dry_run_leaves_none(world: World) -> None:
    world.rest.post(f"{TALK}/import/?dry_run=1", [task_row("t-9")])
    assert not AuditEntry.objects.filter(action="tasks.imported").exists()


def test_no_entry_holds_a_secret(world: World) -> None:
    for door in ("admin user add", "admin annotator_task_redact", "rest token post", "admin password_change"):
        CHANGES[door][1](world)
    entries = str(list(AuditEntry.objects.values()))
    assert all(secret not in entries for secret in ("other-pass-98", "old-pass-123", "What is"))
