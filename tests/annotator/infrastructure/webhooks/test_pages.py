"""The webhooks in a project's settings: what managers do there, and what the log shows."""

import html

import pytest
from django.test import Client

from annotator.infrastructure.webhooks.events import announce
from annotator.managing import members
from annotator.models import Project, Webhook, WebhookDelivery
from tests.annotator.infrastructure.webhooks.conftest import make_hook
from tests.conftest import Cast

pytestmark = pytest.mark.django_db
PLACE = "/projects/talk/settings/webhooks/"
URL = "https://example.org/hook"


@pytest.fixture
def hook(project: Project, cast: Cast) -> Webhook:
    return make_hook(project, cast, URL)


def one(hook: Webhook, rest: str = "") -> str:
    return f"{PLACE}{hook.pk}/{rest}"


def test_a_webhook_whose_maker_has_left_goes_on_and_says_so(pages: Client, project: Project, cast: Cast) -> None:
    left = members.appoint_founder(project, cast.dave)
    hook = make_hook(project, cast, URL)
    Webhook.objects.filter(pk=hook.pk).update(made_by=cast.dave)
    assert "no longer manages" not in pages.get(PLACE).content.decode()
    answer = pages.post(f"/projects/talk/people/{left.user}/dismiss/", follow=True)
    assert "Webhooks that dave has made still send events." in answer.content.decode()
    assert "no longer manages" in pages.get(PLACE).content.decode()
    hook.refresh_from_db()
    assert hook.active


def test_a_secret_is_shown_once(pages: Client) -> None:
    answer = pages.post(PLACE, {"url": URL, "events": ["run.ended"], "active": "on"})
    hook = Webhook.objects.get()
    assert hook.secret in html.unescape(answer.content.decode())
    assert (hook.events, hook.active, str(hook.made_by)) == (["run.ended"], True, "carol")
    for page in (PLACE, one(hook)):
        assert hook.secret not in html.unescape(pages.get(page).content.decode())
    rotated = html.unescape(pages.post(one(hook, "secret/")).content.decode())
    hook.refresh_from_db()
    assert hook.secret in rotated
    assert hook.previous_secret not in rotated


def test_a_refusal_stands_beside_its_field(pages: Client, hook: Webhook) -> None:
    for page in (PLACE, one(hook)):
        answer = pages.post(page, {"url": "https://192.168.0.1/", "active": "on"})
        assert answer.status_code == 422
        assert "not of the public internet" in str(answer.context["form"].errors["url"])
    assert Webhook.objects.get().url == URL


def test_a_change_is_saved(pages: Client, hook: Webhook) -> None:
    answer = pages.post(one(hook), {"url": f"{URL}2", "events": ["label.changed", "task.completed"]})
    assert answer.status_code == 302
    hook.refresh_from_db()
    assert (hook.url, hook.events, hook.active) == (f"{URL}2", ["task.completed", "label.changed"], False)


def test_a_test_is_in_the_log_which_is_read_again_until_it_is_sent(pages: Client, hook: Webhook) -> None:
    log = pages.post(one(hook, "test/"), follow=True).content.decode()
    assert "webhook.test" in log
    assert 'hx-trigger="every 2s"' in log
    error = "HTTP 500: <script>alert(1)</script>"
    WebhookDelivery.objects.update(state="failed", attempts=1, status=500, seconds=0.25, error=error)
    log = pages.get(one(hook, "log/")).content.decode()
    assert "hx-trigger" not in log
    assert "HTTP 500: &lt;script&gt;" in log
    assert "<script>" not in log
    assert "0.25" in log


def test_a_failed_delivery_is_sent_again(project: Project, pages: Client, hook: Webhook) -> None:
    announce(project, "run.ended", run=1, state="failed")
    WebhookDelivery.objects.update(state="failed", attempts=10)
    delivery = WebhookDelivery.objects.get()
    address = one(hook, f"log/{delivery.pk}/retry/")
    assert address in pages.get(one(hook)).content.decode()
    pages.post(address)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("waiting", 0)


def test_a_manager_sees_why_nothing_is_sent_any_more(pages: Client, hook: Webhook) -> None:
    Webhook.objects.update(active=False, end_reason="gone")
    for page in (PLACE, one(hook)):
        assert "410" in pages.get(page).content.decode()
    assert "not active" in pages.post(one(hook, "test/"), follow=True).content.decode()
    pages.post(one(hook), {"url": URL, "active": "on"})
    assert Webhook.objects.get().end_reason == ""


def test_it_is_deleted(pages: Client, hook: Webhook) -> None:
    assert pages.post(one(hook, "delete/"), follow=True).status_code == 200
    assert not Webhook.objects.exists()


def test_the_settings_lead_to_it(pages: Client) -> None:
    assert f'href="{PLACE}"' in pages.get("/projects/talk/settings/").content.decode()


def test_old_deliveries_are_on_older_pages(project: Project, pages: Client, hook: Webhook) -> None:
    for run in range(30):
        announce(project, "run.ended", run=run, state="failed")
    first = pages.get(one(hook))
    assert len(first.context["rows"]) == 25
    rest = pages.get(one(hook), {"before": first.context["further"]})
    assert len(rest.context["rows"]) == 5
