"""Measures small requests over HTTP to the product as `make run` starts it, with MiniLM."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from benchmarks import product
from benchmarks.scoring import minilm
from benchmarks.scoring.rows import make_champion

SIZES = (1, 16)
CALLS = 50
TEXT = "The answer is that one has to look at every part of it before the next one comes."
PATIENCE_SECONDS = 90


def report() -> None:
    with product.database() as folder:
        token = prepare(folder)
        with product.running() as address:
            cold = called(address, token, 1)
            print("\nPOST score/ with MiniLM, responses of about 60 words, one caller\n")
            print("| items | p50 ms | p95 ms |\n|---|---|---|")
            for size in SIZES:
                times = sorted(called(address, token, size) for _ in range(CALLS))
                print(f"| {size} | {1000 * statistics.median(times):.1f} | {1000 * times[int(0.95 * CALLS)]:.1f} |")
            print(f"\nThe first call of all, for which the worker loads torch and the model: {cold:.1f} s.")
            compare(address, token)


def prepare(folder: Path) -> str:
    """Makes a project whose champion is MiniLM with a head of random weights; returns its manager's token."""
    from django.conf import settings

    from annotator.models import Membership, Project, Role, Rubric, Token, User

    minilm.store(Path(settings.ARTIFACTS) / "models" / "minilm")
    project = Project.objects.create(slug="asked", name="Asked", rubric=Rubric.objects.get(key="helpsteer2"))
    manager = User.objects.create_user("scorer")
    Membership.objects.create(project=project, user=manager, role=Role.MANAGER)
    make_champion(project, "models/minilm")
    return str(Token.objects.create(manager)[1])


def items(size: int) -> list[dict[str, Any]]:
    turns = [{"role": "user", "content": "What does one have to look at before the next one comes?"}]
    return [{"conversation": turns, "response": " ".join([TEXT] * 3 + TEXT.split()[:number])} for number in range(size)]


def called(address: str, token: str, size: int) -> float:
    """Returns the seconds until the scores have come, asking again where the answer is a job."""
    start = time.perf_counter()
    answer = send(address, token, "score/", {"items": items(size)})
    while "state" in answer and answer["state"] == "queued":
        time.sleep(0.1)
        answer = send(address, token, f"scoring-jobs/{answer['id']}/")
    assert len(answer["results"]) == size, answer
    return time.perf_counter() - start


def send(address: str, token: str, path: str, body: Any = None) -> Any:
    headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body else None
    with urlopen(Request(f"{address}/api/v1/{path}", data=data, headers=headers), timeout=60) as answer:
        return json.load(answer)


def compare(address: str, token: str) -> None:
    """Asserts that responses get the same rewards one by one and all at once."""
    responses = items(max(SIZES))
    together = _rewards(send(address, token, "score/", {"items": responses}))
    apart = [reward for item in responses for reward in _rewards(send(address, token, "score/", {"items": [item]}))]
    # A batch is padded to its longest text, so that the last digits may differ.
    difference = max(abs(a - b) for a, b in zip(together, apart, strict=True))
    assert difference < 1e-5, difference
    print(f"Alone or with others, a reward differs by {difference:.0e} at most.")


def _rewards(answer: Any) -> Sequence[float]:
    return [result["reward"] for result in answer["results"]]
