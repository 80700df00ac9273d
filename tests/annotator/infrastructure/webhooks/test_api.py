"""Webhooks over REST: for managers only, secrets shown once, refusals that say what to do."""

from typing import Any

import pytest
from django.conf import LazySettings
from django.test import TestCase
from rest_framework.test import APIClient

from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.webhooks.events import announce
from annotator.managing import webhooks as endpoints
from annotator.models import AuditEntry, Project, Webhook, WebhookDelivery
from tests.conftest import Cast

pytestmark = pytest.mark.django_db
PLACE = "/api/v1/projects/talk/webhooks/"
URL = "https://example.org/hook?key=s3cr3t"


def made(rest: APIClient, **fields: Any) -> dict[str, Any]:
    answer = rest.post(PLACE, {"url": URL, **fields})
    assert answer.status_code == 201, answer.data
    return dict(answer.data)


def test_a_secret_is_answered_only_where_it_is_made(carol: APIClient) -> None:
    new = made(carol, events=["run.ended", "task.completed"])
    assert new["secret"].startswith("whsec_")
    assert new["events"] == ["task.completed", "run.ended"]
    (listed,) = carol.get(PLACE).data["results"]
    assert listed == {name: value for name, value in new.items() if name != "secret"}
    assert listed["made_by"] == "carol"
    one = f"{PLACE}{new['id']}/"
    second = carol.post(f"{one}rotate-secret/").data
    assert second["secret"] != new["secret"]
    assert "secret" not in carol.get(one).data


def test_a_patch_changes_what_it_names(carol: APIClient) -> None:
    one = f"{PLACE}{made(carol, events=['run.ended'])['id']}/"
    changed = carol.patch(one, {"active": False}).data
    assert (changed["active"], changed["url"], changed["events"]) == (False, URL, ["run.ended"])
    assert carol.delete(one).status_code == 204
    assert carol.get(one).status_code == 404


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"url": "http://example.org/"}, "url"),
        ({"url": "https://10.0.0.1/"}, "url"),
        ({"url": "https://a:b@example.org/"}, "url"),
        ({"url": URL, "events": ["run.begun"]}, "events"),
        ({"url": URL, "event": ["run.ended"]}, "event"),
        ({}, "url"),
    ],
)
def test_a_refusal_names_the_field(carol: APIClient, fields: dict[str, Any], field: str) -> None:
    answer = carol.post(PLACE, fields)
    assert (answer.status_code, list(answer.data["errors"])) == (400, [field])
    assert not Webhook.objects.exists()


def test_there_are_ten_at_most(carol: APIClient) -> None:
    for _ in range(10):
        made(carol)
    answer = carol.post(PLACE, {"url": URL})
    assert (answer.status_code, answer.data["code"]) == (409, "too_many_webhooks")


def test_the_log_comes_newest_first_and_is_sent_again_on_request(carol: APIClient, project: Project) -> None:
    one = f"{PLACE}{made(carol)['id']}/"
    for version in (1, 2):
        announce(project, "model.promoted", model=7, version=version)
    log = carol.get(f"{one}deliveries/").data["results"]
    assert [row["payload"]["data"]["version"] for row in log] == [2, 1]
    assert log[0]["message_id"].startswith("msg_")
    WebhookDelivery.objects.filter(pk=log[0]["id"]).update(state="failed", attempts=10)
    retry = f"{one}deliveries/{log[0]['id']}/retry/"
    assert (carol.post(retry).status_code, carol.post(retry).data["state"]) == (202, "waiting")
    WebhookDelivery.objects.update(state="delivered")
    assert carol.post(retry).data["code"] == "arrived"


def test_a_test_is_refused_where_it_would_not_be_sent(carol: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    one = f"{PLACE}{made(carol)['id']}/"
    first = carol.post(f"{one}test/")
    assert (first.status_code, first.data["event"], first.data["state"]) == (202, "webhook.test", "waiting")
    assert carol.post(f"{one}test/").data["code"] == "test_under_way"
    carol.patch(one, {"active": False})
    assert carol.post(f"{one}test/").data["code"] == "inactive"


@pytest.mark.django_db
def test_without_a_worker_a_test_says_so(carol: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    one = f"{PLACE}{made(carol)['id']}/"

    def nobody(queue: str) -> None:
        raise Refusal(queue, code="no_worker", status=503)

    monkeypatch.setattr(heartbeats, "require", nobody)
    answer = carol.post(f"{one}test/")
    assert (answer.status_code, answer.data["code"]) == (503, "no_worker")


def test_a_webhook_is_reached_by_its_own_project_alone(carol: APIClient, cast: Cast) -> None:
    carol.post("/api/v1/projects/", {"slug": "other", "name": "Other"})
    new = made(carol)
    assert carol.get(f"/api/v1/projects/other/webhooks/{new['id']}/").status_code == 404


def test_no_entry_of_the_audit_holds_the_url_or_the_secret(carol: APIClient, settings: LazySettings) -> None:
    new = made(carol)
    one = f"{PLACE}{new['id']}/"
    carol.patch(one, {"url": "https://example.org/other?key=s3cr3t"})
    newest = carol.post(f"{one}rotate-secret/").data["secret"]
    carol.delete(one)
    entries = list(AuditEntry.objects.filter(action__startswith="webhook.").order_by("pk").values())
    assert [entry["action"].partition(".")[2] for entry in entries] == ["made", "changed", "secret_rotated", "deleted"]
    assert not any(secret in str(entries) for secret in ("s3cr3t", new["secret"], newest))
    assert "example.org" in str(entries[0]["details"])


def test_events_that_stages_write_wake_the_worker(
    carol: APIClient, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(carol)
    woken: list[str] = []
    monkeypatch.setattr("annotator.infrastructure.background.messages.send", lambda task, *_, **__: woken.append(task))
    with TestCase.captureOnCommitCallbacks(execute=True):
        announce(project, "run.ended", run=1, state="failed")
        endpoints.send_test(Webhook.objects.get())
    assert woken == ["annotator.tasks.send_webhooks"] * 2
