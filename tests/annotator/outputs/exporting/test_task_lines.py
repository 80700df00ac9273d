"""Layouts with a row for each task read the tasks a part at a time, and of each table only what belongs to the part."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from annotator.infrastructure.db.planning import by_merging_without_transaction
from annotator.models import Annotation, Project
from annotator.outputs.exporting import answered_tasks, copied
from annotator.outputs.exporting.export_rows import export
from annotator.outputs.exporting.filters import EVERYTHING
from annotator.outputs.exporting.layouts import LAYOUTS
from tests.annotator.outputs.exporting.test_preferences import preferred
from tests.builders import make_task, rate
from tests.conftest import Cast

BY_TASK = ["preference", "helpsteer3", "dpo", "nemo", "argilla", "label_studio", "rankings"]


@pytest.fixture
def tasks(project: Project, cast: Cast, request: pytest.FixtureRequest) -> list[str]:
    """Returns the names of tasks that the layout of a test writes, three times rated, compared or ranked."""
    names = [f"t{number}" for number in range(9)]
    if request.node.callspec.params["layout"] != "rankings":
        for name in names:
            preferred(project, cast, 2, 2, 2, level=[1, 3], name=name)
        return names
    for name in names:
        first, second, third = make_task(project, name, responses=3).responses.all()
        for user in cast.annotators:
            rate(project, user, ranking=[[first.pk], [second.pk, third.pk]])
    return names


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("layout", BY_TASK)
def test_parts_have_every_task_once_and_in_order(
    project: Project, tasks: list[str], layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = list(rows(project, layout))
    monkeypatch.setattr(copied, "FIRST", 1)
    monkeypatch.setattr(answered_tasks, "AT_ONCE", 2)
    assert list(rows(project, layout)) == whole
    assert len(whole) == len(tasks)
    if layout in ("dpo", "rankings"):
        assert [row["task"] for row in whole] == tasks


def rows(project: Project, layout: str) -> Iterator[Any]:
    return map(json.loads, b"".join(export(project, layout=layout, format="jsonl")).splitlines())


@pytest.mark.usefixtures("tasks")
@pytest.mark.parametrize("layout", BY_TASK)
def test_no_table_is_read_without_the_ids_of_a_part(
    project: Project, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    selects: list[copied.Select] = []
    select = answered_tasks._select

    def noted(*arguments: Any) -> copied.Select:
        selects.append(select(*arguments))
        return selects[-1]

    monkeypatch.setattr(answered_tasks, "_select", noted)
    list(LAYOUTS[layout].rows(project, EVERYTHING, Annotation.objects.none()))
    with by_merging_without_transaction(), connection.cursor() as cursor:
        for sql, values in selects:
            cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", values)
            ((plans,),) = cursor.fetchall()
            read = list(scans(json.loads(plans)[0]["Plan"] if isinstance(plans, str) else plans[0]["Plan"]))
            assert len(read) > 3
            assert [scan for scan in read if not scan.keys() & {"Index Cond", "Recheck Cond"}] == []


def scans(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the nodes of a plan that read a table."""
    if "Relation Name" in plan:
        yield plan
    for part in plan.get("Plans", ()):
        yield from scans(part)
