"""Changes that take more than a line to ask for."""

import io
from collections.abc import Callable
from typing import Any
from unittest import mock

from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client, override_settings
from rest_framework.test import APIClient

from annotator.infrastructure.db.clock import database_now
from annotator.managing import invitations, password_links
from annotator.managing.invitations import InvitationInput
from annotator.models import Invitation, Project, Role, Task, User
from annotator.pages.projects.project_settings_form import ProjectSettingsForm
from annotator.stages.annotation import note_gap
from annotator.stages.review.bulk_changes import change_many
from rewards.api import openrlhf
from rewards.models import TrainingRun
from tests.audited.world import Change, World
from tests.builders import (
    ATTRIBUTES,
    NOW,
    imported,
    label_row,
    make_member,
    make_project,
    make_task,
    make_user,
    pseudonym,
)

TALK = "/api/v1/projects/talk"
ITEMS = [{"conversation": [{"role": "user", "content": "Why?"}], "response": "Because."}]


def changed_settings(world: World) -> Any:
    """Sends the page of settings as it is shown, with another number."""
    shown = ProjectSettingsForm(world.project)
    fields = {field.name: field.value() for field in shown}
    kept = {name: value for name, value in fields.items() if value is not None and value is not False}
    return world.page.post("/projects/talk/settings/", kept | {"keep": 2})


def own_password(world: World, door: str) -> Any:
    world.cast.carol.set_password("old-pass-123")
    world.cast.carol.save()
    world.page.force_login(world.cast.carol)
    new = {"new_password1": "other-pass-98", "new_password2": "other-pass-98"}
    return world.page.post(door, {"old_password": "old-pass-123", **new})


def login(world: World, door: str) -> Any:
    world.cast.carol.set_password("old-pass-123")
    world.cast.carol.save()
    return Client().post(door, {"username": "carol", "password": "old-pass-123"})


def token_by_password(world: World) -> Any:
    world.cast.carol.set_password("old-pass-123")
    world.cast.carol.save()
    return APIClient().post("/api/v1/token/", {"username": "carol", "password": "old-pass-123"})


def invitation(world: World) -> Invitation:
    return invitations.invite(world.project, InvitationInput(), by=world.cast.carol, now=NOW)[0]


def delivery_at(world: World, place: str) -> str:
    """The address of a failed delivery."""
    delivery = world.delivery()
    return place.format(webhook=delivery.webhook_id, delivery=delivery.pk)


def invited_elsewhere(world: World) -> str:
    """The secret of a link into a project that carol is not in yet."""
    lead = make_member(make_project("other"), make_user("lead"), role=Role.MANAGER).user
    project = Project.objects.get(slug="other")
    return invitations.invite(project, InvitationInput(), by=lead, now=database_now())[1]


def new_password_by_link(world: World) -> Any:
    _, secret = password_links.make(world.cast.carol, by=world.cast.carol, project=world.project, now=database_now())
    new = {"password": "other-pass-98", "again": "other-pass-98"}
    return Client().post(f"/new-password/{secret}/", new)


def redaction_on_the_page(world: World) -> Any:
    task = world.quarantined()
    address = f"/projects/talk/data/quarantine/{task.public_id}/"
    form = {f"task-{task.pk}-quotes": "What is", "redact": "1", "understood": "1"}
    shown = world.page.post(address, {f"task-{task.pk}-quotes": "What is"}).context["form"]
    return world.page.post(address, {**form, f"task-{task.pk}-previewed": shown.key()})


def rating_of_an_expert(world: World) -> Any:
    gold = world.gold()
    form: dict[str, Any] = {"use": gold.use, "ratings-TOTAL_FORMS": 2, "ratings-INITIAL_FORMS": 2}
    for number, rating in enumerate(gold.ratings.order_by("pk")):
        form |= {f"ratings-{number}-id": rating.pk, f"ratings-{number}-explanation": "Better now."}
        form |= {f"ratings-{number}-gold": gold.pk, **{f"ratings-{number}-level_{key}": 0 for key in ATTRIBUTES}}
    return world.page.post(f"/admin/annotator/gold/{gold.pk}/change/", form)


def a_new_account(world: World) -> Any:
    form = {"username": "frank", "password1": "other-pass-98", "password2": "other-pass-98", "usable_password": "true"}
    return world.form("annotator/user", **form)


def an_account(world: World) -> Any:
    joined = {"date_joined_0": "2026-01-31", "date_joined_1": "12:00:00", "is_staff": "on"}
    return world.form("annotator/user", world.cast.alice, **joined, user_permissions=[], groups=[])


def first_administrator(world: World) -> None:
    User.objects.update(is_superuser=False)
    command("first_administrator")(world)


def new_token(world: World) -> Any:
    return world.page.post("/settings/tokens/", {"token-name": "new", "token-scopes": ["read"], "token-days": 7})


def deleted(name: str, row: Callable[[World], Any]) -> Change:
    return lambda world: world.page.post(f"/admin/{name}/{row(world).pk}/delete/", {"post": "yes"})


def command(*words: Any, **options: Any) -> Change:
    """What is callable among the words makes one."""

    def run(world: World) -> None:
        call_command(*(str(word(world)) if callable(word) else word for word in words), stdout=io.StringIO(), **options)

    return run


def sent_evaluation(world: World) -> Any:
    form = {"model": world.model().pk, "file": SimpleUploadedFile("rows.jsonl", b"{}")}
    return world.rest.post(f"{TALK}/evaluation-jobs/", form, format="multipart")


def sent_evaluation_on_the_page(world: World) -> Any:
    form = {"model": world.model().pk, "file": SimpleUploadedFile("rows.jsonl", b"{}")}
    return world.page.post("/projects/talk/evaluation-jobs/", form)


def sent_segments(world: World) -> Any:
    task = make_task(world.project)
    response = task.responses.earliest("position")
    body = {"responses": [{"response": response.public_id, "segments": [response.text]}]}
    return world.rest.put(f"/api/v1/tasks/{task.public_id}/segments/", body, format="json")


def sent_segments_on_the_page(world: World) -> Any:
    task = make_task(world.project)
    parts = {"position": 0, "parts": task.responses.earliest("position").text}
    return world.page.post(f"/projects/talk/data/tasks/{task.public_id}/segments/", parts)


def sent_import(world: World) -> Any:
    return world.page.post("/projects/talk/data/import/", {"file": SimpleUploadedFile("rows.jsonl", b"{}")})


def snapshot(world: World) -> Any:
    imported(world.project, *(label_row(f"Question {number}?", f"Answer {number}.") for number in range(60)))
    return world.rest.post(f"{TALK}/snapshots/")


def run_request(change: Change) -> Change:
    """With a label, as nothing is learnt from nothing."""

    def run(world: World) -> Any:
        imported(world.project, label_row("Question?", "Answer."))
        return change(world)

    return run


def policy_run(change: Change) -> Change:
    """With a label and a base policy."""

    def run(world: World) -> Any:
        with override_settings(POLICY_BASES={"small": "org/small"}):
            return run_request(change)(world)

    return run


def requested_policy_run(world: World) -> Any:
    return world.rest.post(f"{TALK}/policy-runs/", {"config": {"policy": "small", "method": "dpo"}})


def sent_policy_form(world: World) -> Any:
    form = {"policy": "small", "method": "dpo", "rejected_weight": "inverted", "schedule": "constant"}
    chosen = {"device": "auto", "precision": "auto"}
    return world.page.post("/projects/talk/models/policies/start/", form | chosen)


def sent_run_form(world: World) -> Any:
    form = {"backbone": "minilm", "stages": "regression", "method": "fine_tune", "epochs": 2}
    chosen = {"targets": "mean", "schedule": "constant", "device": "auto", "precision": "auto"}
    return world.page.post("/projects/talk/models/runs/start/", form | chosen)


def scores(world: World) -> None:
    world.model(is_champion=True)
    command("score", "talk")(world)


def rewards_for_a_trainer(world: World) -> Any:
    world.model(is_champion=True)
    openrlhf._note.cache_clear()
    with mock.patch("rewards.scoring.results_of", return_value=[]):
        return world.rest.post("/api/v1/openrlhf/talk/", {"query": ["Why? So."], "prompts": ["Why?"]})


def evaluation(world: World) -> None:
    """Without the process that loads the model."""
    with mock.patch("rewards.evaluation.evaluation.measured", return_value={"data": {"sha256": "c0ffee"}}):
        command("evaluate", world.model().pk, World.file)(world)


def exported_model(world: World) -> None:
    """Of a model whose only file is its manifest."""
    model = world.model()
    model.directory().mkdir(parents=True)
    (model.directory() / "reward_model.json").write_text("{}")
    command("export_model", model.pk, to=str(model.directory() / "taken"))(world)


# Ratings ---------------------------------------------------------------------------------------------------


def rating_form(task: Task, level: int = 3, **fields: Any) -> dict[str, Any]:
    return {f"{key}-{response.public_id}": level for response in task.responses.all() for key in ATTRIBUTES} | fields


def rating_body(task: Task, **fields: Any) -> dict[str, Any]:
    scores = dict.fromkeys(ATTRIBUTES, 3)
    return {
        "ratings": [{"response": response.public_id, "scores": scores} for response in task.responses.all()],
        **fields,
    }


def submission(world: World) -> Any:
    held = world.held()
    return world.page.post(f"/assignments/{held.pk}/submit/", rating_form(held.task))


def revision(world: World) -> Any:
    rated = world.rated()
    return world.page.post(f"/assignments/{rated.pk}/revise/", rating_form(rated.task, 1))


def undone_skip(world: World) -> Any:
    held = world.held()
    world.page.post(f"/assignments/{held.pk}/skip/", {"reason": "other"})
    return world.page.post(f"/assignments/{held.pk}/undo-skip/")


def undone_report(world: World) -> Any:
    held = world.held()
    world.page.post(f"/assignments/{held.pk}/report/", {"category": "bias"})
    return world.page.post(f"/assignments/{held.pk}/undo-report/")


def sent_rating(world: World) -> Any:
    held = world.held()
    return world.rest.put(f"/api/v1/assignments/{held.pk}/annotation/", rating_body(held.task))


# Reviews ---------------------------------------------------------------------------------------------------


def sent_answer(world: World) -> Any:
    rated = world.rated(world.cast.bob)
    gap = note_gap(rated.pk, now=NOW)
    return world.rest.post(f"/api/v1/review/{rated.task.public_id}/answered/", {"newest": gap.pk})


def settled(world: World) -> Task:
    task = world.complete()
    world.rest.put(f"/api/v1/tasks/{task.public_id}/adjudication/", rating_body(task, reason="slip"))
    return task


def answered_gap(world: World) -> Any:
    rated = world.rated(world.cast.bob)
    gap = note_gap(rated.pk, now=NOW)
    return world.page.post(f"/projects/talk/review/{rated.task.public_id}/answered/", {"seen": gap.pk})


def settling(world: World) -> Any:
    task = world.complete()
    return world.page.post(f"/projects/talk/review/{task.public_id}/", rating_form(task, reason="slip"))


def sent_settling(world: World) -> Any:
    task = world.complete()
    return world.rest.put(f"/api/v1/tasks/{task.public_id}/adjudication/", rating_body(task, reason="slip"))


def sent_exclusion(world: World) -> Any:
    world.rated(world.cast.bob)
    who = {"annotator": pseudonym(world.cast.bob, world.project), "reason": "A bot."}
    return world.rest.post("/api/v1/projects/talk/exclusions/", who)


def sent_readmission(world: World) -> Any:
    who = pseudonym(world.excluded().annotator, world.project)
    return world.rest.delete(f"/api/v1/projects/talk/exclusions/?annotator={who}")


def sent_bulk_change(world: World) -> Any:
    return world.rest.post(
        f"{TALK}/bulk-changes/", {"action": "priority", "priority": 5, "tasks": [make_task(world.project).public_id]}
    )


def change_of_many(world: World) -> int:
    """Retires a task, which can then be undone; returns the id of the change."""
    chosen = [make_task(world.project).pk]
    return change_many(world.project, chosen, action="retire", by=world.cast.carol, now=NOW).pk


def erased_on_the_page(world: World) -> Any:
    model = world.model()
    TrainingRun.objects.filter(pk=model.run_id).update(snapshot=world.marked_snapshot())
    return world.page.post(f"/projects/talk/models/{model.pk}/erase/")
