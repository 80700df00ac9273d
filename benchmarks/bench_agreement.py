"""Measures the agreement page at a million annotations: counting them from scratch, and the page while more come in.

`python -m benchmarks.bench_agreement [--annotations 1000000] [--calls 40]`. Tasks have one response, which three of a
hundred annotators rate on five attributes and on safety. The page and the API are asked in this process, by Django's
test client: with nothing to count, and right after so many of the latest 20,000 tasks have changed, which are counted
on the way where they are not too many (refreshing.AT_ONCE).
"""

import random
import statistics
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks import product
from benchmarks.measuring import heading, options, quantile, row, timed

if TYPE_CHECKING:
    from django.test import Client

    from annotator.models import Project

ANNOTATORS = 100
WARM_UP = 2
CHANGED = (0, 10, 100, 250, 1_000)
LATEST = 20_000
ADDRESSES = {"page": "/projects/bench/agreement/", "API": "/api/v1/projects/bench/agreement/"}
_CHANGE = """
WITH changed AS (
    UPDATE annotator_rating r SET scores = jsonb_set(scores, '{helpfulness}', to_jsonb(floor(5 * random())::int))
    FROM annotator_assignment s JOIN annotator_annotation a ON a.assignment_id = s.id
    WHERE s.task_id = ANY(%(tasks)s) AND s.slot = 1 AND r.annotation_id = a.id
)
INSERT INTO annotator_staleagreement (project_id, task_id)
SELECT project_id, id FROM annotator_task WHERE id = ANY(%(tasks)s)
"""
"""Changes a rating of each of the tasks, and marks them to be counted again."""


def measure(client: "Client", project: "Project", *, name: str, changed: int, calls: int) -> None:
    from django.db import connection
    from django.utils import timezone

    from annotator.analysis.agreement import totals

    dice, times = random.Random(1), []
    tasks = list(project.tasks.order_by("-pk").values_list("pk", flat=True)[:LATEST])
    for call in range(WARM_UP + calls):
        with connection.cursor() as cursor:
            cursor.execute(_CHANGE, {"tasks": dice.sample(tasks, min(changed, len(tasks)))})
        taken, status = timed(lambda: client.get(ADDRESSES[name]).status_code)
        assert status == 200, status
        times += [taken] if call >= WARM_UP else []
        totals.refresh(project, now=timezone.now())  # what the page has left to the worker
    row(name, f"{changed:,}", f"{statistics.median(times):.0f}", f"{quantile(times, 0.95):.0f}")


def main(words: Sequence[str]) -> None:
    given = options(words, annotations=1_000_000, calls=40)
    with product.database():
        from django.test import Client
        from django.utils import timezone

        from annotator.analysis.agreement import totals
        from annotator.models import Membership, Role, User
        from benchmarks import filling

        crew = filling.make_crew(ANNOTATORS)
        project = filling.make_project("bench", crew=crew, tasks=given.annotations // 3, characters=10, responses=1)
        filling.make_ratings(project, crew=crew)
        manager = User.objects.create_user("manager")
        Membership.objects.create(project=project, user=manager, role=Role.MANAGER)
        taken, tasks = timed(lambda: totals.rebuild(project, now=timezone.now()))
        print(f"\n{tasks:,} tasks, {given.annotations:,} annotations counted in {taken / 1000:.1f} s")
        client = Client(SERVER_NAME="127.0.0.1")
        client.force_login(manager)
        heading("asked", "tasks changed", "median ms", "p95")
        for name in ADDRESSES:
            for changed in CHANGED:
                measure(client, project, name=name, changed=changed, calls=given.calls)


if __name__ == "__main__":
    main(sys.argv[1:])
