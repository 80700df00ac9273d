"""A champion, and a scorer that needs no torch."""

from collections.abc import Sequence
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from annotator.models import Project
from rewards.learning.data import Item
from rewards.models import RewardModel, RunState, TrainingRun
from rewards.scoring.chunks import GivenScores
from tests.builders import ATTRIBUTES


def make_model(project: Project, **fields: Any) -> RewardModel:
    run = TrainingRun.objects.create(project=project, reason="a test", state=RunState.PROMOTED)
    weights = dict.fromkeys(ATTRIBUTES, 0.2)
    common = {"attributes": list(ATTRIBUTES), "attribute_weights": weights, "manifest": {}, "path": "models/none"}
    return RewardModel.objects.create(project=project, run=run, version=run.pk, **common | fields)


class FakeScorer:
    """The reward is the response's length; it notes what it had to read, and in which precision it did."""

    def __init__(self, precision: str = "float32") -> None:
        self.precision = precision
        self.read: list[str] = []
        self.computed_in: set[str] = set()

    def in_precision(self, name: str) -> "FakeScorer":
        self.computed_in.add(name)
        return self

    def score(self, items: Sequence[Item]) -> list[GivenScores]:
        return self.score_encoded([self.encode(item) for item in items])

    def encode(self, item: Item) -> str:
        return item.conversation[-1].content + "|" + item.response

    def key(self, encoded: str) -> UUID:
        return uuid5(NAMESPACE_OID, encoded)

    def score_encoded(self, encoded: Sequence[str]) -> list[GivenScores]:
        self.read += encoded
        return [GivenScores(dict.fromkeys(ATTRIBUTES, 1.0), float(len(text)), 0.1) for text in encoded]
