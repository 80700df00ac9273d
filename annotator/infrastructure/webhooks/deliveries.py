"""Sends what waits for webhooks: the light worker's side.

One run at a time sends, over a few threads and for a limited time, so that it takes one of the light worker's threads.
A webhook has one thread at most, and those that were tried longest ago come first: a slow receiver holds up nobody but
itself. A worker takes a delivery for a minute; if it is lost, the same message is sent again under the same id.
"""

import json
import time
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from standardwebhooks import Webhook as Signer

from annotator.infrastructure import audit
from annotator.infrastructure.background.failures import safe_text
from annotator.infrastructure.db import locks
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.outbound_http import PostOutcome, post
from annotator.infrastructure.stopping import stopping
from annotator.infrastructure.webhooks.events import TEST
from annotator.models import Webhook, WebhookDelivery
from annotator.version import VERSION

WAITS = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=24),
)
"""How long a delivery waits after each failure, as Standard Webhooks recommends; after the last one it has failed."""
ENDED_AFTER = timedelta(days=5)
"""A webhook is ended if everything has failed for so long."""
MOST_KEPT = 100_000
"""Deliveries of a webhook; older ones are deleted, whether they were sent or not."""
LANES = 8
RUN_SECONDS = 20.0
"""How long a run begins new posts. It ends when the last one does, ten seconds later at most."""
FAILURES_A_RUN = 3
OWNED_FOR = timedelta(minutes=1)
"""How long a delivery belongs to the worker that took it: longer than a post can take."""
PORTION = 10_000
GONE = 410
State = WebhookDelivery.State


def send_waiting() -> int:
    """Sends what is due; returns how many posts were made. While another run is sending it does nothing."""
    with locks.session_lock("webhooks") as is_alone:
        return _run(until=time.monotonic() + RUN_SECONDS) if is_alone else 0


def _run(*, until: float) -> int:
    posts, lanes, resting = 0, dict[Future[tuple[int, int]], int](), set[int]()
    with ThreadPoolExecutor(LANES, thread_name_prefix="webhooks") as pool:
        while time.monotonic() < until and not stopping.is_set():
            for webhook in _due(besides={*lanes.values(), *resting}, most=LANES - len(lanes)):
                lanes[pool.submit(_send, webhook, until=until)] = webhook
            if not lanes:
                break
            # Not until one has ended: what comes in meanwhile, such as a test, may take a free lane.
            done, _ = wait(lanes, timeout=1.0, return_when=FIRST_COMPLETED)
            for lane in done:
                webhook, (made, failures) = lanes.pop(lane), lane.result()
                posts += made
                if failures:
                    resting.add(webhook)  # until the next run
    return posts + sum(lane.result()[0] for lane in lanes)


def _due(*, besides: Iterable[int], most: int) -> list[int]:
    now = database_now()
    waiting = WebhookDelivery.objects.filter(webhook=OuterRef("pk"), state=State.WAITING, next_attempt_at__lte=now)
    active = Webhook.objects.filter(active=True, project__deleted_at=None).exclude(pk__in=list(besides))
    longest_ago = active.filter(Exists(waiting)).order_by(F("tried_at").asc(nulls_first=True), "pk")
    return list(longest_ago.values_list("pk", flat=True)[:most])


def _send(webhook: int, *, until: float) -> tuple[int, int]:
    """Sends one webhook's deliveries, the longest due first; returns how many posts were made, and how many failed."""
    posts = failures = 0
    try:
        Webhook.objects.filter(pk=webhook).update(tried_at=database_now())
        while failures < FAILURES_A_RUN and time.monotonic() < until and not stopping.is_set():
            delivery = _taken(webhook, now=database_now())
            if delivery is None:
                break
            posts += 1
            failures += not carry_out(delivery)
    finally:
        connection.close()
    return posts, failures


@transaction.atomic
def _taken(webhook: int, *, now: datetime) -> WebhookDelivery | None:
    due = WebhookDelivery.objects.filter(webhook=webhook, state=State.WAITING, next_attempt_at__lte=now)
    free = due.filter(webhook__active=True).select_for_update(skip_locked=True, of=["self"])
    delivery = free.select_related("webhook__project").order_by("next_attempt_at", "pk").first()
    if delivery:
        delivery.attempts, delivery.attempted_at, delivery.next_attempt_at = delivery.attempts + 1, now, now + OWNED_FOR
        delivery.save(update_fields=["attempts", "attempted_at", "next_attempt_at"])
    return delivery


def carry_out(delivery: WebhookDelivery) -> bool:
    """Posts a delivery that this worker has taken, and writes what came of it; returns whether it has arrived."""
    now, webhook = database_now(), delivery.webhook
    body = json.dumps(delivery.payload(), separators=(",", ":"))
    signatures = [Signer(secret).sign(delivery.message_id, now, body) for secret in webhook.secrets_at(now)]
    headers = {
        "content-type": "application/json",
        "user-agent": f"Rewardloop/{VERSION}",
        "webhook-id": delivery.message_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signatures),
    }
    connection.close()  # a receiver may take ten seconds, for which nobody needs the connection
    try:
        outcome = post(webhook.url, body.encode(), headers)
    except Exception as error:
        # It waits as after any failure: taken again at once, it would end every run.
        _record(delivery, PostOutcome(None, safe_text(error), 0.0), now=database_now())
        raise
    _record(delivery, outcome, now=database_now())
    return outcome.is_delivered


def _record(delivery: WebhookDelivery, outcome: PostOutcome, *, now: datetime) -> None:
    facts = {"status": outcome.status, "error": outcome.error[:500], "seconds": outcome.seconds}
    # Whoever took it later counts: the answer of a worker that was believed lost changes nothing.
    mine = WebhookDelivery.objects.filter(pk=delivery.pk, attempts=delivery.attempts, state=State.WAITING)
    if outcome.is_delivered:
        mine.update(state=State.DELIVERED, **facts)
        Webhook.objects.filter(pk=delivery.webhook_id, failing_since__isnull=False).update(failing_since=None)
        return
    # A test has one attempt only.
    if delivery.event == TEST or delivery.attempts > len(WAITS) or outcome.status == GONE:
        mine.update(state=State.FAILED, **facts)
    else:
        mine.update(next_attempt_at=now + WAITS[delivery.attempts - 1], **facts)
    webhook = Webhook.objects.filter(pk=delivery.webhook_id, active=True)
    if outcome.status == GONE:
        _end(webhook, Webhook.Ended.GONE)
    elif delivery.event != TEST:
        webhook.filter(failing_since=None).update(failing_since=now)
        _end(webhook.filter(failing_since__lte=now - ENDED_AFTER), Webhook.Ended.FAILING)


@transaction.atomic
def _end(webhooks: "QuerySet[Webhook]", because: Webhook.Ended) -> None:
    """Ends the webhook, if it is one of these and still active, and tells the audit."""
    for webhook in webhooks.select_for_update(of=["self"]).select_related("project"):
        webhook.active, webhook.end_reason = False, because
        webhook.save(update_fields=["active", "end_reason"])
        with audit.acting(via="worker"):  # who acts is not known to a thread of the pool
            audit.record("webhook.ended", str(webhook), project=webhook.project, because=because.value)


def sweep(*, now: datetime) -> int:
    """Deletes deliveries that are old or too many; returns how many."""
    deleted = _delete(WebhookDelivery.objects.filter(created_at__lt=now - WebhookDelivery.KEPT))
    for webhook in Webhook.objects.all():
        beyond = webhook.deliveries.order_by("-pk").values_list("pk", flat=True)[MOST_KEPT : MOST_KEPT + 1]
        for newest in beyond:
            deleted += _delete(webhook.deliveries.filter(pk__lte=newest))
    return deleted


def _delete(rows: "QuerySet[WebhookDelivery]") -> int:
    deleted = 0
    while portion := list(rows.order_by("pk").values_list("pk", flat=True)[:PORTION]):
        deleted += WebhookDelivery.objects.filter(pk__in=portion).delete()[0]
    return deleted
