"""The rows of a release: labels, preferences and disagreements, as configurations of one data set.

They have HelpSteer2's columns, and ids by which rows of different configurations and of later releases are joined.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import F, QuerySet

from annotator.models import Annotation, Label, Project
from annotator.models.splits import is_held_out
from annotator.outputs.exporting import labels, preferences
from annotator.outputs.exporting.columns import INTEGER, TEXT, Row, Type
from annotator.outputs.exporting.copied import copied, response_name
from annotator.outputs.exporting.filters import EVERYTHING, STATES, Filters
from annotator.reading.blindness import tasks_held_by

TRAIN, VALIDATION = SPLITS = ("train", "validation")
# No attribute's key begins with a line.
_TASK, _PROMPT, _LANGUAGE = "_task", "_prompt_hash", "_language"


class PlacedRow(NamedTuple):
    """A row, the key and the language of its task, and the side of the split that its prompt is on."""

    task: int
    language: str
    split: str
    row: Row


@dataclass(frozen=True)
class Configuration:
    """A part of the data set that is loaded by its name, from a folder of its own.

    `versions` are those of the rubric that its rows were made under; none if rows hold no scores.
    """

    name: str
    folder: str
    meaning: str
    columns: Callable[[Project, Filters], Mapping[str, Type]]
    rows: Callable[[Project, Filters], Generator[PlacedRow]]
    versions: Callable[[Project, Filters], tuple[int, ...]]


@contextmanager
def one_moment() -> Iterator[None]:
    """Runs the block in a transaction in which every statement reads the state of the first one, and none writes."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def as_of_their_versions(configuration: Configuration, project: Project, filters: Filters) -> Filters:
    """Returns the filters with the versions that the rows were made under: others may ask for more attributes."""
    versions = configuration.versions(project, filters) or filters.rubric_versions
    return replace(filters, rubric_versions=versions)


def _labels(project: Project, filters: Filters) -> Generator[PlacedRow]:
    ids = {"task": F("response__task__external_id"), "response_id": response_name("response__")}
    more = {"label_source": F("source"), "rubric_version": F("rubric_version")}
    rows, names = labels.helpsteer2_query(project, filters, **ids, **more, **_places("response__"))
    yield from _placed(project, copied(project, rows, names, task="response__task", sparse=True))


def _label_versions(project: Project, filters: Filters) -> tuple[int, ...]:
    return _distinct(filters.of_labels(Label.objects.for_project(project.pk).in_force()))


def _distinct(rows: QuerySet[Any]) -> tuple[int, ...]:
    return tuple(sorted(rows.order_by().values_list("rubric_version", flat=True).distinct(), reverse=True))


def _disagreements(project: Project, filters: Filters) -> Generator[PlacedRow]:
    ids = {"task": F("task__external_id"), "response_id": response_name("")}
    # A release is read by everybody. Whoever is rating one of its tasks is kept from it where it is downloaded.
    rows = labels.disagreement_rows(project, filters, tasks_held_by(None), **ids, **_places(""))
    yield from _placed(project, rows)


def _annotation_versions(project: Project, filters: Filters) -> tuple[int, ...]:
    counting = Annotation.objects.counting().for_project(project.pk).filter(assignment__task__state__in=STATES)
    return _distinct(filters.of_versions(counting))


def _preferences(project: Project, _filters: Filters) -> Generator[PlacedRow]:
    # A preference is of no version of the rubric.
    for task, row in preferences.tasks_with_preferences(project, EVERYTHING, tasks_held_by(None)):
        yield PlacedRow(task.pk, task.language, _split(project, task.prompt_hash), {**row, "task": task.name})


def _places(path: str) -> dict[str, F]:
    of_task = {_TASK: "", _PROMPT: "__prompt_hash", _LANGUAGE: "__language"}
    return {name: F(f"{path}task{field}") for name, field in of_task.items()}


def _placed(project: Project, rows: Iterable[Row]) -> Generator[PlacedRow]:
    for row in rows:
        yield PlacedRow(row.pop(_TASK), row.pop(_LANGUAGE), _split(project, row.pop(_PROMPT)), row)


def _split(project: Project, prompt_hash: str) -> str:
    return VALIDATION if is_held_out(prompt_hash, project.validation_share) else TRAIN


def _no_versions(_project: Project, _filters: Filters) -> tuple[int, ...]:
    return ()


def _label_columns(project: Project, filters: Filters) -> Mapping[str, Type]:
    texts = dict.fromkeys(("task", "response_id", "label_source"), TEXT)
    return {**labels.helpsteer2_columns(project, filters), **texts, "rubric_version": INTEGER}


def _disagreement_columns(project: Project, filters: Filters) -> Mapping[str, Type]:
    return {**labels.disagreement_columns(project, filters), "task": TEXT, "response_id": TEXT}


def _preference_columns(project: Project, filters: Filters) -> Mapping[str, Type]:
    columns = dict(preferences.preference_columns(project, filters))
    del columns["split"]
    return {**columns, "task": TEXT}


CONFIGURATIONS = (
    Configuration(
        "default", "data", "a row for each labelled response, with a whole number for each attribute", _label_columns,
        _labels, _label_versions,
    ),
    Configuration(
        "preference", "preference", "a row for each task of two responses of which one is preferred",
        _preference_columns, _preferences, _no_versions,
    ),
    Configuration(
        "disagreements", "disagreements",
        "a row for each rated response, with the rating of each annotator that counts", _disagreement_columns,
        _disagreements, _annotation_versions,
    ),
)  # fmt: skip
