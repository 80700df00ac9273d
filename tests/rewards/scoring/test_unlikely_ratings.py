"""Annotations that a model finds unlikely come before a reviewer, blind, with what was expected."""

import json
import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from django.test import Client

from annotator.models import Assignment, Project, Task, UnlikelyAnnotation
from annotator.models.public_ids import response_number
from annotator.stages.review import adjudicate, judge
from annotator.stages.review.queue import ask_for_review
from rewards import tasks
from rewards.models import RunState, TrainingRun
from rewards.scoring import unlikely_ratings
from rewards.scoring.unlikely_ratings import Given, Unlikely, _whole_annotations, most_unlikely
from tests.builders import ATTRIBUTES, NOW, make_project, make_task, rate
from tests.conftest import Cast
from tests.rewards.scored import make_model

Noted = tuple[Task, UnlikelyAnnotation]


class Row(NamedTuple):
    """One score, and what was expected."""

    annotation: int
    task: int
    annotator: int
    response: int
    attribute: str
    given: float
    expected: float


def scores(*, annotations: int, odd: int | None = None, lean: float = 0.0, seed: int = 0) -> list[Row]:
    """Five scores each around what is expected; one annotation gives the opposite, annotator 0 leans."""
    dice = np.random.default_rng(seed)
    rows = []
    for number in range(annotations):
        for attribute in ATTRIBUTES:
            expected = float(dice.uniform(0.5, 3.5))
            noise = float(dice.normal(0, 0.5)) + (lean if number % 3 == 0 else 0.0)
            given = 4 - expected if number == odd else expected + noise
            rows.append(Row(number, number, number % 3, number, attribute, given, expected))
    return rows


def arrays(rows: list[Row]) -> Given:
    """Sorted by annotation and response, a row for each."""
    keys = sorted({(row.annotation, row.task, row.annotator, row.response) for row in rows})
    annotation, task, annotator, response = np.array(keys, dtype=np.int64).reshape(-1, 4).T
    given, expected = (np.full((len(keys), len(ATTRIBUTES)), np.nan) for _ in range(2))
    for row in rows:
        cell = (keys.index(row[:4]), list(ATTRIBUTES).index(row.attribute))
        given[cell], expected[cell] = row.given, row.expected
    return Given(tuple(ATTRIBUTES), annotation, task, annotator, response, given, expected)


def found_in(rows: list[Row], *, percent: float, at_once: int = 10**6) -> list[Unlikely]:
    """The furthest first; read in portions of about so many rows."""
    whole = arrays(rows)
    places = range(0, len(whole.annotation), at_once)
    portions = [whole.part(slice(place, place + at_once)) for place in places]
    notes = most_unlikely(lambda: _whole_annotations(portions), percent=percent)
    return sorted(notes, key=lambda note: -note.deviations)


def test_the_one_that_says_the_opposite_is_found() -> None:
    rows = scores(annotations=100, odd=41)
    notes = found_in(rows, percent=2)
    assert [note.annotation for note in notes] == [41]
    assert notes[0].evidence[0]["attribute"] in ATTRIBUTES
    assert notes[0].deviations > 2


def test_never_more_than_their_share() -> None:
    rows = [*scores(annotations=100, odd=1)] + [Row(100 + n, 100 + n, 1, 1, "helpfulness", 0, 4.0) for n in range(10)]
    assert len(found_in(rows, percent=2)) == 2


def test_who_leans_is_not_unlikely_for_that() -> None:
    assert found_in(scores(annotations=90, lean=1.5), percent=20) == []


def test_nothing_expected_nothing_found() -> None:
    assert found_in([], percent=2) == []


def plainly(rows: list[Row], *, percent: float) -> list[tuple[int, int, float, list[tuple[int, str, int, float]]]]:
    """The same, score by score."""
    off = {row: row.given - row.expected for row in rows}
    by_lean, by_attribute = defaultdict(list), defaultdict(list)
    for row, value in off.items():
        by_lean[row.annotator, row.attribute].append(value)
    for row in rows:
        leans = by_lean[row.annotator, row.attribute]
        off[row] -= sum(leans) / (len(leans) + 10)
        by_attribute[row.attribute].append(off[row])
    spread = {key: (sum(number**2 for number in values) / len(values)) ** 0.5 for key, values in by_attribute.items()}
    cells = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.annotation, row.response, list(ATTRIBUTES).index(row.attribute))):
        cells[row.annotation, row.task].append((row, off[row] / max(spread[row.attribute], 1e-6)))
    overall = {key: (sum(far**2 for _, far in cell) / len(cell)) ** 0.5 for key, cell in cells.items()}
    chosen = sorted(overall, key=lambda key: -overall[key])[: round(len(overall) * percent / 100)]
    widest = {key: sorted(cells[key], key=lambda cell: -abs(cell[1]))[:4] for key in chosen}
    return [
        (
            *key,
            overall[key],
            [
                (row.response, row.attribute, int(row.given), round(row.expected, 2))
                for row, far in widest[key]
                if abs(far) >= 1
            ],
        )
        for key in chosen
        if overall[key] >= 2
    ]


@pytest.mark.parametrize("at_once", [1, 7, 64])
def test_portions_find_what_is_found_at_once(at_once: int) -> None:
    rows = [row._replace(response=2 * row.response + side) for row in scores(annotations=90, odd=41) for side in (0, 1)]
    (whole,), (parted,) = (found_in(rows, percent=2, at_once=portion) for portion in (10**6, at_once))
    assert (whole.annotation, whole.evidence) == (parted.annotation, parted.evidence)
    assert whole.deviations == pytest.approx(parted.deviations)


@pytest.mark.parametrize("seed", range(5))
def test_arrays_find_what_score_by_score_is_found(seed: int) -> None:
    """Two responses each, not every attribute given, nor something expected of each."""
    dice = random.Random(seed)
    rows = [
        Row(number, number // 3, number % 4, 2 * (number // 3) + side, attribute, dice.randrange(5), dice.uniform(0, 4))
        for number in range(400)
        for side in range(2)
        for attribute in ATTRIBUTES
        if dice.random() < 0.8
    ]
    rows += [
        row._replace(annotation=1000 + n, annotator=n % 4, given=0, expected=4.0) for n, row in enumerate(rows[:9])
    ]
    notes = found_in(rows, percent=20)
    described = [
        (note.annotation, note.task, note.deviations, [tuple(e.values()) for e in note.evidence]) for note in notes
    ]
    wanted = plainly(rows, percent=20)
    assert wanted
    assert [row[:2] + row[3:] for row in described] == [row[:2] + row[3:] for row in wanted]
    np.testing.assert_allclose([row[2] for row in described], [row[2] for row in wanted])


@pytest.fixture
def noted(cast: Cast) -> Noted:
    """Ten tasks on which all agree, give or take, where bob gave one response 1; the model expects 3.5."""
    project = make_project("small", review_unlikely_percent=2)
    for number in range(10):
        make_task(project, prompt=f"Prompt {number}")
        for user in cast.annotators:
            odd = user == cast.bob and number == 7
            rate(project, user, [3, 1] if odd else 3 + (number % 2 == 0))
    run = TrainingRun.objects.create(project=project, reason="a test", state=RunState.PROMOTED)
    expect(run, project)
    assert unlikely_ratings.note(run, now=NOW) == 1
    note = UnlikelyAnnotation.objects.get()
    return Task.objects.get(pk=note.task_id), note


def expect(run: TrainingRun, project: Project) -> None:
    run.directory().mkdir(parents=True)
    responses = (response.pk for task in project.tasks.all() for response in task.responses.all())
    rows = ({"id": str(pk), "scores": dict.fromkeys(ATTRIBUTES, 3.5)} for pk in responses)
    (run.directory() / "expected.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_it_waits_for_a_reviewer(noted: Noted, cast: Cast) -> None:
    task, note = noted
    assert task.review_reason == Task.Review.UNLIKELY
    assert note.annotation.assignment.annotator == cast.bob
    assert note.evidence[0] | {"attribute": ""} == {
        "response": task.responses.all()[1].pk,
        "attribute": "",
        "given": 1,
        "expected": 3.5,
    }


@pytest.mark.parametrize(
    "decide",
    [
        lambda task, note, by: judge(note.annotation.assignment_id, decision="accepted", by=by, now=NOW),
        lambda task, note, by: judge(note.annotation.assignment_id, decision="rejected", comment="No.", by=by, now=NOW),
        lambda task, note, by: adjudicate(
            task.pk,
            scores={response.pk: dict.fromkeys(ATTRIBUTES, 3) for response in task.responses.all()},
            reason="slip",
            by=by,
            now=NOW,
        ),
    ],
    ids=["accepted", "rejected", "settled"],
)
def test_a_decision_takes_it_out_of_the_queue(noted: Noted, cast: Cast, decide: Callable[..., Any]) -> None:
    task, note = noted
    decide(task, note, cast.carol)
    unlikely_ratings.ask_again()
    task.refresh_from_db()
    assert task.review_reason != Task.Review.UNLIKELY


def test_what_was_accepted_is_not_asked_again(noted: Noted, cast: Cast) -> None:
    task, note = noted
    judge(note.annotation.assignment_id, decision="accepted", by=cast.carol, now=NOW)
    unlikely_ratings.note(TrainingRun.objects.get(), now=NOW)
    task.refresh_from_db()
    assert task.review_reason == ""


def test_it_comes_back_when_the_task_is_settled_anew(noted: Noted) -> None:
    task, _ = noted
    Task.objects.filter(pk=task.pk).update(review_reason="")
    assert unlikely_ratings.ask_again() == 1
    task.refresh_from_db()
    assert task.review_reason == Task.Review.UNLIKELY


def test_an_empty_file_expects_nothing(noted: Noted) -> None:
    run = TrainingRun.objects.get()
    (run.directory() / "expected.jsonl").write_text("")
    assert unlikely_ratings.note(run, now=NOW) == 0


def test_a_run_whose_message_was_lost_is_found_again(noted: Noted) -> None:
    task, _ = noted
    model = make_model(task.project)
    TrainingRun.objects.update(unlikely_noted_at=None)
    expect(model.run, task.project)
    UnlikelyAnnotation.objects.all().delete()
    assert tasks.note_unlikely_left() == 1
    model.run.refresh_from_db()
    assert model.run.unlikely_noted_at
    assert UnlikelyAnnotation.objects.count() == 1
    assert tasks.note_unlikely_left() == tasks.note_unlikely(model.run_id) == 0, "once is enough"


def test_a_run_that_a_newer_one_has_replaced_says_nothing_any_more(project: Project) -> None:
    old, new = make_model(project), make_model(project)
    assert list(TrainingRun.objects.unnoted()) == [new.run]
    TrainingRun.objects.filter(pk=new.run_id).update(unlikely_noted_at=NOW)
    assert tasks.note_unlikely(old.run_id) == 0
    assert not TrainingRun.objects.unnoted().exists()


def test_a_project_may_turn_it_off(noted: Noted) -> None:
    task, _ = noted
    Project.objects.filter(pk=task.project_id).update(review_unlikely_percent=0)
    assert unlikely_ratings.note(TrainingRun.objects.get(), now=NOW) == 0
    assert not Task.objects.filter(review_reason=Task.Review.UNLIKELY).exists()


def test_other_reasons_go_first(noted: Noted) -> None:
    task, _ = noted
    Task.objects.filter(pk=task.pk).update(review_reason=Task.Review.SAFETY)
    assert ask_for_review(Task.objects.all()) == 0


def test_the_reviewer_sees_what_was_expected_but_not_who_it_was(noted: Noted, cast: Cast, client: Client) -> None:
    task, note = noted
    client.force_login(cast.carol)
    cast.carol.memberships.create(project=task.project, role="reviewer")
    page = client.get(f"/projects/small/review/{task.public_id}/").content.decode()
    assert "response B: 2 for Helpfulness, where about 4.5 was expected." in " ".join(page.split())
    assert "bob" not in page
    shown = client.get(f"/api/v1/review/{task.public_id}/").json()
    given = [rater["unlikely"] for rater in shown["raters"] if rater["assignment"] == note.annotation.assignment_id]
    assert given == [[{**evidence, "response": response_number(evidence["response"])} for evidence in note.evidence]]
    assert Assignment.objects.filter(task=task).count() == len(shown["raters"])
