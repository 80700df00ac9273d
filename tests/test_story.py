"""The whole loop over real HTTP, PostgreSQL, Redis and Celery workers: from imported conversations to scores.

With the OpenAssistant conversations of SHARED_DATA where they are at hand, else with the demo's.
"""

import json
import random
import statistics
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from annotator import agreement
from annotator.models import Role
from rewards.models import RewardModel, Score, TrainingRun
from tests.builders import ATTRIBUTES, make_member, make_project, make_user
from tests.celery_workers import wait_for, worker
from tests.rest import Rest
from tests.shared_data import shared

OASST = shared("oasst_tasks.jsonl")
DEMO = django_settings.BASE_DIR / "annotator" / "launch" / "demo" / "tasks.jsonl"
RATERS = ("alice", "bob", "erin", "frank", "grace")
ENDED = {"promoted", "rejected", "failed", "cancelled"}


def demo_rows() -> list[dict[str, Any]]:
    """The demo's tasks, the better response ranked first."""
    rows = [json.loads(line) for line in DEMO.read_text().splitlines()]
    for row in rows:
        row.pop("topic")
        ranked = sorted(row["responses"], key=lambda response: -response["quality"]["helpfulness"])
        for response in row["responses"]:
            response["rank"] = ranked.index(response)
            response.pop("quality")
    return rows


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in OASST.read_text().splitlines()] if OASST.exists() else demo_rows()


def ranks(tasks: list[dict[str, Any]]) -> dict[str, float]:
    """A response's place in its task by its text, from 0, the best, to 1."""
    by_text = {}
    for task in tasks:
        known = [one["rank"] for one in task["responses"] if one["rank"] is not None]
        for response in task["responses"]:
            if response["rank"] is not None:
                by_text[response["text"]] = response["rank"] / max(max(known), 1)
    return by_text


class Rater:
    """Rates what comes next by the responses' ranks, with noise of its own."""

    def __init__(self, rest: Rest, name: str, place: dict[str, float]) -> None:
        self.rest, self.place, self.dice = rest, place, random.Random(name)

    def rate_all(self, slug: str) -> int:
        lease = self.rest.post(f"projects/{slug}/next/")
        rated = 0
        while lease["assignment"] is not None:
            ratings = [
                {"response": response["id"], "scores": self.scores(response["text"])}
                for response in lease["task"]["responses"]
            ]
            answer = self.rest.put(f"assignments/{lease['assignment']}/annotation/?next=1", {"ratings": ratings})
            rated, lease = rated + 1, answer["next"]
        return rated

    def scores(self, text: str) -> dict[str, int]:
        level = 3.5 - 3 * self.place.get(text, 0.5)
        return {key: min(4, max(0, round(level + self.dice.gauss(0, 0.9)))) for key in ATTRIBUTES}


@pytest.mark.slow
@pytest.mark.xdist_group("training")
@pytest.mark.django_db(transaction=True)
def test_the_whole_loop(live_server: LiveServer, tmp_path: Path) -> None:
    tasks = rows()
    project = make_project("story", validation_share=0.25)
    people = {name: make_user(name) for name in (*RATERS, "carol")}
    for name, user in people.items():
        user.set_password("correct horse battery")
        user.save()
        make_member(project, user, role=Role.MANAGER if name == "carol" else Role.ANNOTATOR)

    def rest(name: str) -> Rest:
        answer = Rest(live_server.url).post("token/", {"username": name, "password": "correct horse battery"})
        return Rest(live_server.url, answer["token"])

    carol = rest("carol")
    with worker("train", tmp_path), worker("score", tmp_path):
        import_everything(carol, tasks)
        annotate_until_done(carol, [Rater(rest(name), name, ranks(tasks)) for name in RATERS])
        run = retrain(carol)
        check_the_model(carol, run)
        check_the_scores(carol, tasks)
    check_the_round_trip(carol, project_labels=export(carol, "story"))


def import_everything(carol: Rest, tasks: list[dict[str, Any]]) -> None:
    lines = "".join(json.dumps(task) + "\n" for task in tasks).encode()
    first = carol.call("POST", "projects/story/import/", lines, media="application/x-ndjson").data
    again = carol.call("POST", "projects/story/import/", lines, media="application/x-ndjson").data
    assert (first["created"], first["rejected"]) == (len(tasks), [])
    assert (again["created"], again["existing"]) == (0, len(tasks))


def annotate_until_done(carol: Rest, raters: list[Rater]) -> None:
    counts = [rater.rate_all("story") for rater in raters]
    progress = carol.get("projects/story/")["progress"]
    assert progress["complete"] == progress["tasks"], progress
    assert sum(counts) > 3 * progress["tasks"], "some tasks escalate"
    agreement.refresh_all(now=timezone.now())  # as the light worker does every few seconds
    kappas = carol.get("projects/story/agreement/")
    assert 0.2 < kappas["all"]["helpfulness"]["kappa"] < kappas["kept"]["helpfulness"]["kappa"] < 1


def retrain(carol: Rest) -> dict[str, Any]:
    started = carol.call(
        "POST",
        "projects/story/training-runs/",
        {"reason": "the story", "config": {"max_length": 128, "epochs": 1, "max_steps": 6, "batch_tokens": 1024}},
    )
    assert started.status == 202, started.body
    run = started.data
    twice = carol.call("POST", "projects/story/training-runs/", {})
    assert (twice.status, twice.data["code"]) == (409, "already_running")
    wait_for(lambda: TrainingRun.objects.get(pk=run["id"]).state in ENDED, seconds=400, what="the run")
    return dict(carol.get(f"training-runs/{run['id']}/"))


def check_the_model(carol: Rest, run: dict[str, Any]) -> None:
    assert run["state"] == "promoted", (run["error"], run["log"][-2000:], run["verdict"])
    assert run["metrics"]["candidate"]["rmse"] < run["metrics"]["mean"]["rmse"]
    assert run["losses"]
    assert run["verdict"]["prompts"] > 10
    champion = carol.get("reward-models/?is_champion=true")["results"]
    assert [model["id"] for model in champion] == [run["reward_model"]]


def check_the_scores(carol: Rest, tasks: list[dict[str, Any]]) -> None:
    responses = sum(len(task["responses"]) for task in tasks)
    wait_for(lambda: Score.objects.count() == responses, seconds=240, what="a score for every response")
    assert statistics.pstdev(Score.objects.values_list("reward", flat=True)) > 0
    item = {"conversation": tasks[0]["messages"], "response": tasks[0]["responses"][0]["text"]}
    answer = carol.post("score/", {"items": [item, item]})
    assert answer["model"] == RewardModel.objects.get(is_champion=True).pk
    assert set(answer["results"][0]["scores"]) == set(ATTRIBUTES)
    known = Score.objects.get(response__text=item["response"])
    assert answer["results"][0]["reward"] == pytest.approx(known.reward, abs=1e-4)


def export(carol: Rest, slug: str) -> bytes:
    return carol.call("GET", f"projects/{slug}/export/?layout=helpsteer2&format=jsonl").body


def check_the_round_trip(carol: Rest, project_labels: bytes) -> None:
    assert project_labels.count(b"\n") > 50
    assert carol.call("POST", "projects/", {"slug": "again", "name": "Again"}).status == 201
    carol.call("POST", "projects/again/import/", project_labels, media="application/x-ndjson")
    assert sorted(export(carol, "again").splitlines()) == sorted(project_labels.splitlines())
