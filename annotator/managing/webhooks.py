"""What managers do with their project's webhooks: make, change, test and delete them, and send a delivery again."""

import base64
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.background import heartbeats, messages
from annotator.infrastructure.db import locks
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.outbound_http import target_of
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.stale_edits import Seen, require_as_seen
from annotator.infrastructure.webhooks.events import EVENTS, TEST
from annotator.models import Project, User, Webhook, WebhookDelivery
from annotator.models.member import maker_manages

MOST = 10
"""The webhooks of a project. Every event is written once for each of them."""
PREVIOUS_KEPT = timedelta(days=1)
"""How long the old secret signs as well after a rotation, so that no message is refused meanwhile."""
_SECRET_BYTES = 32
State = WebhookDelivery.State


class UnknownEvent(Refusal):
    """There is no such event; the message lists those that there are."""

    status = 400
    code = "invalid"

    def __init__(self, name: str) -> None:
        text = _("There is no event “%(event)s”. Write %(known)s.") % {"event": name[:40], "known": ", ".join(EVENTS)}
        super().__init__(text)
        self.errors = {"events": [text]}


@dataclass(frozen=True)
class WebhookInput:
    """What a webhook is to be. Without `events` it gets all of them."""

    url: str
    events: Sequence[str] = ()
    active: bool = True


def webhooks_of(project: Project) -> QuerySet[Webhook]:
    """Returns the project's webhooks, the oldest first. `is_left` says whose maker no longer manages the project.

    Unlike an invitation, such a webhook goes on: what it tells is the project's business, and not that person's.
    """
    rows = project.webhooks.select_related("project", "made_by").order_by("pk")
    return rows.annotate(is_left=~maker_manages())


@transaction.atomic
def make(project: Project, wish: WebhookInput, *, by: User, now: datetime) -> tuple[Webhook, str]:
    """Makes a webhook; returns its row and its secret, which is shown only now.

    Raises:
        UnusableAddress, UnknownEvent: one of the wishes cannot be met.
        Refusal: the project has enough.
    """
    host = _checked(wish)
    locks.waiting_transaction_lock("webhooks", project.pk)
    if project.webhooks.count() >= MOST:
        raise Refusal(
            _("The project has %(most)s webhooks. Delete one first.") % {"most": MOST}, code="too_many_webhooks"
        )
    webhook = Webhook.objects.create(
        project=project,
        url=wish.url,
        events=_in_order(wish.events),
        active=wish.active,
        secret=_new_secret(),
        made_by=by,
        created_at=now,
    )
    # Without the whole URL: it may hold a key, and an entry can never be redacted.
    audit.record("webhook.made", str(webhook), project=project, host=host, events=webhook.events, active=webhook.active)
    return webhook, webhook.secret


@transaction.atomic
def change(webhook: Webhook, wish: WebhookInput, *, seen: Seen | None = None) -> Webhook:
    """Changes the webhook. What had ended it is then known, and one that is made active starts afresh.

    Raises:
        ChangedMeanwhile: a field no longer has the value that the caller has seen.
        UnusableAddress, UnknownEvent: one of the wishes cannot be met.
    """
    host = _checked(wish)
    row = Webhook.objects.select_for_update(of=["self"]).select_related("project").get(pk=webhook.pk)
    require_as_seen(row, seen)
    before = _for_audit(row)
    moved = row.url != wish.url
    row.url, row.events = wish.url, _in_order(wish.events)
    if wish.active and not row.active:
        row.failing_since = None
    row.active, row.end_reason = wish.active, ""
    row.save(update_fields=["url", "events", "active", "end_reason", "failing_since"])
    if (changed := audit.differences(before, _for_audit(row))) or moved:
        audit.record("webhook.changed", str(row), project=row.project, host=host, moved=moved, changed=changed)
    messages.send_on_commit("annotator.tasks.send_webhooks")  # what waited while it was not active
    return row


@transaction.atomic
def rotate(webhook: Webhook, *, now: datetime) -> str:
    """Gives the webhook a new secret and returns it. The old one signs as well for a day."""
    row = Webhook.objects.select_for_update(of=["self"]).select_related("project").get(pk=webhook.pk)
    row.previous_secret, row.previous_until, row.secret = row.secret, now + PREVIOUS_KEPT, _new_secret()
    row.save(update_fields=["secret", "previous_secret", "previous_until"])
    audit.record("webhook.secret_rotated", str(row), project=row.project)
    return row.secret


@transaction.atomic
def delete(webhook: Webhook) -> None:
    """Deletes the webhook with what waits for it and with its log. Doing so twice is harmless."""
    if Webhook.objects.select_for_update().filter(pk=webhook.pk).exists():
        audit.record("webhook.deleted", str(webhook), project=webhook.project)
        Webhook.objects.filter(pk=webhook.pk).delete()


@transaction.atomic
def send_test(webhook: Webhook) -> WebhookDelivery:
    """Has the light worker send a test, once; its delivery says what came of it.

    Raises:
        Refusal: nothing can be sent now.
        Refusal: nobody listens to the queue `light`.
    """
    _require_active(webhook)
    heartbeats.require("light")
    locks.waiting_transaction_lock("webhook test", webhook.pk)
    if webhook.deliveries.filter(event=TEST, state=State.WAITING).exists():
        raise Refusal(_("The last test has not been sent yet. Wait for it."), code="test_under_way")
    delivery = webhook.deliveries.create(event=TEST, data={"project": webhook.project.slug})
    audit.record("webhook.tested", str(webhook), project=webhook.project)
    messages.send_on_commit("annotator.tasks.send_webhooks")
    delivery.refresh_from_db()
    return delivery


@transaction.atomic
def send_again(delivery: WebhookDelivery) -> WebhookDelivery:
    """Sends a delivery now that has failed or waits for its next attempt; its attempts are counted anew.

    Raises:
        Refusal: it is not sent again.
        Refusal: nobody listens to the queue `light`.
    """
    webhook = delivery.webhook
    _require_active(webhook)
    heartbeats.require("light")
    open_ones = WebhookDelivery.objects.filter(pk=delivery.pk).exclude(state=State.DELIVERED)
    if not open_ones.update(state=State.WAITING, attempts=0, next_attempt_at=database_now()):
        raise Refusal(_("This delivery has arrived. Only one that has failed or waits is sent again."), code="arrived")
    audit.record("webhook.sent_again", str(webhook), project=webhook.project, event=delivery.event)
    messages.send_on_commit("annotator.tasks.send_webhooks")
    delivery.refresh_from_db()
    return delivery


def deliveries_of(webhook: Webhook) -> QuerySet[WebhookDelivery]:
    """Returns the webhook's deliveries, the newest first."""
    return webhook.deliveries.select_related("webhook__project").order_by("-pk")


def _checked(wish: WebhookInput) -> str:
    """Returns the host of a wish that can be met."""
    for name in wish.events:
        if name not in EVENTS:
            raise UnknownEvent(name)
    return target_of(wish.url).host


def _in_order(events: Sequence[str]) -> list[str]:
    return [name for name in EVENTS if name in events]


def _new_secret() -> str:
    return f"whsec_{base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()}"


def _require_active(webhook: Webhook) -> None:
    if not webhook.active:
        raise Refusal(_("This webhook is not active, so nothing is sent to it. Make it active first."), code="inactive")


def _for_audit(webhook: Webhook) -> dict[str, audit.JSON]:
    return {"events": webhook.events, "active": webhook.active}
