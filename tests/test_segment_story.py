"""Segments over real HTTP, PostgreSQL, Redis and Celery workers: from marked spans to a model that scores each one."""

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from annotator.analysis.agreement import totals
from annotator.models import Label, Rating, Response, Task
from annotator.stages.pii.redaction import Choice, redact
from annotator.stages.segmenting import is_partition, ranges
from rewards.models import Policy, RunState, Score, TrainingRun
from tests.builders import NOW, make_user
from tests.celery_workers import wait_for, worker
from tests.rest import Rest
from tests.rewards.learning.aligning.builders import TEMPLATE
from tests.rewards.learning.conftest import SHAPE, make_tokenizer

RATERS = ("alice", "bob", "erin", "frank", "grace")
ENDED = {"promoted", "rejected", "done", "failed", "cancelled"}
LEVELS = 5
ASPECTS = ("irrelevant", "clarity")
TASKS = 60
GOOD = (
    "Rinse the rice until the water stays clear.",
    "Two cups of water are enough for one cup.",
    "Let it rest under the lid for ten minutes.",
    "Loosen the rice with a fork before you serve it.",
)
BAD = (
    "By the way, our lottery has wonderful prizes.",
    "Vote for the purple party this Sunday!",
    "My cousin sells used cars in Ohio.",
    "The capital of Mongolia is very cold in winter.",
)


def rubric() -> dict[str, Any]:
    levels = [f"level {number}" for number in range(1, LEVELS + 1)]
    attributes = [{"key": key, "name": key.capitalize(), "levels": levels, "scope": "segment"} for key in ASPECTS]
    return {"key": "spans", "name": "Spans", "attributes": attributes}


def rows() -> list[dict[str, Any]]:
    """FineGrainedRLHF's shape: sentences of which a marked one is irrelevant, and another answer to the prompt."""
    dice = random.Random(11)
    made = []
    for number in range(TASKS):
        texts = [
            " ".join(dice.choice(BAD if dice.random() < 0.4 else GOOD) for _ in range(dice.randint(3, 5)))
            for _ in range(2)
        ]
        marked = [
            {"aspect": "Irrelevant", "start": at, "end": at + len(bad), "text": bad}
            for bad in BAD
            for at in [texts[0].find(bad)]
            if at >= 0
        ]
        prompt = f"How do I boil rice, try {number}?"
        row = {"id": f"f-{number}", "prompt": prompt, "response": texts[0], "spans": marked}
        made.append(row | {"alternatives": texts[1:]})
    return made


class Rater:
    """Rates each segment by the hidden rule, with noise of its own; now and then an aspect does not apply."""

    def __init__(self, rest: Rest, name: str) -> None:
        self.rest, self.name = rest, name

    def rate_all(self) -> int:
        lease, rated = self.rest.post("projects/spans/next/"), 0
        while lease["assignment"] is not None:
            ratings = [self.rating(response) for response in lease["task"]["responses"]]
            answer = self.rest.put(f"assignments/{lease['assignment']}/annotation/?next=1", {"ratings": ratings})
            rated, lease = rated + 1, answer["next"]
        return rated

    def rating(self, response: dict[str, Any]) -> dict[str, Any]:
        segments = [
            {"index": one["index"], "scores": self.scores(response["text"][one["start"] : one["end"]], one["index"])}
            for one in response["segments"]
        ]
        return {"response": response["id"], "scores": {}, "segments": segments}

    def scores(self, segment: str, index: int) -> dict[str, int | None]:
        dice = random.Random(f"{self.name} {segment} {index}")
        share = 0.15 if segment.strip() in BAD else 0.85
        scores = {key: round((LEVELS - 1) * (share + dice.gauss(0, 0.27))) for key in ASPECTS}
        clipped: dict[str, int | None] = {key: min(max(score, 0), LEVELS - 1) for key, score in scores.items()}
        return clipped | ({"clarity": None} if dice.random() < 0.05 else {})


@pytest.mark.slow
@pytest.mark.xdist_group("training")
@pytest.mark.django_db(transaction=True)
def test_the_loop_of_segments(live_server: LiveServer, tmp_path: Path, settings: LazySettings) -> None:
    for name in (*RATERS, "carol"):
        user = make_user(name, is_staff=name == "carol")
        user.set_password("correct horse battery")
        user.save()

    def rest(name: str) -> Rest:
        answer = Rest(live_server.url).post("token/", {"username": name, "password": "correct horse battery"})
        return Rest(live_server.url, answer["token"])

    carol = rest("carol")
    carol.post(
        "projects/",
        {"slug": "spans", "name": "Spans", "rubric": rubric(), "validation_share": 0.3},
    )
    for name in RATERS:
        carol.post("projects/spans/members/", {"username": name, "role": "annotator"})
    import_spans(carol)
    raters = [Rater(rest(name), name) for name in RATERS]
    counts = [rater.rate_all() for rater in raters]
    check_the_ratings(carol, counts)
    base = make_base(tmp_path / "base")
    settings.POLICY_BASES = {"tiny": str(base)}
    with worker("train", tmp_path, POLICY_BASES=json.dumps(settings.POLICY_BASES)), worker("score", tmp_path):
        run = retrain(carol)
        check_the_model(run)
        wait_for(lambda: Score.objects.count() == 2 * TASKS, seconds=240, what="a score for every response")
        policy = align(carol, run)
    check_the_policy(base, policy)
    for score in Score.objects.select_related("response"):
        assert len(score.segment_scores or ()) == len(score.response.segments or ()) > 0
    erase_one()
    check_the_exports(carol)


def import_spans(carol: Rest) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in rows()).encode()
    answer = carol.call("POST", "projects/spans/import/", lines, media="application/x-ndjson").data
    assert (answer["created"], answer["rejected"]) == (TASKS, [])
    imported = Label.objects.filter(source="imported")
    assert imported.count() == TASKS
    assert {label.aspects[0] for label in imported} == {"irrelevant"}


def check_the_ratings(carol: Rest, counts: list[int]) -> None:
    progress = carol.get("projects/spans/")["progress"]
    assert progress["complete"] == progress["tasks"] == TASKS
    assert 3 * TASKS < sum(counts) < 5 * TASKS, "some tasks escalate, and not all"
    totals.refresh_all(now=timezone.now())
    kappas = carol.get("projects/spans/agreement/")
    for aspect in ASPECTS:
        assert 0.4 < kappas["all"][aspect]["kappa"] < 1
    right = [
        (label.segment_scores or [])[index][0] < LEVELS // 2
        for label in Label.objects.filter(source="consensus").select_related("response")
        for index, segment in enumerate(ranges(label.response.segments))
        if segment.of(label.response.text).strip() in BAD
    ]
    assert sum(right) / len(right) > 0.9


def retrain(carol: Rest) -> dict[str, Any]:
    config = {"max_length": 128, "epochs": 0, "batch_tokens": 1024}
    run = carol.post("projects/spans/training-runs/", {"reason": "the story", "config": config})
    wait_for(lambda: TrainingRun.objects.get(pk=run["id"]).state in ENDED, seconds=400, what="the run")
    return dict(carol.get(f"training-runs/{run['id']}/"))


def check_the_model(run: dict[str, Any]) -> None:
    """The model of segments beats the mean, chance and the best place in the response, on prompts it has not seen."""
    assert run["state"] == "promoted", (run["error"], run["log"][-2000:], run["verdict"])
    candidate = run["metrics"]["candidate"]["segments"]
    assert candidate["rmse"] < 0.8 * run["metrics"]["mean"]["segments"]["rmse"]
    worst = candidate["worst"]["all"]
    assert worst["intervals"]["above_chance"][0] > 0
    assert worst["intervals"]["above_position"][0] > 0


def make_base(directory: Path) -> Path:
    """A Llama of two layers with random weights."""
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = make_tokenizer(pair=False)
    tokenizer.chat_template = TEMPLATE
    LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **SHAPE)).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def align(carol: Rest, run: dict[str, Any]) -> Policy:
    """Aligns the policy with the snapshot that the reward model has learnt from."""
    config = {"policy": "tiny", "method": "dpo_2d", "threads": 1, "device": "cpu", "max_length": 320, "epochs": 6}
    config |= {"learning_rate": 0.003, "batch_size": 4, "warmup_steps": 0, "sample_tokens": 12}
    asked = {"reason": "the story", "snapshot": run["snapshot"], "config": config}
    started = carol.post("projects/spans/policy-runs/", asked)
    wait_for(lambda: TrainingRun.objects.get(pk=started["id"]).state in ENDED, seconds=400, what="the policy's run")
    ended = TrainingRun.objects.get(pk=started["id"])
    assert ended.state == RunState.DONE, ended.error
    policy: Policy = ended.policy
    assert policy.judgement["prompts"] > 10
    return policy


def check_the_policy(base: Path, policy: Policy) -> None:
    """By the hidden rule: beside its base, the policy says good sentences more readily than bad ones."""
    gains = [gain(base, policy.directory(), prompt=f"How do I boil rice, try {number}?") for number in range(4)]
    right = [good > bad for goods, bads in gains for good in goods for bad in bads]
    assert sum(right) / len(right) > 0.75


def gain(base: Path, policy: Path, *, prompt: str) -> tuple[list[float], list[float]]:
    """Returns how much more likely than the base the policy finds each good sentence as an answer, and each bad one."""
    likelihoods = [_likelihoods(model, prompt) for model in (base, policy)]
    ratios = [ours - theirs for theirs, ours in zip(*likelihoods, strict=True)]
    return ratios[: len(GOOD)], ratios[len(GOOD) :]


@cache
def _loaded(directory: Path) -> Any:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # In evaluation mode, as transformers loads models.
    return AutoModelForCausalLM.from_pretrained(directory), AutoTokenizer.from_pretrained(directory)


def _likelihoods(directory: Path, prompt: str) -> list[float]:
    import torch

    model, tokenizer = _loaded(directory)
    found = []
    for sentence in (*GOOD, *BAD):
        beginning, text = (
            tokenizer(f"<s>[user] {prompt}</s>[assistant] {answer}", add_special_tokens=False, return_tensors="pt")[
                "input_ids"
            ]
            for answer in ("", sentence)
        )
        with torch.no_grad():
            scores = model(text).logits[0, :-1].log_softmax(-1)
        chosen = scores.gather(1, text[0, 1:, None])[beginning.shape[1] - 1 :]
        found.append(float(chosen.mean()))
    return found


def erase_one() -> None:
    """Part of one sentence is erased: every range still divides its text, and every row has one value a segment."""
    response = next(one for one in Response.objects.order_by("pk") if any(bad in one.text for bad in BAD))
    before = len(response.segments or ())
    bad = next(bad for bad in BAD if bad in response.text)
    Task.objects.filter(pk=response.task_id).update(state="quarantined")
    redact(response.task_id, Choice(quotes=[" ".join(bad.split()[1:4])]), now=NOW)
    response.refresh_from_db()
    assert "[personal information removed]" in response.text
    assert len(response.segments or ()) == before
    for one in Response.objects.all():
        assert is_partition(len(one.text), ranges(one.segments)), one.pk
    for rating in Rating.objects.select_related("response"):
        assert len(rating.segment_scores or ()) == len(rating.response.segments or ())
    texts = [segment.of(response.text).strip() for segment in ranges(response.segments)]
    assert [text for text in texts if text in GOOD or text in BAD or "[personal" in text] == texts


def check_the_exports(carol: Rest) -> None:
    for layout, most in (("segments", 5), ("helpsteer2d", 1), ("stepwise", 1)):
        lines = carol.call("GET", f"projects/spans/export/?layout={layout}&format=jsonl").body.splitlines()
        assert len(lines) >= most * TASKS
    row = json.loads(carol.call("GET", "projects/spans/export/?layout=helpsteer2d&format=jsonl").body.splitlines()[0])
    assert "".join(row["segments"]) == row["response"]
    assert set(row) >= {"irrelevant", "clarity", "ranges"}
