"""What the transport says: https where people reach us by https, and nothing of REST kept on the way."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from annotator.launch.run import ROOT
from tests.conftest import Cast

HTTPS = """
import json
from annotator.wsgi import application
from django.test import Client
host = {"host": "rate.example.org"}
behind = {**host, "x-forwarded-proto": "https"}
live = "/api/v1/health/live/"
asked = [(host, "/login/?next=/"), (behind, "/login/"), (host, live), ({"host": "10.1.2.3"}, live)]
answers = [Client(headers=headers).get(path) for headers, path in asked]
print(json.dumps([[answer.status_code, dict(answer.headers)] for answer in answers]))
"""


def answers(program: str, **variables: str) -> Any:
    environment = {**os.environ, "SECRET_KEY": "k" * 50, "DEBUG": "1", **variables}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_under_https_everything_but_health_is_https() -> None:
    plain, behind, *health = answers(HTTPS, PUBLIC_URL="https://rate.example.org")
    assert (plain[0], plain[1]["Location"]) == (301, "https://rate.example.org/login/?next=/")
    assert (behind[0], behind[1]["Strict-Transport-Security"]) == (200, "max-age=31536000")
    assert [status for status, _ in health] == [200, 200]


@pytest.mark.slow
def test_without_https_nobody_is_sent_there() -> None:
    plain, *_ = answers(HTTPS, PUBLIC_URL="http://rate.example.org")
    assert plain[0] == 200
    assert "Strict-Transport-Security" not in plain[1]


@pytest.mark.django_db
def test_nothing_of_rest_is_kept(cast: Cast) -> None:
    client = APIClient()
    client.force_authenticate(cast.alice)
    kept = [client.get(f"/api/v1/{path}").headers.get("Cache-Control") for path in ("me/", "projects/", "nothing/")]
    assert kept == ["no-store"] * 3
    assert Client().get("/api/v1/me/").headers["Cache-Control"] == "no-store"


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["docs/", "schema/"])
def test_what_is_the_same_for_all_may_be_kept(path: str) -> None:
    assert Client().get(f"/api/v1/{path}").headers.get("Cache-Control") != "no-store"
