"""Which label of a response is in force."""

from itertools import chain, combinations

import pytest
from django.db import connection

from annotator.models import Consensus, Label, Project, Task
from annotator.models.in_force import LABEL_IN_FORCE
from tests.builders import ATTRIBUTES, NOW, make_task

SOURCES = Label.Source.values
SETS = list(chain.from_iterable(combinations(SOURCES, size) for size in range(4)))
SCORES = dict.fromkeys(ATTRIBUTES, 2)
BY_SQL = f"""
SELECT r.id, l.source FROM annotator_response r
LEFT JOIN annotator_consensus c ON c.task_id = r.task_id CROSS JOIN LATERAL ({LABEL_IN_FORCE}) l
"""


def labelled(project: Project, sources: tuple[str, ...], drop_reason: str | None) -> Task:
    task = make_task(project, responses=1)
    if drop_reason is not None:
        about = {"annotators": 3, "computed_at": NOW}
        Consensus.objects.create(project=project, task=task, drop_reason=drop_reason, **about)
    response = task.responses.get()
    Label.objects.bulk_create(
        Label(project=project, response=response, source=source, scores=SCORES, means=SCORES, made_at=NOW)
        for source in sources
    )
    return task


@pytest.mark.parametrize("drop_reason", [None, "", "spread"])
def test_the_rule_for_one_response_is_the_rule_for_all(project: Project, drop_reason: str | None) -> None:
    for sources in SETS:
        labelled(project, sources, drop_reason)
    in_force = dict(Label.objects.in_force().values_list("response", "source"))
    assert len(in_force) == (4 if drop_reason else 7)
    with connection.cursor() as cursor:
        cursor.execute(BY_SQL)
        assert dict(cursor.fetchall()) == in_force
