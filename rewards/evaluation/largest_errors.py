"""Keeps the held-out responses on which a model is furthest from people, by number: their texts stay in the tasks."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path
from typing import Any

from annotator.models import Attribute, Project, Response, Task, User
from annotator.models.public_ids import response_number, response_of
from annotator.reading.blindness import tasks_held_by
from rewards.learning.data import Task as Row

KEPT = 60
EXCERPT = 240


def largest(rows: Iterable[Row], predictions: Path) -> list[dict[str, Any]]:
    """Returns the responses with the largest mean squared error over their labels, the largest first.

    predictions: the file in which the learning core has written what it predicts of these rows.
    """
    labels = {response.id: response.scores for row in rows for response in row.responses if response.scores}
    with predictions.open() as file:
        read = (json.loads(line) for line in file)
        errors = nlargest(KEPT, _errors(read, labels), key=lambda error: error[0])
    return [
        {"response": response_number(int(name)), "error": error, "values": values} for error, name, values in errors
    ]


def _errors(
    predicted: Iterable[Mapping[str, Any]], labels: Mapping[str, Mapping[str, float]]
) -> Iterator[tuple[float, str, dict[str, list[float]]]]:
    for row in predicted:
        known = labels.get(row["id"], {})
        values = {key: [row["scores"][key], label] for key, label in known.items() if key in row["scores"]}
        # A response with an id of another form comes from a file, not from a task.
        if values and str(row["id"]).isdigit():
            error = sum((guess - label) ** 2 for guess, label in values.values()) / len(values)
            yield error, str(row["id"]), {key: [round(guess, 4), label] for key, (guess, label) in values.items()}


@dataclass(frozen=True)
class Miss:
    """One response: what the model predicted and what people said, by attribute, on the scale of the pages."""

    task: Task
    response: Response
    excerpt: str
    values: Sequence[tuple[str, float, float]]


def misses(
    kept: Sequence[Mapping[str, Any]], project: Project, attributes: Sequence[Attribute], *, reader: User
) -> list[Miss]:
    """Returns those of the kept responses that the reader may see: they are in the project still, and nobody's secret.

    Tasks that measure annotators stay unseen, and those that the reader rates as an annotator.
    """
    ids = {response_of(int(error["response"])): error for error in kept}
    found = (
        Response.objects.filter(pk__in=[pk for pk in ids if pk is not None], task__project=project)
        .exclude(task__state=Task.State.GOLD)
        .exclude(task__in=tasks_held_by(reader))
        .select_related("task")
        .defer("task__conversation", "task__metadata")
    )
    by_id = {response.pk: response for response in found}
    return [_miss(by_id[pk], error["values"], attributes) for pk, error in ids.items() if pk in by_id]


def _miss(response: Response, values: Mapping[str, Sequence[float]], attributes: Sequence[Attribute]) -> Miss:
    words = " ".join(response.text.split())
    excerpt = words if len(words) <= EXCERPT else words[:EXCERPT] + "…"
    # Scores count from 0 in the files and from 1 on the pages. Predictions may leave the scale, where nobody is.
    shown = [
        (
            attribute.shown_name,
            min(max(values[attribute.key][0] + 1, 1.0), float(len(attribute.levels))),
            values[attribute.key][1] + 1,
        )
        for attribute in attributes
        if attribute.key in values
    ]
    return Miss(response.task, response, excerpt, shown)
