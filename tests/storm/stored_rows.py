"""What PostgreSQL holds after the storm, read by plain SQL: none of the product's own code has a part in it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.storm.journal import Ratings
from tests.storm.oracle import Given
from tests.storm.servers import Product


@dataclass
class Stored:
    """One annotation."""

    number: int
    assignment: int
    task: int
    annotator: int
    slot: int | None
    counts: bool
    revision: int
    is_current: bool
    text: str
    submitted_at: datetime
    ratings: Ratings = field(default_factory=dict)


@dataclass
class Task:
    number: int
    state: str
    slots_wanted: int
    annotations: list[Stored] = field(default_factory=list)
    consensus: dict[str, Any] | None = None
    labels: dict[int, tuple[dict[str, int], dict[str, float]]] = field(default_factory=dict)

    def holders(self) -> list[Stored]:
        """First revisions of those who hold a slot, as they came: numbers are drawn while the task is locked."""
        first = [
            annotation for annotation in self.annotations if annotation.revision == 1 and annotation.slot is not None
        ]
        return sorted(first, key=lambda rating: rating.number)

    def late(self) -> list[Stored]:
        """What came after its slot had gone to somebody else."""
        return [annotation for annotation in self.annotations if annotation.is_current and annotation.slot is None]

    def given(self) -> list[Given]:
        """What counts, in the order of submission."""
        current = [annotation for annotation in self.annotations if annotation.is_current and annotation.counts]
        current.sort(key=lambda rating: (rating.submitted_at, rating.number))
        return [Given(rating.number, rating.ratings) for rating in current]


@dataclass(frozen=True)
class Books:
    tasks: dict[int, Task]
    annotations: list[Stored]

    def complete(self) -> list[Task]:
        return [task for task in self.tasks.values() if task.state == "complete"]


_ANNOTATIONS = """
SELECT a.id, s.id, s.task_id, split_part(u.username, '-', 2)::int, s.slot, s.counts, a.revision, a.is_current,
    a.justification, a.submitted_at
FROM annotator_annotation a JOIN annotator_assignment s ON s.id = a.assignment_id
JOIN annotator_user u ON u.id = s.annotator_id
"""
_CONSENSUS = "SELECT task_id, kept, annotators, spread, spread_of_all, drop_reason FROM annotator_consensus"
_LABELS = """
SELECT p.task_id, p.id, l.scores, l.means FROM annotator_label l JOIN annotator_response p ON p.id = l.response_id
"""


def read(product: Product) -> Books:
    tasks = {row[0]: Task(*row) for row in product.rows("SELECT id, state, slots_wanted FROM annotator_task")}
    annotations = {row[0]: Stored(*row) for row in product.rows(_ANNOTATIONS)}
    for annotation, response, scores in product.rows("SELECT annotation_id, response_id, scores FROM annotator_rating"):
        annotations[annotation].ratings[response] = scores
    for stored in annotations.values():
        tasks[stored.task].annotations.append(stored)
    for task, *values in product.rows(_CONSENSUS):
        names = ("kept", "annotators", "spread", "spread_of_all", "drop_reason")
        tasks[task].consensus = dict(zip(names, values, strict=True))
    for task, response, scores, means in product.rows(_LABELS):
        tasks[task].labels[response] = (scores, means)
    return Books(tasks, list(annotations.values()))
