"""Compares model versions: the metrics of all versions that were judged on the same data, measure by measure."""

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
    # These have no better side, or describe the data instead of the model.
    "slope": None,
    "longer_wins": None,
    "length_correlation": None,
    "reward": None,
    "label": None,
}
"""The known measures in the order in which they are shown, and the side of each that is better."""
ABOVE_CHANCE = ("spearman", "qwk")
"""Measures for which 0 or less is no better than chance, and so never the best."""
DIGITS = 3
"""Values are shown with this many digits, and count as equal where these are equal."""
HUMAN = "human"
"""The part of the metrics that measures people, so no version can be the best in it."""
PARTS = (
    *("overall", "sections", "domains", "categories", "sources", "pairwise", "attributes", "segments", "all", "length"),
    HUMAN,
)
FINE_PARTS = ("subsets", "by_strength", "slices")
FINE_MEASURES = ("mae", "error", "slope")
"""Measures that are shown after the others, as they divide or repeat what is above them."""
NAMES = ("Chat", "Chat Hard", "Safety", "Reasoning", "single", "multi", "short", "medium", "long")
"""Names within the parts that have an order of their own; all other names are sorted."""
VERSIONS_SHOWN = 8
GROUPS_SHOWN = 50


@dataclass(frozen=True)
class Value:
    """One measure of one model with its 95 % interval, where there is one; `path` names the parts that contain it.

    `reason` says why there is no value; `n` counts the rows, pairs or labels behind it.
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
    """A value in the table. It is `best` if, as shown, another version's is worse and none is better."""

    value: Value
    best: bool


@dataclass(frozen=True)
class ComparisonLine:
    """A measure across the versions; a cell is None where a version does not have it."""

    path: tuple[str, ...]
    measure: str
    cells: list[Cell | None]

    @property
    def is_fine(self) -> bool:
        """Whether the line is a detail that is shown after the others."""
        return self.measure in FINE_MEASURES or any(part in FINE_PARTS for part in self.path)

    @property
    def is_empty(self) -> bool:
        """Whether this part holds none of the data, for any version."""
        # The number of ties is 0 where there is nothing that could be tied.
        return self.n == 0 and not any(cell and cell.value.value for cell in self.cells)

    @property
    def n(self) -> int | None:
        """The number of rows, pairs or labels for the newest version that has one.

        On the same data it differs only where a version left out prompts that it was trained on.
        """
        return next((cell.value.n for cell in reversed(self.cells) if cell and cell.value.n is not None), None)


@dataclass(frozen=True)
class Comparison:
    """The evaluations under one name on the same data, in the order of their versions."""

    evaluations: list[Evaluation]
    lines: list[ComparisonLine]


def evaluations_of(project: Project) -> Any:
    """Returns a project's evaluations, newest first, without the metrics, which can be long."""
    evaluations = Evaluation.objects.filter(reward_model__project=project).select_related("reward_model__project")
    return evaluations.order_by("-created_at", "-pk").defer("metrics", "reward_model__manifest")


@dataclass(frozen=True)
class Group:
    """The evaluations under one name on the same data in short; `newest` is the id of the latest."""

    name: str
    data_hash: str
    versions: int
    newest: int
    made_at: datetime
    has_champion: bool


def groups_of(project: Project) -> list[Group]:
    """Returns a project's groups of comparable evaluations, the newest first."""
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
    """Compares the champion and the newest versions that were judged on this data under this name."""
    same = evaluations_of(project).filter(name=name, data_hash=data_hash).defer(None)
    newest = sorted(
        same,
        key=lambda evaluation: (evaluation.reward_model.is_champion, evaluation.reward_model.version),
        reverse=True,
    )
    in_order = sorted(newest[:VERSIONS_SHOWN], key=lambda evaluation: evaluation.reward_model.version)
    attributes = in_order[-1].reward_model.attributes if in_order else []
    return Comparison(in_order, lines_of([evaluation.metrics for evaluation in in_order], attributes))


def lines_of(metrics: Sequence[Mapping[str, Any]], attributes: Sequence[str]) -> list[ComparisonLine]:
    """Returns a line for every measure in any version's metrics; fine lines come last."""
    columns = [{(value.path, value.measure): value for value in values_of(version)} for version in metrics]
    keys = {key for column in columns for key in column}
    order = {name: place for place, name in enumerate((*PARTS, *attributes, *FINE_PARTS, *NAMES))}

    def place(key: tuple[tuple[str, ...], str]) -> Any:
        path, measure = key
        fine = any(part in FINE_PARTS for part in path)
        return fine, [(order.get(part, len(order)), part) for part in path], list(BETTER).index(measure)

    return [_line(key, [column.get(key) for column in columns]) for key in sorted(keys, key=place)]


def values_of(metrics: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[Value]:
    """Yields every known measure in the nested metrics, depth first.

    A calibration has no level of its own: its measures belong to what it calibrates.
    """
    for key, value in metrics.items():
        if key in BETTER and (value is None or (isinstance(value, int | float) and not isinstance(value, bool))):
            low, high = (metrics.get("intervals") or {}).get(key) or (None, None)
            n = metrics.get("pairs", metrics.get("labels", metrics.get("n")))
            reason = str(metrics.get("reason", "")) if value is None else ""
            yield Value(path, key, value, low, high, n, reason)
        elif isinstance(value, Mapping) and key != "intervals":
            yield from values_of(value, path if key == "calibration" else (*path, key))


def rows_of(project: Project, *, name: str = "") -> Iterator[dict[str, Any]]:
    """Yields a row per evaluation and measure, for downloads; `name` limits it to the evaluations of that name."""
    evaluations = evaluations_of(project).defer(None)
    # Twenty at a time, as the metrics of one evaluation can be long.
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


def _line(key: tuple[tuple[str, ...], str], values: Sequence[Value | None]) -> ComparisonLine:
    path, measure = key
    side = None if path[:1] == (HUMAN,) else BETTER[measure]
    # Compared as they are shown: a reader must not see two equal numbers of which one is marked as better.
    rounded = [round(value.value, DIGITS) if value and value.value is not None else None for value in values]
    known = {value for value in rounded if value is not None}
    best = max(known, key=lambda value: value * side) if side and len(known) > 1 else None
    if measure in ABOVE_CHANCE and best is not None and best <= 0:
        best = None
    cells = [
        Cell(measured, best is not None and value == best) if measured else None
        for measured, value in zip(values, rounded, strict=True)
    ]
    return ComparisonLine(path, measure, cells)
