"""A manager makes a webhook, tests it, and sees in the log what came of it."""

from collections.abc import Callable

import pytest
from django.conf import LazySettings
from playwright.sync_api import Page, expect

from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.webhooks import deliveries
from annotator.models import Project, Role, Webhook
from tests.annotator.infrastructure.webhooks.receiver import listening
from tests.builders import make_member, make_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_webhook_is_made_and_tested(
    open_page: Callable[..., Page], talk: Project, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.WEBHOOK_PRIVATE_ADDRESSES = "allow"
    monkeypatch.setattr(heartbeats, "require", lambda queue: None)
    page = open_page(make_member(talk, make_user("carol"), role=Role.MANAGER).user)
    page.goto("/projects/talk/settings/")
    page.get_by_role("link", name="Webhooks").click()
    with listening() as receiver:
        page.get_by_label("URL").fill(receiver.url)
        page.get_by_role("button", name="Make the webhook").click()
        secret = page.locator("pre").inner_text().removesuffix("Copy").strip()
        page.get_by_role("link", name="Go on to the webhook").click()
        page.get_by_role("button", name="Send a test").click()
        log = page.get_by_role("region", name="What was sent")
        expect(log).to_contain_text("Waiting")
        deliveries.send_waiting()
        expect(log).to_contain_text("HTTP 200")  # without a click
        assert [message["type"] for message in receiver.verified(secret)] == ["webhook.test"]
    page.get_by_role("button", name="Delete the webhook").click()
    expect(page.get_by_text("The webhook is deleted.")).to_be_visible()
    assert not Webhook.objects.exists()
