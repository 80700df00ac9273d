"""Model versions side by side: the metrics of all that were judged on the same data, measure by measure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.postgres.aggregates import BoolOr
from django.db.models import Count, Max

from annotator.models import Project
from rewards.models import Evaluation

HIGHER, LOWER = 1, -1
BETTER: Mapping[str, int | None] = {
    "accuracy": HIGHER,
    "easy": HIGHER,
    "normal": HIGHER,
    "hard": HIGHER,
    "rmse": LOWER,
    "mae": LOWER,
    "spearman": HIGHER,
    "qwk": HIGHER,
    "ties": None,
    "ece": LOWER,
    "error": LOWER,
    # These have no good side, or say something of the data, not of the model.
    "slope": None,
    "longer_wins": None,
    "length_correlation": None,
    "reward": None,
    "label": None,
}
"""Which measures there are, in the order they are shown, and which side of each is the better one."""
ABOVE_CHANCE = ("spearman", "qwk")
"""At 0 or below they say no more than chance, which is never the best."""
DIGITS = 3
"""Values are shown with so many, and are equal where these are."""
HUMAN = "human"
"""What people reach: no model's doing."""
PARTS = ("overall", "sections", "domains", "categories", "sources", "pairwise", "attributes", "all", "length", HUMAN)
FINE_PARTS = ("subsets", "by_strength", "slices")
FINE_MEASURES = ("mae", "error", "slope")
"""Shown after the others: parts of what stands above, and other views of it."""
NAMES = ("Chat", "Chat Hard", "Safety", "Reasoning", "single", "multi", "short", "medium", "long")
"""Names within the parts that have an order of their own; all others are sorted."""
VERSIONS_SHOWN = 8
GROUPS_SHOWN = 50


@dataclass(frozen=True)
class Value:
    """One measure of one model: the path of parts it stands under, and its 95 % interval where there is one.

    `reason` is why there is no value; `n` how many rows, pairs or labels it is over.
    """

    path: tuple[str, ...]
    measure: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class Cell:
    """`best`: another version's value is worse as it is shown, and none is better."""

    value: Value
    best: bool


@dataclass(frozen=True)
class Line:
    """A measure across the versions, None where one has not got it."""

    path: tuple[str, ...]
    measure: str
    cells: list[Cell | None]

    @property
    def is_fine(self) -> bool:
        return self.measure in FINE_MEASURES or any(part in FINE_PARTS for part in self.path)

    @property
    def is_empty(self) -> bool:
        """Nothing of the data is in this part, for any version."""
        return self.n == 0 and not any(cell and cell.value.value is not None for cell in self.cells)

    @property
    def n(self) -> int | None:
        """Of the newest version that has one: on the same data it differs only where one has left out what it knew."""
        return next((cell.value.n for cell in reversed(self.cells) if cell and cell.value.n is not None), None)


@dataclass(frozen=True)
class Comparison:
    """All that were judged under one name on the same data, in the order of their versions."""

    evaluations: list[Evaluation]
    lines: list[Line]


def evaluations_of(project: Project) -> Any:
    """Newest first, without the metrics, which can be long."""
    evaluations = Evaluation.objects.filter(reward_model__project=project).select_related("reward_model__project")
    return evaluations.order_by("-created_at", "-pk").defer("metrics", "reward_model__manifest")


@dataclass(frozen=True)
class Group:
    """Evaluations under one name on the same data; `newest` is the id of the latest."""

    name: str
    data_hash: str
    versions: int
    newest: int
    made_at: datetime
    has_champion: bool


def groups_of(project: Project) -> list[Group]:
    """Groups of comparable versions, the newest first."""
    lines = (
        Evaluation.objects.filter(reward_model__project=project)
        .values("name", "data_hash")
        .annotate(
            versions=Count("pk"),
            newest=Max("pk"),
            made_at=Max("created_at"),
            has_champion=BoolOr("reward_model__is_champion"),
        )
        .order_by("-made_at", "-newest")
    )
    return [Group(**row) for row in lines[:GROUPS_SHOWN]]


def compare(project: Project, *, name: str, data_hash: str) -> Comparison:
    """The champion and the newest versions that were judged on this data."""
    same = evaluations_of(project).filter(name=name, data_hash=data_hash).defer(None)
    newest = sorted(
        same,
        key=lambda evaluation: (evaluation.reward_model.is_champion, evaluation.reward_model.version),
        reverse=True,
    )
    shown = sorted(newest[:VERSIONS_SHOWN], key=lambda evaluation: evaluation.reward_model.version)
    attributes = shown[-1].reward_model.attributes if shown else []
    return Comparison(shown, lines_of([evaluation.metrics for evaluation in shown], attributes))


def lines_of(metrics: Sequence[Mapping[str, Any]], attributes: Sequence[str]) -> list[Line]:
    columns = [{(value.path, value.measure): value for value in values_of(of)} for of in metrics]
    keys = {key for column in columns for key in column}
    order = {name: place for place, name in enumerate((*PARTS, *attributes, *FINE_PARTS, *NAMES))}

    def place(key: tuple[tuple[str, ...], str]) -> Any:
        path, measure = key
        fine = any(part in FINE_PARTS for part in path)
        return fine, [(order.get(part, len(order)), part) for part in path], list(BETTER).index(measure)

    return [_line(key, [column.get(key) for column in columns]) for key in sorted(keys, key=place)]


def values_of(metrics: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[Value]:
    """Every known measure in the nested metrics, depth first; a calibration belongs to what it calibrates."""
    for key, value in metrics.items():
        if key in BETTER and (value is None or _is_number(value)):
            yield _value(metrics, path, key)
        elif isinstance(value, Mapping) and key != "intervals":
            yield from values_of(value, path if key == "calibration" else (*path, key))


def rows_of(project: Project, *, name: str = "") -> Iterator[dict[str, Any]]:
    """The comparison to take away: a row per evaluation and measure."""
    evaluations = evaluations_of(project).defer(None)
    for evaluation in (evaluations.filter(name=name) if name else evaluations).iterator(chunk_size=20):
        model = evaluation.reward_model
        for value in values_of(evaluation.metrics):
            yield {
                "evaluation": evaluation.name,
                "data_hash": evaluation.data_hash,
                "model": model.pk,
                "version": model.version,
                "champion": model.is_champion,
                "part": " / ".join(value.path),
                "measure": value.measure,
                "value": value.value,
                "low": value.low,
                "high": value.high,
                "n": value.n,
                "reason": value.reason,
            }


COLUMNS = (
    "evaluation",
    "data_hash",
    "model",
    "version",
    "champion",
    "part",
    "measure",
    "value",
    "low",
    "high",
    "n",
    "reason",
)


def _value(metrics: Mapping[str, Any], path: tuple[str, ...], measure: str) -> Value:
    low, high = (metrics.get("intervals") or {}).get(measure) or (None, None)
    n = metrics.get("pairs", metrics.get("labels", metrics.get("n")))
    reason = str(metrics.get("reason", "")) if metrics[measure] is None else ""
    return Value(path, measure, metrics[measure], low, high, n, reason)


def _line(key: tuple[tuple[str, ...], str], values: Sequence[Value | None]) -> Line:
    path, measure = key
    side = None if path[:1] == (HUMAN,) else BETTER[measure]
    shown = [round(measured.value, DIGITS) if measured and measured.value is not None else None for measured in values]
    known = {value for value in shown if value is not None}
    best = max(known, key=lambda value: value * side) if side and len(known) > 1 else None
    if measure in ABOVE_CHANCE and best is not None and best <= 0:
        best = None
    cells = [
        Cell(measured, best is not None and value == best) if measured else None
        for measured, value in zip(values, shown, strict=True)
    ]
    return Line(path, measure, cells)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
