"""What is in force of a task is the same to everybody who reads it: exports, snapshots, counts and the ranking."""

import json
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import pytest
from django.db.models import QuerySet

from annotator.exporting.filters import EVERYTHING
from annotator.exporting.layouts import LAYOUTS
from annotator.models import NEITHER_VALID, Adjudication, Consensus, Label, Project, Task, User
from annotator.review.blindness import tasks_held_by
from rewards.learning_material import material
from rewards.rated_models import rated_models
from rewards.snapshots import lines
from tests.builders import NOW, imported, task_row
from tests.conftest import Cast

pytestmark = pytest.mark.django_db


class Said(NamedTuple):
    """What is stored about a task of two responses; a preference of None means that there is none from there."""

    imported: int | None
    agreed: int | None
    dropped: bool
    settled: int | None
    label: str

    def in_force(self) -> int | None:
        """The rule, in the words of docs/protocol.md: a reviewer's word, else the annotators', else the file's."""
        words = [self.settled] if self.dropped else [self.settled, self.agreed, self.imported]
        word = next((word for word in words if word is not None), None)
        return None if word == NEITHER_VALID else word


CASES = [
    Said(*case)
    for case in product(
        [None, -2], [None, 1], [False, True], [None, 3, NEITHER_VALID], ["", "consensus", "adjudicated"]
    )
    if case[3] is None or case[4] == "adjudicated"  # a reviewer labels every response
]


def store(task: Task, said: Said, by: User) -> None:
    task.imported_preference, task.state = said.imported, Task.State.COMPLETE
    task.save(update_fields=["imported_preference", "state"])
    of_task = {"task": task, "project": task.project}
    if said.agreed is not None or said.dropped or said.label == "consensus":
        because = "too far apart" if said.dropped else ""
        Consensus.objects.create(**of_task, annotators=3, preference=said.agreed, drop_reason=because, computed_at=NOW)
    if said.label == "adjudicated":
        Adjudication.objects.create(task=task, scores={}, preference=said.settled, reason="other", by=by, made_at=NOW)
    for number, response in enumerate(task.responses.all() if said.label else ()):
        levels = {"helpfulness": 2 + number}
        values: dict[str, Any] = {"source": said.label, "scores": levels, "means": levels, "made_at": NOW}
        Label.objects.create(response=response, project=task.project, **values)


@pytest.fixture
def cases(project: Project, cast: Cast) -> dict[str, Said]:
    named = {f"case-{number}": said for number, said in enumerate(CASES)}
    imported(project, *(task_row(name) for name in named))
    for task in Task.objects.filter(project=project).select_related("project"):
        store(task, named[task.external_id], cast.carol)
    return named


def exported(project: Project, layout: str) -> Iterator[dict[str, Any]]:
    nobody: QuerySet[Any] = tasks_held_by(None)
    yield from LAYOUTS[layout].rows(project, EVERYTHING, nobody)


def learnt(project: Project) -> dict[str, int | None]:
    found = [json.loads(line.text) for part in lines.parts(project) for line in part]
    return {line["task"]: line["preference"] for line in found}


def test_a_snapshot_learns_no_preference_that_no_export_shows(project: Project, cases: dict[str, Said]) -> None:
    expected = {name: said.in_force() for name, said in cases.items()}
    assert {name: strength for name, strength in learnt(project).items() if strength} == {
        name: strength for name, strength in expected.items() if strength
    }


def test_exports_hold_the_preference_in_force(project: Project, cases: dict[str, Said]) -> None:
    by_preference = {
        row["task"]: row["margin"] * (-1 if row["chosen"][0]["content"].startswith("Answer 0") else 1)
        for row in exported(project, "dpo")
        if row["by"] == "preference"
    }
    in_force = {name: said.in_force() for name, said in cases.items()}
    assert by_preference == {name: strength for name, strength in in_force.items() if strength}
    assert sorted(row["preference_strength"] for row in exported(project, "preference")) == sorted(
        strength for strength in in_force.values() if strength is not None
    )


def test_the_counts_and_the_ranking_of_models_read_the_same(project: Project, cases: dict[str, Said]) -> None:
    in_force = [said.in_force() for said in cases.values()]
    preferred = [strength for strength in in_force if strength is not None]
    assert material(project).preferences == len(preferred)
    (first, _second) = rated_models(project).people.standings
    assert first.wins.n == len(preferred)
