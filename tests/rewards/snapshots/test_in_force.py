"""What is in force of a task is the same to everybody who reads it: exports, snapshots, counts and the ranking."""

import json
from collections.abc import Iterator
from datetime import timedelta
from itertools import product
from typing import Any, NamedTuple

import pytest
from django.db import connection
from django.db.models import QuerySet

from annotator.analysis.agreement import counted_ratings
from annotator.models import NEITHER_VALID, Adjudication, Consensus, Label, Project, Task, User
from annotator.models.in_force import compared_alone
from annotator.models.splits import HELD_OUT, is_held_out
from annotator.outputs.exporting.filters import EVERYTHING, Filters
from annotator.outputs.exporting.layouts import LAYOUTS
from annotator.reading.blindness import tasks_held_by
from annotator.reading.search.listing import listed
from annotator.stages.consensus.rankings import pairs_of
from annotator.statistics.pair_counts import PairColumns, PairFlag
from rewards.leaderboard.rated_models import rated_models
from rewards.runs.new_labels import material
from rewards.snapshots import has_answers, lines
from tests.builders import NOW, imported, make_task, rate, task_row, the_task
from tests.conftest import Cast

pytestmark = pytest.mark.django_db


class Said(NamedTuple):
    """What is stored about a task of two responses; a preference of None means that there is none from there."""

    imported: int | None
    agreed: int | None
    dropped: bool
    settled: int | None
    label: str

    @property
    def stated(self) -> int | None:
        """The rule, in the words of docs/protocol.md: a reviewer's word, else the annotators', else the file's."""
        words = [self.settled] if self.dropped else [self.settled, self.agreed, self.imported]
        return next((word for word in words if word is not None), None)

    def in_force(self) -> int | None:
        return None if self.stated == NEITHER_VALID else self.stated

    @property
    def is_labelled(self) -> bool:
        return self.label == "adjudicated" or (bool(self.label) and not self.dropped)


CASES = [
    Said(*case)
    for case in product(
        [None, -2, NEITHER_VALID],
        [None, 1],
        [False, True],
        [None, 3, NEITHER_VALID],
        ["", "imported", "consensus", "adjudicated"],
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


# Who reads it ----------------------------------------------------------------------------------------------


def test_pages_show_what_is_said(project: Project, cases: dict[str, Said]) -> None:
    tasks = project.tasks.in_bulk()
    shown = listed(list(tasks), project, rewards=False)
    assert {row.task.external_id: row.preference for row in shown} == {
        name: said.stated for name, said in cases.items()
    }


def test_a_project_has_answers_where_one_of_its_tasks_has_any(project: Project, cases: dict[str, Said]) -> None:
    alone = {task.external_id for task in compared_alone(project.tasks.all())}
    assert alone == {name for name, said in cases.items() if said.in_force() is not None and not said.is_labelled}
    for name, said in cases.items():
        Task.objects.filter(project=project).exclude(external_id=name).update(state=Task.State.RETIRED)
        Task.objects.filter(project=project, external_id=name).update(state=Task.State.COMPLETE)
        assert has_answers(project) == (said.in_force() is not None or said.is_labelled), said


PLACES = ["Answer 0", "Answer 1", "Answer 2"]


class Ranked(NamedTuple):
    """What is stored about a task of three responses, of which the raters find the last one better than the first."""

    agreed: bool
    dropped: bool
    settled: list[list[int]] | None
    label: str

    def in_force(self) -> list[list[int]]:
        if self.settled is not None:
            return [[better, worse] for better, worse in pairs_of(self.settled)]
        return [[2, 0]] if self.agreed and not self.dropped else []


RANKED = [
    Ranked(*case)
    for case in product(
        [False, True], [False, True], [None, [[1], [0, 2]], [[0, 1, 2]]], ["", "imported", "consensus", "adjudicated"]
    )
    if case[2] is None or case[3] == "adjudicated"
]


def test_a_snapshot_learns_the_pairs_that_exports_show(project: Project, cast: Cast) -> None:
    named = {f"case-{number}": ranked for number, ranked in enumerate(RANKED)}
    imported(project, *(task_row(name, responses=3) for name in named))
    for task in Task.objects.filter(project=project).select_related("project"):
        ranked = named[task.external_id]
        store(task, Said(None, None, ranked.dropped, None, ranked.label), cast.carol)
        ids = list(task.responses.order_by("position").values_list("pk", flat=True))
        if ranked.agreed:
            about = {"project": project, "annotators": 3, "computed_at": NOW, "pairs": [[ids[2], ids[0]]]}
            Consensus.objects.update_or_create(task=task, defaults=about)
        if ranked.settled is not None:
            tiers = [[ids[place] for place in tier] for tier in ranked.settled]
            task.adjudications.update(ranking=tiers)
    lines_of = [json.loads(line.text) for part in lines.parts(project) for line in part]
    learnt = {line["task"]: line.get("pairs", []) for line in lines_of}
    in_force = {name: ranked.in_force() for name, ranked in named.items()}
    assert {name: pairs for name, pairs in learnt.items() if pairs} == {name: p for name, p in in_force.items() if p}
    shown: dict[str, list[list[int]]] = {}
    for row in exported(project, "dpo"):
        if row["by"] == "ranking":
            pair = [PLACES.index(row[side][0]["content"][:8]) for side in ("chosen", "rejected")]
            shown.setdefault(row["task"], []).append(pair)
    assert shown == {name: pairs for name, pairs in in_force.items() if pairs}


def test_agreement_counts_no_dropped_rating_as_kept(project: Project, cast: Cast) -> None:
    Project.objects.update(base_annotators=3, max_annotators=3)
    project.refresh_from_db()
    make_task(project, "far-apart")
    for person, level in ((cast.alice, 0), (cast.bob, 4), (cast.erin, 2)):
        rate(project, person, level)
    task = the_task(project, "far-apart")
    assert task.consensus.drop_reason
    assert not (counted_ratings.read([task.pk], PairColumns(("helpfulness",)))["flags"] & PairFlag.KEPT).any()


def test_a_time_selects_by_when_what_is_in_force_was_made(project: Project, cast: Cast) -> None:
    imported(project, task_row("settled-later"))
    task = the_task(project, "settled-later")
    store(task, Said(None, 1, False, 3, "adjudicated"), cast.carol)
    task.adjudications.update(made_at=NOW + timedelta(days=2))
    Label.objects.update(made_at=NOW + timedelta(days=2))
    nobody: QuerySet[Any] = tasks_held_by(None)
    for layout in ("preference", "dpo"):
        before, after = (
            list(LAYOUTS[layout].rows(project, filters, nobody))
            for filters in (Filters(until=NOW + timedelta(days=1)), Filters(since=NOW + timedelta(days=1)))
        )
        assert (before, len(after)) == ([], 1)


@pytest.mark.parametrize("start", ["0000000000000000", "199999999999988f", "1999999999999a00", "ffffffffffffffff"])
@pytest.mark.parametrize("share", [0.1, float.fromhex("0x0.1999999999999p0"), 0.5, 1.0])
def test_both_forms_of_the_split_say_the_same(start: str, share: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {HELD_OUT} FROM (SELECT %(hash)s AS prompt_hash) t", {"hash": start, "share": share})
        assert cursor.fetchone() == (is_held_out(start, share),)
