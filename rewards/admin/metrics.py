"""What Prometheus reads: requests of this web server, and the installation as its administrators see it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeVar

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from annotator.infrastructure.health import Health, readiness
from annotator.infrastructure.storage import disk_space
from annotator.infrastructure.web.request_metrics import registered
from annotator.version import VERSION
from rewards.admin.installation import messages, waiting
from rewards.models import RunState, TrainingRun
from rewards.models.runs import ACTIVE_STATES

Labels = TypeVar("Labels", bound=tuple[str, ...])


@login_not_required
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answers a scraper that sends METRICS_TOKEN as a bearer; without such a token the address does not exist."""
    if not settings.METRICS_TOKEN:
        raise Http404
    if not constant_time_compare(request.headers.get("Authorization", ""), f"Bearer {settings.METRICS_TOKEN}"):
        text = "Send METRICS_TOKEN as a bearer token.\n"
        return HttpResponse(text, status=401, headers={"WWW-Authenticate": "Bearer"}, content_type="text/plain")
    registry = registered()
    registry.register(_Installation(readiness()))
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class _Installation(Collector):
    """The gauges of the installation. What cannot be read while the database or Redis is away is left out."""

    def __init__(self, health: Health) -> None:
        self.health = health

    def collect(self) -> Iterator[GaugeMetricFamily]:
        health = self.health
        yield _gauge("info", "The version that runs", {(VERSION,): 1}, "version")
        parts = health.as_json()
        names = ("database", "redis", "disk", "artifacts", "migrated", "static_files")
        yield _gauge("up", "Whether it answers and is as it should be", {(n,): int(parts[n]) for n in names}, "part")
        yield _gauge("failing_tasks", "Periodic tasks that fail", {(): health.failures})
        free = {(str(room.path),): room.free for room in disk_space.rooms()}
        yield _gauge("disk_free_bytes", "Free bytes, by folder; one for each disk", free, "folder")
        if health.redis:
            queues = health.queues.items()
            yield _gauge("workers", "Workers that take work", {(name,): one.workers for name, one in queues}, "queue")
            unfit = Counter((name, str(fault)) for name, one in queues for fault in one.unfit)
            yield _gauge("unfit_workers", "Workers that live and take no work", unfit, "queue", "reason")
            sent = {(name,): number for name, number in messages()}
            yield _gauge("queued_messages", "Messages that no worker has taken", sent, "queue")
        if health.database and health.migrated:
            backlogs, waits = waiting()
            many = {(name,): number for name, number in vars(backlogs).items()}
            yield _gauge("backlog", "Rows that the light worker has not come to; 10001: more than 10000", many, "kind")
            yield _gauge("waiting_jobs", "Jobs that wait", {(one.kind,): one.number for one in waits}, "kind")
            ages = {(one.kind,): one.seconds for one in waits}
            yield _gauge("oldest_waiting_seconds", "How long the oldest waiting job waits", ages, "kind")
            states = (*ACTIVE_STATES, RunState.AWAITING_PROMOTION)
            there = Counter(TrainingRun.objects.filter(state__in=states).values_list("state", flat=True))
            runs = {(str(state),): there[state] for state in states}
            yield _gauge("runs", "Training runs under way, or that wait for a decision", runs, "state")


def _gauge(name: str, text: str, values: Mapping[Labels, float], *labels: str) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"rewardloop_{name}", text, labels=labels)
    for of_labels, value in values.items():
        family.add_metric(of_labels, value)
    return family
