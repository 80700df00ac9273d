"""A receiver on this machine, which is allowed here, and a light worker that is said to listen."""

from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.db.clock import database_now
from annotator.managing import webhooks as endpoints
from annotator.managing.webhooks import WebhookInput
from annotator.models import Project, Webhook
from tests.annotator.infrastructure.webhooks.receiver import Receiver, listening
from tests.conftest import Cast


@pytest.fixture
def receiver(settings: LazySettings) -> Iterator[Receiver]:
    settings.WEBHOOK_PRIVATE_ADDRESSES = "allow"
    with listening() as made:
        yield made


@pytest.fixture(autouse=True)
def light_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "require", lambda queue: None)


@pytest.fixture
def hook(project: Project, cast: Cast, receiver: Receiver) -> Webhook:
    return make_hook(project, cast, receiver.url)


def make_hook(project: Project, cast: Cast, url: str, *events: str) -> Webhook:
    return endpoints.make(project, WebhookInput(url, events), by=cast.carol, now=database_now())[0]
