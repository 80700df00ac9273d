"""Measures the agreement page at a million annotations: counting them from scratch, and the page while more come in.

`python -m benchmarks.bench_agreement [ANNOTATIONS]`. Tasks have one response, which three of a hundred annotators
rate on five attributes and on safety. The page and the API are asked in this process, by Django's test client: with
nothing to count, and right after so many of the latest 20,000 tasks have changed, which are counted on the way where
they are not too many (refreshing.AT_ONCE).
"""

import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks import product
from benchmarks.scale.growth import select_by_key

if TYPE_CHECKING:
    from django.test import Client

    from annotator.models import Project, User

ANNOTATIONS = 1_000_000
ANNOTATORS = 100
WARM_UP = 2
CALLS = 40
CHANGED = (0, 10, 100, 250, 1_000)
LATEST = 20_000
ADDRESSES = {"page": "/projects/bench/agreement/", "API": "/api/v1/projects/bench/agreement/"}


def fill(annotations: int) -> "tuple[Project, User]":
    """Makes a project with so many annotations; returns it with its manager."""
    from django.db import connection, transaction

    from annotator.models import Membership, Project, Role, Rubric, User

    users = [User.objects.create_user(f"annotator-{number:03}") for number in range(ANNOTATORS)]
    manager = User.objects.create_user("manager")
    project = Project.objects.create(slug="bench", name="Bench", rubric=Rubric.objects.get(key="helpsteer2"))
    Membership.objects.create(project=project, user=manager, role=Role.MANAGER)
    values = {"project": project.pk, "tasks": annotations // 3, "first": users[0].pk, "annotators": ANNOTATORS}
    with transaction.atomic(), connection.cursor() as cursor:
        # Without triggers: checking references row by row would take longer than writing the rows.
        cursor.execute("SET LOCAL session_replication_role = replica")
        for statement in _FILL:
            cursor.execute(statement, values)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE)")
    return project, manager


# Rater 0, 1, 2 of a task stand the same step apart, so that every two annotators meet. What they see differs by a level
# now and then, and by more for some annotators than for others.
_FILL = (
    """
    INSERT INTO annotator_task (project_id, external_id, conversation, metadata, priority, state, slots_wanted,
                                open_slots, done, content_hash, prompt_hash, created_at)
    SELECT %(project)s, 't-' || n, '[]', '{}', 0, 'complete', 3, 0, 3, n, n, now()
    FROM generate_series(1, %(tasks)s) AS n
    """,
    """
    INSERT INTO annotator_response (task_id, position, external_id, text, model, metadata)
    SELECT id, 0, '', 'An answer.', '', '{}' FROM annotator_task
    """,
    """
    INSERT INTO annotator_assignment (task_id, annotator_id, slot, state, response_order, leased_at, lease_expires_at)
    SELECT t.id, %(first)s + (t.id + place * (1 + t.id / %(annotators)s %% 33)) %% %(annotators)s,
           place + 1, 'submitted', '{0}', now(), now()
    FROM annotator_task t, generate_series(0, 2) AS place
    """,
    """
    INSERT INTO annotator_annotation (assignment_id, revision, is_current, origin, justification, guideline_version,
                                      content_hash, submitted_at, project_id, annotator_id)
    SELECT id, 1, true, 'person', '', 0, id, now() - (id %% 365) * interval '1 day', %(project)s, annotator_id
    FROM annotator_assignment
    """,
    """
    INSERT INTO annotator_rating (annotation_id, response_id, scores, checks, safe, unsafe_category)
    SELECT a.id, r.id, jsonb_build_object(
               'helpfulness', seen(r.id, s.annotator_id, 1), 'correctness', seen(r.id, s.annotator_id, 2),
               'coherence', seen(r.id, s.annotator_id, 3), 'complexity', seen(r.id, s.annotator_id, 4),
               'verbosity', seen(r.id, s.annotator_id, 5)),
           '[]', random() < 0.97, ''
    FROM annotator_annotation a
    JOIN annotator_assignment s ON s.id = a.assignment_id
    JOIN annotator_response r ON r.task_id = s.task_id
    """,
    """
    INSERT INTO annotator_consensus (project_id, task_id, kept, annotators, drop_reason, computed_at)
    SELECT a.project_id, s.task_id, array_agg(a.id), 3, '', now()
    FROM annotator_annotation a JOIN annotator_assignment s ON s.id = a.assignment_id GROUP BY a.project_id, s.task_id
    """,
)
_SEEN = """
CREATE FUNCTION seen(response bigint, annotator bigint, attribute int) RETURNS int LANGUAGE sql AS $$
    SELECT greatest(0, least(4, (response * (attribute + 6) / 3 % 5)::int + CASE
        WHEN random() < 0.45 + 0.3 * (annotator % 7) / 6 THEN 0 WHEN random() < 0.5 THEN 1 ELSE -1 END))
$$
"""


def change(tasks: int, *, dice: random.Random, last: int) -> None:
    """Changes a rating in each of so many of the latest tasks at random, and marks these tasks to be counted again."""
    from django.db import connection

    ids = dice.sample(range(max(last - LATEST, 0) + 1, last + 1), tasks)
    with connection.cursor() as cursor:
        cursor.execute(_CHANGE, {"tasks": ids})


_CHANGE = """
WITH changed AS (
    UPDATE annotator_rating r SET scores = jsonb_set(scores, '{helpfulness}', to_jsonb(floor(5 * random())::int))
    FROM annotator_assignment s JOIN annotator_annotation a ON a.assignment_id = s.id
    WHERE s.task_id = ANY(%(tasks)s) AND s.slot = 1 AND r.annotation_id = a.id
)
INSERT INTO annotator_staleagreement (project_id, task_id)
SELECT project_id, id FROM annotator_task WHERE id = ANY(%(tasks)s)
"""


def timed(action: Callable[[], object]) -> tuple[float, object]:
    """Returns the milliseconds that the action took, and its answer."""
    start = time.perf_counter()
    answer = action()
    return 1000 * (time.perf_counter() - start), answer


def bench(client: "Client", project: "Project", *, name: str, tasks: int, changed: int) -> str:
    from django.utils import timezone

    from annotator.agreement import totals

    dice, times, yardstick = random.Random(1), [], []
    for call in range(WARM_UP + CALLS):
        change(changed, dice=dice, last=tasks)
        taken, status = timed(lambda: client.get(ADDRESSES[name]).status_code)
        assert status == 200, status
        if call >= WARM_UP:
            times.append(taken)
            yardstick += [timed(lambda: select_by_key(tasks))[0] for _ in range(20)]
        totals.refresh(project, now=timezone.now())  # what the page has left to the worker
    p95 = sorted(times)[int(0.95 * len(times))]
    cells = f"{statistics.median(times):.0f} | {p95:.0f} | {statistics.median(yardstick):.3f}"
    return f"| {name} | {changed:,} | {cells} |"


def main(annotations: int) -> None:
    with product.database():
        from django.db import connection
        from django.test import Client
        from django.utils import timezone

        from annotator.agreement import totals

        with connection.cursor() as cursor:
            cursor.execute(_SEEN)
        project, manager = fill(annotations)
        start = time.perf_counter()
        tasks = totals.rebuild(project, now=timezone.now())
        print(f"\n{tasks:,} tasks, {annotations:,} annotations counted in {time.perf_counter() - start:.1f} s\n")
        client = Client(SERVER_NAME="127.0.0.1")
        client.force_login(manager)
        print("| asked | tasks changed | median ms | p95 | SELECT by key, ms |\n|---|---|---|---|---|")
        for name in ADDRESSES:
            for changed in CHANGED:
                print(bench(client, project, name=name, tasks=tasks, changed=changed), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ANNOTATIONS)
