"""Measures the building of a snapshot of a million labels: seconds, processor time, and the peak of the memory.

`python -m benchmarks.bench_snapshot [LABELS]`. Each task has a prompt of 300 characters and two responses of 500, which
three people have rated, so the labels are means and the ratings are written too. The worker's function runs twice, each
time in a process of its own: for labels that are new, and for the same labels again.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

from benchmarks import product

LABELS = 1_000_000
BUILD = "build"
"""The argument of the process that builds."""
PROMPT_CHARACTERS, RESPONSE_CHARACTERS = 300, 500
ANNOTATORS = 3
MEGABYTE = 1_000_000
COLUMNS = (
    "labels",
    "seconds",
    "processor, worker",
    "processor, PostgreSQL",
    "peak memory, MB",
    "memory before, MB",
    "files, MB",
)


def fill(labels: int) -> int:
    """Makes a project with so many labels, each the mean of three ratings; returns its id."""
    from django.db import connection, transaction

    from annotator.models import Project, Rubric, User
    from benchmarks.filling import settle

    users = [User.objects.create_user(f"annotator-{number}") for number in range(ANNOTATORS)]
    project = Project.objects.create(slug="bench", name="Bench", rubric=Rubric.objects.get(key="helpsteer2"))
    values = {
        "project": project.pk,
        "tasks": labels // 2,
        "first": users[0].pk,
        "prompt": PROMPT_CHARACTERS,
        "response": RESPONSE_CHARACTERS,
    }
    with transaction.atomic(), connection.cursor() as cursor:
        # Without triggers: checking references row by row would take longer than writing the rows.
        cursor.execute("SET LOCAL session_replication_role = replica")
        for statement in _FILL:
            cursor.execute(statement, values)
    settle()
    return project.pk


_FILL = (
    """
    INSERT INTO annotator_task (project_id, external_id, conversation, metadata, priority, state, slots_wanted,
                                open_slots, done, content_hash, prompt_hash, created_at, pii_scanned_at)
    SELECT %(project)s, 't-' || n,
           jsonb_build_array(jsonb_build_object('role', 'user', 'content', left(
               'Question ' || n || ': ' || repeat(md5(n::text) || ' ', %(prompt)s / 33 + 1), %(prompt)s))),
           '{}', 0, 'complete', 3, 0, 3,
           encode(sha256(('task ' || n)::bytea), 'hex'), encode(sha256(('prompt ' || n)::bytea), 'hex'), now(), now()
    FROM generate_series(1, %(tasks)s) AS n
    """,
    """
    INSERT INTO annotator_response (task_id, position, external_id, text, model, metadata)
    SELECT id, position, '', left(repeat(md5(id || '-' || position) || ' ', %(response)s / 33 + 1), %(response)s),
           'model-' || position, '{}'
    FROM annotator_task, generate_series(0, 1) AS position ORDER BY id, position
    """,
    """
    INSERT INTO annotator_assignment (task_id, annotator_id, slot, state, response_order, leased_at, lease_expires_at)
    SELECT t.id, %(first)s + place, place + 1, 'submitted', '{0,1}', now(), now()
    FROM annotator_task t, generate_series(0, 2) AS place ORDER BY t.id, place
    """,
    """
    INSERT INTO annotator_annotation (assignment_id, revision, is_current, origin, justification, guideline_version,
                                      content_hash, submitted_at, project_id, annotator_id)
    SELECT s.id, 1, true, 'person', '', 0, s.id, now(), t.project_id, s.annotator_id
    FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id ORDER BY s.id
    """,
    # The first rater sees a level more than the others, so that the means are no whole numbers.
    """
    INSERT INTO annotator_rating (annotation_id, response_id, scores, checks, unsafe_category)
    SELECT a.id, r.id, jsonb_build_object(
               'helpfulness', r.id %% 4 + (s.slot = 1)::int, 'correctness', r.id / 2 %% 4 + (s.slot = 1)::int,
               'coherence', r.id / 3 %% 4 + (s.slot = 1)::int, 'complexity', r.id / 5 %% 4, 'verbosity', r.id / 7 %% 4),
           '[]', ''
    FROM annotator_annotation a
    JOIN annotator_assignment s ON s.id = a.assignment_id
    JOIN annotator_response r ON r.task_id = s.task_id ORDER BY a.id, r.id
    """,
    """
    INSERT INTO annotator_consensus (project_id, task_id, kept, annotators, drop_reason, computed_at, preference)
    SELECT a.project_id, s.task_id, array_agg(a.id ORDER BY a.id), 3, '', now(), s.task_id %% 3
    FROM annotator_annotation a JOIN annotator_assignment s ON s.id = a.assignment_id GROUP BY a.project_id, s.task_id
    """,
    """
    INSERT INTO annotator_label (project_id, response_id, source, scores, means, made_at)
    SELECT (SELECT project_id FROM annotator_task t WHERE t.id = task_id), id, 'consensus', jsonb_build_object(
               'helpfulness', id %% 4, 'correctness', id / 2 %% 4, 'coherence', id / 3 %% 4,
               'complexity', id / 5 %% 4, 'verbosity', id / 7 %% 4),
           jsonb_build_object(
               'helpfulness', (id %% 4 + 1 / 3.0)::float8, 'correctness', (id / 2 %% 4 + 1 / 3.0)::float8,
               'coherence', (id / 3 %% 4 + 1 / 3.0)::float8, 'complexity', (id / 5 %% 4)::float8,
               'verbosity', (id / 7 %% 4)::float8), now()
    FROM annotator_response ORDER BY id
    """,
)


def ask(project: int) -> None:
    """Asks for a snapshot of the project, as a request does."""
    from rewards.models import SnapshotJob

    SnapshotJob.objects.create(project_id=project)


def build() -> None:
    """Does what the worker does, in this process, and prints a row of the table."""
    import django

    django.setup()
    from rewards.models import SnapshotJob
    from rewards.snapshots import jobs

    before, start, busy, served = peak_memory(), time.perf_counter(), time.process_time(), server_seconds()
    assert jobs.build_waiting() == 1
    seconds, busy, served = time.perf_counter() - start, time.process_time() - busy, server_seconds() - served
    job = SnapshotJob.objects.latest("pk")
    assert job.snapshot, job.error
    size = sum(file.stat().st_size for file in job.snapshot.directory().iterdir())
    cells = (
        f"{seconds:.1f}",
        f"{busy:.1f}",
        f"{served:.1f}",
        f"{peak_memory():.0f}",
        f"{before:.0f}",
        f"{size / MEGABYTE:.0f}",
    )
    print(f"| {job.snapshot.labels:,} | {' | '.join(cells)} |")


def peak_memory() -> float:
    """Returns the most memory that this program has held so far, in megabytes."""
    status = Path("/proc/self/status")
    if not status.exists():
        return getrusage(RUSAGE_SELF).ru_maxrss / MEGABYTE
    # Linux counts in `ru_maxrss` what the process held before it became this program.
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / MEGABYTE


def server_seconds() -> float:
    """Returns the processor time of the connection's process in PostgreSQL so far; 0 where there is no /proc."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        stat = Path(f"/proc/{cursor.fetchone()[0]}/stat")
    if not stat.exists():
        return 0.0
    user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def main(arguments: Sequence[str]) -> None:
    with product.database():
        project = fill(int(arguments[0]) if arguments else LABELS)
        print("\n| " + " | ".join(COLUMNS) + " |\n" + len(COLUMNS) * "|---" + "|", flush=True)
        for _ in range(2):
            ask(project)
            subprocess.run([sys.executable, "-m", "benchmarks.bench_snapshot", BUILD], check=True)


if __name__ == "__main__":
    if sys.argv[1:] == [BUILD]:
        build()
    else:
        main(sys.argv[1:])
