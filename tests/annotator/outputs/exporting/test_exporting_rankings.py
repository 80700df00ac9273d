"""Rankings out: beside the scores of each annotation, and a row a task with what they add up to."""

import csv
import io
import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from annotator.models import Project, User
from annotator.outputs.exporting.export_rows import export
from annotator.outputs.exporting.filters import Filters
from annotator.stages.review import adjudicate
from tests.builders import ATTRIBUTES, NOW, claimed, imported, make_project, make_task, pseudonym, rate, task_row
from tests.conftest import Cast


@pytest.fixture
def asking(cast: Cast) -> Project:
    made = make_project("asking", ask_preference=True)
    row = task_row("one", responses=3)
    for name, response in zip("xyz", row["responses"], strict=True):
        response["id"] = name
    imported(made, row)
    return made


def ranked(project: Project, users: Sequence[User], *orders: list[list[int]], **fields: Any) -> None:
    """By places."""
    ids = [response.pk for response in project.tasks.get().responses.all()]
    for user, order in zip(users, orders, strict=True):
        rate(project, user, ranking=[[ids[place] for place in tier] for tier in order], **fields)


def rows(project: Project, layout: str, **options: Any) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in b"".join(export(project, layout=layout, format="jsonl", **options)).splitlines()
    ]


def test_an_annotation_tells_its_ranking_by_the_ids_as_imported(asking: Project, cast: Cast) -> None:
    ranked(asking, [cast.alice], [[2], [0, 1]])
    exported = rows(asking, "annotations")
    assert [(row["response"], row["ranking"]) for row in exported] == [(name, [["z"], ["x", "y"]]) for name in "xyz"]


def test_an_annotation_of_two_responses_has_none(project: Project, cast: Cast) -> None:
    make_task(project)
    rate(project, cast.alice)
    assert [row["ranking"] for row in rows(project, "annotations")] == [None, None]


def test_a_ranked_task_is_a_row(asking: Project, cast: Cast) -> None:
    ranked(asking, cast.annotators, [[0], [1], [2]], [[0], [2], [1]], [[0, 1], [2]])
    (row,) = rows(asking, "rankings")
    assert (row["task"], [response["id"] for response in row["responses"]]) == ("one", ["x", "y", "z"])
    assert row["conversation"] == [{"role": "user", "content": "What is one?"}]
    # x and y: -1, -1, 0; x and z: -1, -1, -1; y and z: -1, 1, -1.
    assert (row["pairs"], row["ranking"]) == ([["x", "y"], ["x", "z"]], [["x"], ["y", "z"]])
    assert [ranking["ranking"] for ranking in row["rankings"]] == [
        [["x"], ["y"], ["z"]],
        [["x"], ["z"], ["y"]],
        [["x", "y"], ["z"]],
    ]
    assert row["rankings"][0]["annotator"] == pseudonym(cast.alice, asking)


def test_a_task_that_waits_for_others_has_no_consensus_yet(asking: Project, cast: Cast) -> None:
    ranked(asking, [cast.alice], [[0], [1], [2]])
    (row,) = rows(asking, "rankings")
    assert (row["ranking"], row["pairs"], len(row["rankings"])) == (None, [], 1)


def test_the_reviewers_ranking_is_in_force(asking: Project, cast: Cast) -> None:
    ranked(asking, cast.annotators, *[[[0], [1], [2]]] * 3)
    task = asking.tasks.get()
    one, two, three = (response.pk for response in task.responses.all())
    scores = {response: dict.fromkeys(ATTRIBUTES, 2) for response in (one, two, three)}
    adjudicate(task.pk, scores=scores, ranking=[[three], [one, two]], reason="slip", by=cast.carol, now=NOW)
    assert rows(asking, "rankings")[0]["ranking"] == [["z"], ["x", "y"]]


def test_a_dropped_task_has_no_consensus(asking: Project, cast: Cast) -> None:
    Project.objects.update(max_annotators=3)
    ids = [response.pk for response in asking.tasks.get().responses.all()]
    for user, level in zip(cast.annotators, (0, 4, 4), strict=True):
        rate(asking, user, level, ranking=[[response] for response in ids])
    assert rows(asking, "rankings")[0]["ranking"] is None


def test_who_rates_the_task_sees_nobodys_ranking(asking: Project, cast: Cast) -> None:
    ranked(asking, [cast.alice], [[0], [1], [2]])
    claimed(asking, cast.bob)
    assert rows(asking, "rankings", by=cast.bob) == []


def test_since_picks_tasks_with_a_new_ranking(asking: Project, cast: Cast) -> None:
    ranked(asking, [cast.alice], [[0], [1], [2]])
    ranked(asking, [cast.bob], [[0], [1], [2]], now=NOW + timedelta(hours=2))
    assert len(rows(asking, "rankings", filters=Filters(since=NOW + timedelta(hours=1)))[0]["rankings"]) == 2
    assert rows(asking, "rankings", filters=Filters(since=NOW + timedelta(hours=3))) == []


def test_the_number_of_queries_does_not_grow_with_the_tasks(
    cast: Cast, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    project = make_project("many", ask_preference=True)
    for _ in range(8):
        ids = [response.pk for response in make_task(project, responses=3).responses.all()]
        rate(project, cast.alice, ranking=[ids])
    with django_assert_max_num_queries(6):
        assert len(rows(project, "rankings")) == 8


def test_as_csv_lists_are_json(asking: Project, cast: Cast) -> None:
    ranked(asking, cast.annotators, *[[[0], [1, 2]]] * 3)
    text = b"".join(export(asking, layout="rankings", format="csv")).decode()
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    assert json.loads(row["ranking"]) == [["x"], ["y", "z"]]
    assert len(json.loads(row["rankings"])) == 3
