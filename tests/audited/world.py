"""What a change is tried on: a project, its people, a manager who is a superuser, before a page and with a token."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group
from django.forms import model_to_dict
from django.test import Client
from rest_framework.test import APIClient

from annotator.accounts import tokens
from annotator.models import (
    Assignment,
    Exclusion,
    ExportJob,
    Gold,
    ImportJob,
    ImportMapping,
    Membership,
    Project,
    Rating,
    Release,
    Role,
    Task,
    Token,
    User,
    Webhook,
    WebhookDelivery,
)
from annotator.stages.importing import jobs, kept_mappings
from annotator.stages.importing.mappings import read_mapping
from rewards.models import Evaluation, EvaluationJob, RewardModel, RunKind, RunState, Snapshot, TrainingRun
from tests.builders import ATTRIBUTES, NOW, claimed, json_lines, make_gold, make_task, rate, task_row
from tests.conftest import Cast

COLUMNS = {"prompt": "question", "responses": [{"text": "answer"}]}


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

    def archived(self) -> "World":
        """With the project put away."""
        Project.objects.update(archived_at=NOW)
        return self

    def offered(self) -> "World":
        """With carol one of the annotators, whom alice, now the manager, has asked to manage the project."""
        Membership.objects.filter(user=self.cast.carol).update(role=Role.ANNOTATOR, offered_role=Role.MANAGER)
        Membership.objects.filter(user=self.cast.alice).update(role=Role.MANAGER)
        return self

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

    def evaluation(self) -> Evaluation:
        """An evaluation that somebody asked for."""
        return Evaluation.objects.create(reward_model=self.model(), name="rb2", data_hash="c0ffee", metrics={})

    def evaluation_job(self) -> EvaluationJob:
        return EvaluationJob.objects.create(reward_model=self.model(), name="rb2", file_name="rb2.jsonl")

    def import_job(self) -> ImportJob:
        """A file that waits for its start."""
        read = io.BytesIO(b"question,answer\nWhy?,Because.\n").read
        return jobs.upload(self.project, read, file_name="rows.csv", by=self.cast.carol, now=NOW)

    def export_job(self) -> ExportJob:
        """A file that the manager has asked for."""
        return ExportJob.objects.create(project=self.project, requested_by=self.cast.carol, created_at=NOW)

    def webhook(self) -> Webhook:
        given = {"url": "https://example.org/", "secret": "whsec_AAAA", "created_at": NOW}
        return Webhook.objects.create(project=self.project, **given)

    def delivery(self) -> WebhookDelivery:
        """A delivery that has failed."""
        return self.webhook().deliveries.create(event="run.ended", data={}, state="failed")

    def release(self) -> Release:
        """A release that waits for the worker."""
        return self.project.releases.create(number=1, license="mit", created_at=NOW)

    def import_mapping(self) -> ImportMapping:
        return kept_mappings.keep(self.project, "ours", read_mapping(COLUMNS), by=self.cast.carol)

    def run(self, state: str = RunState.QUEUED) -> TrainingRun:
        return TrainingRun.objects.create(project=self.project, reason="a test", state=state)

    def policy_run(self, state: str = RunState.QUEUED) -> TrainingRun:
        config = {"policy": "small", "method": "dpo"}
        given = {"kind": RunKind.POLICY, "state": state, "config": config}
        return TrainingRun.objects.create(project=self.project, reason="a test", **given)

    def waiting(self) -> TrainingRun:
        """A run whose model waits for a manager's decision."""
        run = self.model().run
        TrainingRun.objects.filter(pk=run.pk).update(state=RunState.AWAITING_PROMOTION)
        return run

    def marked_snapshot(self) -> Snapshot:
        given = {"content_hash": "c0ffee", "path": "snapshots/talk/c0ffee", "manifest": {}, "marked_at": NOW}
        counts = dict.fromkeys(("train_tasks", "validation_tasks", "labels"), 1)
        return Snapshot.objects.create(project=self.project, **given, **counts)

    def token(self) -> Token:
        return tokens.issue(self.cast.alice)[0]

    def own_token(self) -> Token:
        return tokens.issue(self.cast.carol)[0]

    def member(self) -> Membership:
        return self.cast.alice.memberships.get()

    def held(self) -> Assignment:
        """A task that carol rates."""
        make_task(self.project)
        return claimed(self.project, self.cast.carol)

    def rated(self, user: User | None = None) -> Assignment:
        """A task that somebody has rated and others may still rate."""
        make_task(self.project)
        return rate(self.project, user or self.cast.carol).annotation.assignment

    def edit(self) -> Rating:
        """A better version of a response, which has not become a task yet."""
        rating = Rating.objects.filter(annotation__assignment=self.rated(self.cast.bob)).earliest("pk")
        Rating.objects.filter(pk=rating.pk).update(edit="More words.")
        return rating

    def complete(self) -> Task:
        """A task that everybody wanted has rated."""
        task = make_task(self.project)
        for user in self.cast.annotators:
            rate(self.project, user)
        return task

    def excluded(self) -> Exclusion:
        task = make_task(self.project)
        rate(self.project, self.cast.bob)
        given = {"reason": "A bot.", "by": self.cast.carol, "made_at": task.created_at}
        return Exclusion.objects.create(project=self.project, annotator=self.cast.bob, **given)

    def gold(self) -> Gold:
        return make_gold(self.project).gold


Change = Callable[[World], Any]


def group(world: World) -> Group:
    return Group.objects.get_or_create(name="a group")[0]
