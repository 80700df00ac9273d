"""What the light worker sends, against a real receiver: signatures, repetition, limits, lost workers."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection
from django.db.models import F

from annotator.infrastructure import outbound_http
from annotator.infrastructure.background import messages, redis_client
from annotator.infrastructure.db import locks
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.webhooks import deliveries, events
from annotator.managing import archive, deletion
from annotator.managing import webhooks as endpoints
from annotator.models import AuditEntry, Project, Webhook, WebhookDelivery
from tests.annotator.infrastructure.webhooks.conftest import make_hook
from tests.annotator.infrastructure.webhooks.receiver import Receiver, listening
from tests.celery_workers import wait_for, worker
from tests.conftest import Cast
from tests.refusals import refusal

# The worker's threads have connections of their own: they see only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)
State, Ended = WebhookDelivery.State, Webhook.Ended


def written(project: Project, number: int = 1) -> list[WebhookDelivery]:
    """Events that wait, and are due by every clock."""
    before = WebhookDelivery.objects.count()
    for _ in range(number):
        events.announce(project, "model.promoted", model=7, version=2, replaced=None)
    new = list(WebhookDelivery.objects.order_by("pk")[before:])
    second = timedelta(seconds=1)
    WebhookDelivery.objects.filter(pk__in=[one.pk for one in new]).update(next_attempt_at=F("next_attempt_at") - second)
    return new


def again(row: Any) -> Any:
    return type(row).objects.get(pk=row.pk)


def make_due() -> None:
    """As if the wait were over."""
    WebhookDelivery.objects.update(next_attempt_at=database_now() - timedelta(seconds=1))


def test_a_message_is_signed_and_says_what_happened(project: Project, hook: Webhook, receiver: Receiver) -> None:
    (delivery,) = written(project)
    assert deliveries.send_waiting() == 1
    (message,) = receiver.verified(hook.secret)
    assert message["type"] == "model.promoted"
    assert message["data"] == {"project": "talk", "model": 7, "version": 2, "replaced": None}
    assert message["timestamp"] == again(delivery).created_at.isoformat()
    delivery = again(delivery)
    assert (delivery.state, delivery.status, delivery.attempts, delivery.error) == (State.DELIVERED, 200, 1, "")
    assert receiver.ids == [delivery.message_id]
    assert deliveries.send_waiting() == 0


def test_a_failed_attempt_is_repeated_under_the_same_id(project: Project, hook: Webhook, receiver: Receiver) -> None:
    receiver.answers, receiver.body = [500], b"<b>Out\x00 of\norder</b>"
    (delivery,) = written(project)
    deliveries.send_waiting()
    delivery = again(delivery)
    assert (delivery.state, delivery.status) == (State.WAITING, 500)
    assert delivery.error == "HTTP 500: <b>Out of order</b>"
    assert deliveries.send_waiting() == 0  # it waits
    make_due()
    deliveries.send_waiting()
    assert again(delivery).state == State.DELIVERED
    assert receiver.ids == [delivery.message_id] * 2
    assert receiver.received[0][1] == receiver.received[1][1]
    assert len(receiver.verified(hook.secret)) == 2


def test_the_waits_are_those_of_standard_webhooks(project: Project, hook: Webhook, receiver: Receiver) -> None:
    receiver.answers = [503] * 10
    (delivery,) = written(project)
    waits = []
    for _ in range(9):
        make_due()
        deliveries.send_waiting()
        delivery = again(delivery)
        assert delivery.attempted_at
        waits.append((delivery.next_attempt_at - delivery.attempted_at).total_seconds())
    assert [round(wait) for wait in waits] == [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]
    make_due()
    deliveries.send_waiting()
    assert (again(delivery).state, again(delivery).attempts) == (State.FAILED, 10)


def test_after_410_nothing_more_is_sent(project: Project, hook: Webhook, receiver: Receiver) -> None:
    receiver.answers = [410]
    first, second = written(project, 2)
    deliveries.send_waiting()
    hook = again(hook)
    assert (hook.active, hook.end_reason) == (False, Ended.GONE)
    assert (again(first).state, again(second).state) == (State.FAILED, State.WAITING)
    assert (len(receiver.received), written(project)) == (1, [])
    entry = AuditEntry.objects.get(action="webhook.ended")
    assert (entry.details, entry.via, entry.actor) == ({"because": "gone"}, "worker", "")


def test_after_five_days_of_failures_it_is_ended(project: Project, hook: Webhook, receiver: Receiver) -> None:
    receiver.answers = [500, 500, 200]
    written(project, 1)
    deliveries.send_waiting()
    began = again(hook).failing_since
    assert began
    Webhook.objects.update(failing_since=began - timedelta(days=5))
    make_due()
    deliveries.send_waiting()
    assert (again(hook).active, again(hook).end_reason) == (False, Ended.FAILING)
    hook = endpoints.change(again(hook), endpoints.WebhookInput(hook.url))
    assert (hook.end_reason, hook.failing_since) == ("", None)
    make_due()
    deliveries.send_waiting()
    assert len(receiver.received) == 3


def test_a_success_ends_the_row_of_failures(project: Project, hook: Webhook, receiver: Receiver) -> None:
    receiver.answers = [500]
    Webhook.objects.update(failing_since=database_now() - timedelta(days=4))
    written(project)
    deliveries.send_waiting()
    written(project)
    deliveries.send_waiting()
    assert again(hook).failing_since is None


def test_a_redirect_is_not_followed(project: Project, hook: Webhook, receiver: Receiver) -> None:
    with listening() as other:
        receiver.answers, receiver.headers = [307], {"Location": other.url}
        (delivery,) = written(project)
        deliveries.send_waiting()
        assert (again(delivery).state, again(delivery).status) == (State.WAITING, 307)
        assert "redirects are not followed" in again(delivery).error
        assert other.received == []


def test_an_endless_answer_is_cut_off(project: Project, hook: Webhook, receiver: Receiver) -> None:
    receiver.headers = {f"x-{number}": "y" * 60_000 for number in range(3)}
    (delivery,) = written(project)
    deliveries.send_waiting()
    assert "too long" in again(delivery).error


@contextmanager
def dripping() -> Iterator[int]:
    """The port of a server that sends its answer byte by byte, each in time for a timeout of the socket."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            caller, _ = server.accept()
            with caller, suppress(OSError):
                caller.sendall(b"HTTP/1.1 200 OK\r\nx-a: ")
                while not over.wait(0.1):
                    caller.sendall(b"a")

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        over.set()
        thread.join()


def test_an_answer_by_drips_is_not_waited_for(
    project: Project, hook: Webhook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbound_http, "SECONDS", 0.5)
    (delivery,) = written(project)
    with dripping() as port:
        Webhook.objects.update(url=f"http://127.0.0.1:{port}/")
        began = time.monotonic()
        deliveries.send_waiting()
    assert time.monotonic() - began < 3
    assert "did not answer" in again(delivery).error


def test_a_slow_receiver_holds_up_nobody_else(
    project: Project, cast: Cast, hook: Webhook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "RUN_SECONDS", 1.0)
    monkeypatch.setattr(deliveries, "LANES", 2)
    with listening() as slow:
        slow.seconds = 0.9
        make_hook(project, cast, slow.url)
        written(project, 20)
        began = time.monotonic()
        deliveries.send_waiting()
        assert time.monotonic() - began < 5
        assert len(receiver.received) == 20
        assert len(slow.received) <= 3


def test_whoever_was_tried_longest_ago_comes_first(
    project: Project, cast: Cast, hook: Webhook, receiver: Receiver
) -> None:
    other = make_hook(project, cast, receiver.url)
    written(project)
    Webhook.objects.filter(pk=hook.pk).update(tried_at=database_now())
    assert deliveries._due(besides=[], most=1) == [other.pk]
    assert deliveries._due(besides=[other.pk], most=5) == [hook.pk]


def test_failures_in_a_row_let_a_receiver_rest(project: Project, hook: Webhook, receiver: Receiver) -> None:
    receiver.answers = [500] * 9
    written(project, 9)
    assert deliveries.send_waiting() == deliveries.FAILURES_A_RUN


def test_what_a_lost_worker_had_is_sent_again(
    project: Project, hook: Webhook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    (delivery,) = written(project)

    class Killed(BaseException):
        """Ends the worker where it stands."""

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(deliveries, "_record", killed)
        with pytest.raises(Killed):
            deliveries.send_waiting()
    assert (again(delivery).state, again(delivery).attempts) == (State.WAITING, 1)
    assert deliveries.send_waiting() == 0  # for a minute it belongs to the lost worker
    make_due()
    assert deliveries.send_waiting() == 1
    assert again(delivery).state == State.DELIVERED
    assert receiver.ids == [delivery.message_id] * 2


@pytest.mark.slow
def test_a_killed_worker_leaves_its_delivery_to_the_next(
    project: Project, hook: Webhook, receiver: Receiver, tmp_path: Path
) -> None:
    redis_client.connection().delete("light")
    receiver.seconds = 5
    (delivery,) = written(project)
    with worker("light", tmp_path, WEBHOOK_PRIVATE_ADDRESSES="allow") as process:
        messages.send("annotator.tasks.send_webhooks")
        wait_for(lambda: receiver.received, what="the message")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert (again(delivery).state, again(delivery).attempts) == (State.WAITING, 1)
    receiver.seconds = 0
    make_due()
    with worker("light", tmp_path, WEBHOOK_PRIVATE_ADDRESSES="allow"):
        messages.send("annotator.tasks.send_webhooks")
        wait_for(lambda: again(delivery).state == State.DELIVERED, what="the second attempt")
    assert (again(delivery).attempts, receiver.ids) == (2, [delivery.message_id] * 2)


def test_a_late_answer_of_a_lost_worker_changes_nothing(project: Project, hook: Webhook) -> None:
    written(project)
    late = deliveries._taken(hook.pk, now=database_now())
    make_due()
    current = deliveries._taken(hook.pk, now=database_now())
    assert late
    assert current == late
    deliveries._record(late, outbound_http.PostOutcome(500, "HTTP 500", 0.1), now=database_now())
    assert again(current).status is None


def test_two_workers_send_a_message_once(project: Project, hook: Webhook, receiver: Receiver) -> None:
    receiver.seconds = 0.05
    written(project, 10)
    until, posts = time.monotonic() + 20, list[int]()

    def work() -> None:
        try:
            posts.append(deliveries._run(until=until))  # without the lock, which keeps a second run away
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sum(posts), len(set(receiver.ids))) == (10, 10)
    assert all(posts)


def test_a_second_run_leaves_the_work_to_the_first(project: Project, hook: Webhook) -> None:
    written(project)
    seen: list[int] = []

    def work() -> None:
        seen.append(deliveries.send_waiting())
        connection.close()

    with locks.session_lock("webhooks") as is_alone:
        assert is_alone
        other = threading.Thread(target=work)
        other.start()
        other.join()
    assert seen == [0]


def test_after_a_rotation_both_secrets_verify_for_a_day(project: Project, hook: Webhook, receiver: Receiver) -> None:
    old = hook.secret
    new = endpoints.rotate(hook, now=database_now())
    written(project)
    deliveries.send_waiting()
    assert receiver.verified(old) == receiver.verified(new) != []
    assert again(hook).secrets_at(database_now() + timedelta(days=1)) == [new]


def test_what_waits_for_an_inactive_webhook_is_sent_later(project: Project, hook: Webhook, receiver: Receiver) -> None:
    written(project)
    hook = endpoints.change(hook, endpoints.WebhookInput(hook.url, active=False))
    assert (written(project), deliveries.send_waiting()) == ([], 0)
    endpoints.change(hook, endpoints.WebhookInput(hook.url))
    assert deliveries.send_waiting() == 1


def test_a_test_is_sent_once_whatever_events_are_wanted(project: Project, cast: Cast, receiver: Receiver) -> None:
    receiver.answers = [500]
    hook = make_hook(project, cast, receiver.url, "run.ended")
    delivery = endpoints.send_test(hook)
    with refusal("test_under_way"):
        endpoints.send_test(hook)
    deliveries.send_waiting()
    (message,) = receiver.verified(hook.secret)
    assert (message["type"], message["data"]) == ("webhook.test", {"project": "talk"})
    assert (again(delivery).state, again(hook).failing_since) == (State.FAILED, None)
    endpoints.send_test(hook)


def test_a_failed_delivery_can_be_sent_again(project: Project, hook: Webhook, receiver: Receiver) -> None:
    (delivery,) = written(project)
    WebhookDelivery.objects.update(state=State.FAILED, attempts=10)
    endpoints.send_again(again(delivery))
    deliveries.send_waiting()
    assert receiver.ids == [delivery.message_id]
    with refusal("arrived"):
        endpoints.send_again(again(delivery))


def test_a_delivery_that_breaks_the_worker_does_not_break_the_next_run(
    project: Project, hook: Webhook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = written(project, 2)

    def broken(*_: Any) -> None:
        raise ValueError("Nobody thought of this.")

    with monkeypatch.context() as patch:
        patch.setattr(deliveries, "post", broken)
        with pytest.raises(ValueError, match="Nobody"):
            deliveries.send_waiting()
    assert again(first).error == "ValueError: Nobody thought of this."
    deliveries.send_waiting()
    assert receiver.ids == [second.message_id]


def test_old_deliveries_and_too_many_are_deleted(
    project: Project, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "MOST_KEPT", 3)
    old, *_, newest = written(project, 6)
    WebhookDelivery.objects.filter(pk=newest.pk).update(created_at=database_now() - timedelta(days=31))
    assert deliveries.sweep(now=database_now()) == 3
    assert not WebhookDelivery.objects.filter(pk__in=[old.pk, newest.pk]).exists()


def test_a_deleted_webhook_takes_what_waits_along(project: Project, hook: Webhook, receiver: Receiver) -> None:
    written(project)
    endpoints.delete(hook)
    assert (deliveries.send_waiting(), WebhookDelivery.objects.count()) == (0, 0)
    endpoints.delete(hook)


def test_a_deleted_project_takes_its_webhooks_along(project: Project, cast: Cast, hook: Webhook) -> None:
    written(project)
    archive.archive(project, now=database_now())
    deletion.delete(project, confirm="talk", now=database_now())
    assert (Webhook.objects.count(), WebhookDelivery.objects.count()) == (0, 0)


def test_the_log_says_that_an_address_is_private(
    project: Project, hook: Webhook, receiver: Receiver, settings: LazySettings
) -> None:
    (delivery,) = written(project)
    Webhook.objects.update(url=receiver.url.replace("http", "https"))
    settings.WEBHOOK_PRIVATE_ADDRESSES = "refuse"
    deliveries.send_waiting()
    assert "not of the public internet" in again(delivery).error
    assert receiver.received == []
