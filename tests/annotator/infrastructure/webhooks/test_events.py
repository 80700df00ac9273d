"""Which events are written by which changes, in whose transaction, and what they hold."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.background.heartbeats import QueueHealth
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.webhooks import events
from annotator.infrastructure.webhooks.events import ANNOUNCED_AFTER
from annotator.models import Project, QueueOutage, SkipReason, Task, Webhook, WebhookDelivery
from annotator.stages import annotation
from annotator.stages.annotation import skips
from annotator.stages.review import adjudications
from tests.builders import NOW, claimed, imported, label_row, make_project, make_task, rate, submission
from tests.conftest import Cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def hook(project: Project) -> Webhook:
    return make(project)


def make(project: Project, *names: str) -> Webhook:
    return Webhook.objects.create(
        project=project, url="https://example.org/", secret="whsec_AAAA", events=list(names), created_at=NOW
    )


def sent(hook: Webhook) -> list[tuple[str, dict[str, Any]]]:
    rows = hook.deliveries.order_by("pk")
    return [(row.event, {k: v for k, v in row.payload()["data"].items() if k != "project"}) for row in rows]


def names(hook: Webhook) -> list[str]:
    return [name for name, _ in sent(hook)]


def test_a_complete_task_and_its_labels_are_news(project: Project, cast: Cast, hook: Webhook) -> None:
    task = make_task(project, "t-1")
    for user in cast.annotators[:2]:
        rate(project, user)
    assert sent(hook) == []
    rate(project, cast.erin)
    of_task = {"task": task.public_id, "external_id": "t-1"}
    assert sent(hook) == [
        ("task.completed", of_task | {"state": "complete", "annotations": 3}),
        ("label.changed", of_task | {"source": "consensus", "change": "made", "responses": 2}),
    ]


def test_nothing_is_written_twice_for_a_submission_that_is_repeated(
    project: Project, cast: Cast, hook: Webhook
) -> None:
    make_task(project)
    for user in cast.annotators:
        done = rate(project, user)
    assert len(sent(hook)) == 2
    annotation.submit(done.annotation.assignment_id, submission(Task.objects.get()), now=NOW)
    assert len(sent(hook)) == 2


def test_a_task_that_is_set_aside_is_news_once(project: Project, cast: Cast, hook: Webhook) -> None:
    make_task(project)
    first, second = claimed(project, cast.alice), claimed(project, cast.bob)
    skips.skip(first.pk, reason=SkipReason.PII, now=NOW)
    skips.report(second.pk, category="bias", now=NOW)
    assert names(hook) == ["task.quarantined"]


def test_ratings_too_far_apart_are_a_dispute(project: Project, cast: Cast, hook: Webhook) -> None:
    Project.objects.update(max_annotators=3)
    project.refresh_from_db()
    make_task(project)
    for user, level in zip(cast.annotators, (0, 2, 4), strict=True):
        rate(project, user, level)
    task = Task.objects.get()
    assert task.review_reason == "dropped"
    assert names(hook)[:2] == ["task.completed", "task.disputed"]
    assert sent(hook)[1][1]["because"] == "dropped"


def test_a_reviewer_s_labels_are_news_when_they_come_and_go(project: Project, cast: Cast, hook: Webhook) -> None:
    task = make_task(project)
    for user in cast.annotators:
        rate(project, user)
    WebhookDelivery.objects.all().delete()
    scores = {response: rating.scores for response, rating in submission(task, 1).ratings.items()}
    adjudications.adjudicate(task.pk, scores=scores, reason="slip", by=cast.carol, now=NOW)
    adjudications.withdraw(task.pk, by=cast.carol, now=NOW)
    changes = [(data["source"], data["change"]) for name, data in sent(hook) if name == "label.changed"]
    # The last one says that the annotators' labels are in force again.
    assert changes == [("adjudicated", "made"), ("adjudicated", "withdrawn"), ("consensus", "changed")]


def test_labels_from_files_are_no_news(project: Project, hook: Webhook) -> None:
    imported(project, label_row("Why?", "So."))
    assert sent(hook) == []


def test_an_event_holds_no_text_and_no_name(project: Project, cast: Cast, hook: Webhook) -> None:
    make_task(project, "t-1", prompt="A secret question?")
    for user in cast.annotators:
        rate(project, user, justification="A secret reason.")
    payloads = json.dumps([row.payload() for row in hook.deliveries.all()])
    assert not any(word in payloads for word in ("secret", "alice", "bob", "erin", "Answer"))


def test_what_is_rolled_back_is_never_sent(project: Project, cast: Cast, hook: Webhook) -> None:
    make_task(project)
    with transaction.atomic():
        for user in cast.annotators:
            rate(project, user)
        assert hook.deliveries.count() == 2
        transaction.set_rollback(True)
    assert hook.deliveries.count() == 0


def test_only_webhooks_that_want_it_get_an_event(project: Project) -> None:
    everything, some = make(project), make(project, "run.ended", "model.promoted")
    other, inactive = make(make_project("other")), make(project)
    Webhook.objects.filter(pk=inactive.pk).update(active=False)
    assert events.announce(project, "run.ended", run=1, state="failed") == 2
    assert events.announce(project, "worker.missing", queue="train") == 1
    assert [names(hook) for hook in (everything, some)] == [["run.ended", "worker.missing"], ["run.ended"]]
    assert (names(other), names(inactive)) == ([], [])


def test_a_release_is_announced_with_what_it_holds(project: Project, hook: Webhook) -> None:
    assert events.release_ready(project, release=4, tasks=10, content_hash="c0ffee") == 1
    assert sent(hook) == [("release.ready", {"release": 4, "tasks": 10, "content_hash": "c0ffee"})]


def test_a_deleted_project_has_no_news(project: Project, hook: Webhook) -> None:
    Project.objects.update(archived_at=NOW, deleted_at=NOW)
    assert events.announce(project, "run.ended", run=1, state="failed") == 0


def test_a_webhook_adds_no_query_to_a_submission(project: Project, cast: Cast) -> None:
    counts = []
    for hooks in range(2):
        make_task(project)
        for user in cast.annotators[:2]:
            rate(project, user)
        held = claimed(project, cast.erin)
        with CaptureQueriesContext(connection) as asked:
            annotation.submit(held.pk, submission(held.task), now=NOW)
        counts.append(len(asked))
        assert WebhookDelivery.objects.count() == 2 * hooks
        make(project)
    assert counts[0] == counts[1]


# Missing workers -------------------------------------------------------------------------------------------


@pytest.fixture
def queues(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Says how many workers listen to each queue."""

    def listen(workers: int) -> None:
        health = dict.fromkeys(heartbeats.QUEUES, QueueHealth(workers, 0.5))
        monkeypatch.setattr(heartbeats, "listening", lambda: health)

    return listen


def test_a_missing_worker_is_announced_once_for_each_outage(
    project: Project, hook: Webhook, queues: Callable[[int], None]
) -> None:
    needing, now = {"train": lambda: [project]}, database_now()
    for _ in range(2):
        queues(0)
        assert events.watch(needing, now=now) == 0
        assert events.watch(needing, now=now + ANNOUNCED_AFTER / 2) == 0
        assert events.watch(needing, now=now + ANNOUNCED_AFTER) == 1
        assert events.watch(needing, now=now + 2 * ANNOUNCED_AFTER) == 0
        queues(1)
        assert events.watch(needing, now=now + 2 * ANNOUNCED_AFTER) == 0
        assert not QueueOutage.objects.exists()
    assert sent(hook) == [("worker.missing", {"queue": "train", "since": now.isoformat()})] * 2


def test_a_worker_that_is_back_in_time_was_never_missing(
    project: Project, hook: Webhook, queues: Callable[[int], None]
) -> None:
    needing, now = {"train": lambda: [project]}, database_now()
    for workers, passed in ((0, 0), (1, 1), (0, 1.5), (0, 2)):
        queues(workers)
        assert events.watch(needing, now=now + passed * ANNOUNCED_AFTER) == 0
    assert sent(hook) == []
