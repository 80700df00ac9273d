"""Prometheus reads what it may: nothing without the token, all processes together with it, and no name of anybody."""

import re
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest
import redis
import yaml
from django.conf import LazySettings
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families
from redis.backoff import NoBackoff
from redis.retry import Retry

from annotator.infrastructure.background import heartbeats, redis_client
from annotator.infrastructure.background.fitness import UnfitReason
from annotator.launch.run import ROOT
from annotator.models import Project
from tests.builders import make_user
from tests.conftest import Cast
from tests.each import each
from tests.web import Web, web

TOKEN = "read-me-often"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str) -> Samples:
    """The values by name and labels, as Prometheus' own parser reads them."""
    families = text_string_to_metric_families(text)
    return {(one.name, frozenset(one.labels.items())): one.value for family in families for one in family.samples}


def of(read: Samples, name: str, **labels: str) -> float:
    return read[f"rewardloop_{name}", frozenset(labels.items())]


def scrape(client: Client) -> Samples:
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer["Content-Type"].startswith("text/plain; version=")
    return samples(answer.content.decode())


@pytest.mark.django_db
def test_without_the_token_nobody_reads_it(client: Client, cast: Cast, settings: LazySettings) -> None:
    client.force_login(cast.carol)
    assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 404
    settings.METRICS_TOKEN = TOKEN
    for sent in ("", TOKEN, f"Bearer {TOKEN}x", "Bearer ", "Basic cmVhZA==", "Bearer ä"):
        answer = client.get("/metrics", headers={"Authorization": sent})
        assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
        assert b"rewardloop_" not in answer.content
    right = {"Authorization": f"Bearer {TOKEN}"}
    assert client.post("/metrics", headers=right).status_code == 405
    assert Client(headers={"host": "10.1.2.3:8000"}).get("/metrics", headers=right).status_code == 200


@pytest.fixture
def work(project: Project) -> Iterator[None]:
    project.export_jobs.create(requested_by=make_user("dora"), created_at="2026-01-01T00:00Z")
    redis_client.connection().delete(heartbeats.KEY)
    redis_client.connection().delete(*(f"score\x06\x16{step}" for step in (3, 6, 9)))
    redis_client.connection().lpush("score\x06\x169", "a message of the lowest priority")
    heartbeats.beat("light@here", ["light"])
    heartbeats.beat("train@there", ["train"], UnfitReason.GPU)
    yield
    redis_client.connection().delete(heartbeats.KEY, "score\x06\x169")


@pytest.mark.usefixtures("work")
def test_it_says_how_the_installation_is(client: Client, settings: LazySettings) -> None:
    settings.METRICS_TOKEN = TOKEN
    read = scrape(client)
    assert of(read, "up", part="database") == of(read, "up", part="disk") == 1
    assert (of(read, "workers", queue="light"), of(read, "workers", queue="train")) == (1, 0)
    assert of(read, "queued_messages", queue="score") == heartbeats.waiting("score") + 1
    assert of(read, "unfit_workers", queue="train", reason="gpu") == 1
    assert (of(read, "waiting_jobs", kind="exports"), of(read, "waiting_jobs", kind="imports")) == (1, 0)
    assert of(read, "oldest_waiting_seconds", kind="exports") > 86_400
    assert of(read, "oldest_waiting_seconds", kind="imports") == 0
    assert of(read, "runs", state="queued") == of(read, "backlog", kind="words") == 0
    assert any(name == "rewardloop_disk_free_bytes" and value > 0 for (name, _labels), value in read.items())


def test_it_is_read_while_redis_is_away(
    client: Client, settings: LazySettings, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeats, "connection", lambda: redis.Redis(port=1, retry=Retry(NoBackoff(), 0)))
    settings.METRICS_TOKEN = TOKEN
    read = scrape(client)
    assert (of(read, "up", part="redis"), of(read, "up", part="database")) == (0, 1)
    assert not [name for name, _labels in read if name == "rewardloop_workers"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None) -> Iterator[Web]:
    with web(tmp_path_factory.mktemp("web"), METRICS_TOKEN=TOKEN) as made:
        yield made


def asked(server: Web, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=20)) as asking:
        asking.request(method, path, headers=headers)
        answer = asking.getresponse()
        return answer.status, answer.read().decode()


def read_from(server: Web) -> Samples:
    return samples(asked(server, "/metrics", Authorization=f"Bearer {TOKEN}")[1])


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_processes_of_a_web_server_count_together(server: Web) -> None:
    before = read_from(server).get(("rewardloop_request_seconds_count", LOGIN), 0)
    for _ in range(30):
        assert asked(server, "/login/")[0] == 200
    assert asked(server, "/projects/secret-name/annotate/")[0] == 302
    assert {asked(server, "/nowhere/of-anybody/", method)[0] for method in ("GET", "OWN")} <= {302, 403, 404, 405}
    read = read_from(server)
    assert read["rewardloop_request_seconds_count", LOGIN] == before + 30
    assert read["rewardloop_request_seconds_bucket", LOGIN | {("le", "+Inf")}] == before + 30
    assert not re.search("secret-name|of-anybody|OWN", str(read))


LOGIN = frozenset({("address", "login"), ("method", "GET"), ("status", "200")})


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_counts_go_with_the_server(tmp_path_factory: pytest.TempPathFactory) -> None:
    def folders() -> set[Path]:
        return {path for place in (Path("/dev/shm"), home / "temporary") for path in place.glob("rewardloop-metrics-*")}

    home = tmp_path_factory.mktemp("web")
    left = Path("/dev/shm/rewardloop-metrics-999999999-of-a-server-that-was-killed")
    left.mkdir(exist_ok=True)
    before = folders() - {left}
    with web(home, METRICS_TOKEN=TOKEN) as made:
        assert made.get("/login/")[0] == 200
        assert folders() - before
        assert not left.exists()
    assert not folders() - before


@pytest.mark.usefixtures("work")
def test_the_rules_for_alerts_are_about_what_it_says(client: Client, settings: LazySettings) -> None:
    settings.METRICS_TOKEN = TOKEN
    said = {name for name, _labels in scrape(client)} | {
        f"rewardloop_request_seconds_{end}" for end in ("count", "bucket")
    }
    [group] = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())["groups"]
    for rule in each(group["rules"]):
        assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}
        assert set(re.findall(r"rewardloop_\w+", rule["expr"])) <= said
