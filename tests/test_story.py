"""The whole loop over real HTTP, PostgreSQL, Redis and Celery workers: from imported conversations to scores.

With HelpSteer2's rubric and with one of 3, 5 and 7 levels, whose attributes have weights of their own. With the
OpenAssistant conversations of SHARED_DATA where they are at hand, else with the demo's.
"""

import json
import random
import statistics
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from annotator.analysis.agreement import totals
from annotator.models import Label, Rating
from rewards.models import RewardModel, Score, TrainingRun
from tests.builders import ATTRIBUTES, make_user
from tests.celery_workers import wait_for, worker
from tests.rest import Rest
from tests.shared_data import shared

OASST = shared("oasst_tasks.jsonl")
DEMO = django_settings.BASE_DIR / "annotator" / "management" / "demo" / "tasks.jsonl"
RATERS = ("alice", "bob", "erin", "frank", "grace")
ENDED = {"promoted", "rejected", "failed", "cancelled"}
Levels = Mapping[str, int]
HELPSTEER2 = dict.fromkeys(ATTRIBUTES, 5)
OWN = {"tone": 3, "accuracy": 5, "depth": 7}
OWN_WEIGHTS = {"tone": 0.5, "accuracy": 2.0, "depth": 1.0}


def own_rubric() -> dict[str, Any]:
    return {
        "key": "answers",
        "name": "Answers",
        "attributes": [
            {
                "key": key,
                "name": key.capitalize(),
                "levels": [f"{key} {level} of {number}" for level in range(1, number + 1)],
                "weight": OWN_WEIGHTS[key],
            }
            for key, number in OWN.items()
        ],
    }


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
    """Rates what comes next by the responses' ranks, with noise of its own, over the whole of each scale."""

    def __init__(self, rest: Rest, name: str, place: dict[str, float], levels: Levels) -> None:
        self.rest, self.name, self.place, self.levels = rest, name, place, levels

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
        share = 0.875 - 0.75 * self.place.get(text, 0.5)
        # By the text, as tasks come in another order each time: it is the same tasks that escalate.
        dice = random.Random(f"{self.name} {text}")
        return {
            key: min(number - 1, max(0, round((number - 1) * (share + dice.gauss(0, 0.275)))))
            for key, number in self.levels.items()
        }


@pytest.mark.slow
@pytest.mark.xdist_group("training")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("rubric", "levels"), [("helpsteer2", HELPSTEER2), (own_rubric(), OWN)], ids=["helpsteer2", "3, 5 and 7 levels"]
)
def test_the_whole_loop(live_server: LiveServer, tmp_path: Path, rubric: Any, levels: Levels) -> None:
    tasks = rows()
    for name in (*RATERS, "carol"):
        user = make_user(name, is_staff=name == "carol")
        user.set_password("correct horse battery")
        user.save()

    def rest(name: str) -> Rest:
        answer = Rest(live_server.url).post("token/", {"username": name, "password": "correct horse battery"})
        return Rest(live_server.url, answer["token"])

    carol = rest("carol")
    make_the_project(carol, "story", rubric, levels)
    with worker("train", tmp_path), worker("score", tmp_path):
        import_everything(carol, tasks)
        raters = [Rater(rest(name), name, ranks(tasks), levels) for name in RATERS]
        first = refuse_scores_off_the_scale(raters[0])
        annotate_until_done(carol, raters)
        review(carol, first, levels)
        run = retrain(carol)
        check_the_model(carol, run, levels)
        check_the_scores(carol, tasks, levels)
    check_the_exports(carol, levels)
    make_the_project(carol, "again", rubric, levels)
    check_the_round_trip(carol, project_labels=export(carol, "story"))


def make_the_project(carol: Rest, slug: str, rubric: Any, levels: Levels) -> None:
    made = carol.post("projects/", {"slug": slug, "name": "Story", "rubric": rubric, "validation_share": 0.25})
    asked = carol.get(f"projects/{slug}/rubric/")["attributes"]
    assert {attribute["key"]: len(attribute["levels"]) for attribute in asked} == levels
    # HelpSteer2's numbers of the protocol, as far as the scale of the first attribute reaches.
    assert (made["escalate_above"], made["drop_above"]) == (min(2, len(asked[0]["levels"]) - 2),) * 2
    for name in RATERS:
        carol.post(f"projects/{slug}/members/", {"username": name, "role": "annotator"})


def import_everything(carol: Rest, tasks: list[dict[str, Any]]) -> None:
    lines = "".join(json.dumps(task) + "\n" for task in tasks).encode()
    first = carol.call("POST", "projects/story/import/", lines, media="application/x-ndjson").data
    again = carol.call("POST", "projects/story/import/", lines, media="application/x-ndjson").data
    assert (first["created"], first["rejected"]) == (len(tasks), [])
    assert (again["created"], again["existing"]) == (0, len(tasks))


def refuse_scores_off_the_scale(rater: Rater) -> int:
    """One more than the highest score of each attribute is refused; returns the number of the task."""
    lease = rater.rest.post("projects/story/next/")
    for key, number in rater.levels.items():
        ratings = [
            {"response": response["id"], "scores": rater.scores(response["text"]) | {key: number}}
            for response in lease["task"]["responses"]
        ]
        refused = rater.rest.call("PUT", f"assignments/{lease['assignment']}/annotation/", {"ratings": ratings})
        assert refused.status == 400
        assert key in str(refused.data["errors"])
    assert not Rating.objects.exists()
    return int(lease["task"]["id"])


def annotate_until_done(carol: Rest, raters: list[Rater]) -> None:
    counts = [rater.rate_all("story") for rater in raters]
    progress = carol.get("projects/story/")["progress"]
    assert progress["complete"] == progress["tasks"], progress
    assert sum(counts) > 3 * progress["tasks"], "some tasks escalate"
    given = defaultdict(set)
    for scores in Rating.objects.values_list("scores", flat=True):
        for key, score in scores.items():
            given[key].add(score)
    assert given == {key: set(range(number)) for key, number in raters[0].levels.items()}
    totals.refresh_all(now=timezone.now())  # as the light worker does every few seconds
    kappas = carol.get("projects/story/agreement/")
    first = next(iter(raters[0].levels))
    assert 0.2 < kappas["all"][first]["kappa"] < kappas["kept"][first]["kappa"] < 1
    for key, number in raters[0].levels.items():
        assert kappas["all"][key]["kappa"] > 0.2
        assert [len(row) for row in kappas["confusion"][key]] == [number] * number


def review(carol: Rest, task_id: int, levels: Levels) -> None:
    """A task gets the highest score of each scale from a reviewer; one above it is refused."""
    task = carol.get(f"review/{task_id}/")
    best = {key: number - 1 for key, number in levels.items()}

    def decided(scores: Mapping[str, int]) -> Any:
        ratings = [{"response": response["id"], "scores": scores} for response in task["responses"]]
        decision = {"ratings": ratings, "reason": "slip"}
        if len(ratings) > 2:
            decision["ranking"] = [[response["id"] for response in task["responses"]]]
        return carol.call("PUT", f"tasks/{task['task']}/adjudication/", decision)

    for key, number in levels.items():
        assert decided(best | {key: number}).status == 400
    assert decided(best).status == 200
    labels = Label.objects.in_force().filter(response__task__external_id=task["id"])
    assert [label.scores for label in labels] == [best] * len(task["responses"])


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


def check_the_model(carol: Rest, run: dict[str, Any], levels: Levels) -> None:
    assert run["state"] == "promoted", (run["error"], run["log"][-2000:], run["verdict"])
    assert run["metrics"]["candidate"]["rmse"] < run["metrics"]["mean"]["rmse"]
    assert set(run["metrics"]["candidate"]["attributes"]) == set(levels)
    assert run["losses"]
    assert run["verdict"]["prompts"] > 10
    champion = carol.get("reward-models/?is_champion=true")["results"]
    assert [model["id"] for model in champion] == [run["reward_model"]]
    assert champion[0]["attributes"] == list(levels)


def check_the_scores(carol: Rest, tasks: list[dict[str, Any]], levels: Levels) -> None:
    responses = sum(len(task["responses"]) for task in tasks)
    wait_for(lambda: Score.objects.count() == responses, seconds=240, what="a score for every response")
    assert statistics.pstdev(Score.objects.values_list("reward", flat=True)) > 0
    item = {"conversation": tasks[0]["messages"], "response": tasks[0]["responses"][0]["text"]}
    answer = carol.post("score/", {"items": [item, item]})
    model = RewardModel.objects.get(is_champion=True)
    assert answer["model"] == model.pk
    (scored, _same) = answer["results"]
    assert set(scored["scores"]) == set(levels)
    assert scored["reward"] == pytest.approx(
        sum(weight * scored["scores"][key] for key, weight in model.attribute_weights.items()), abs=1e-4
    )
    if levels == OWN:
        assert model.attribute_weights == OWN_WEIGHTS
    known = Score.objects.get(response__text=item["response"])
    assert scored["reward"] == pytest.approx(known.reward, abs=1e-4)


def export(carol: Rest, slug: str, layout: str = "helpsteer2") -> bytes:
    return carol.call("GET", f"projects/{slug}/export/?layout={layout}&format=jsonl").body


def check_the_exports(carol: Rest, levels: Levels) -> None:
    """Labels, lists of ratings and annotations have the rubric's attributes and no others, each on its own scale."""
    for line in export(carol, "story").splitlines():
        row = json.loads(line)
        assert list(row) == ["prompt", "response", *levels]
        assert all(row[key] in range(number) for key, number in levels.items())
    for line in export(carol, "story", "disagreements").splitlines():
        row = json.loads(line)
        assert all(set(row[key]) <= set(range(number)) for key, number in levels.items())
    scores = [json.loads(line)["scores"] for line in export(carol, "story", "annotations").splitlines()]
    assert {key: max(score[key] for score in scores) + 1 for key in levels} == levels


def check_the_round_trip(carol: Rest, project_labels: bytes) -> None:
    assert project_labels.count(b"\n") > 50
    again = carol.call("POST", "projects/again/import/", project_labels, media="application/x-ndjson")
    assert again.data["rejected"] == []
    assert sorted(export(carol, "again").splitlines()) == sorted(project_labels.splitlines())
