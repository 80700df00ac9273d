"""Measures the building of a snapshot of a million labels: seconds, processor time, and the peak of the memory.

`python -m benchmarks.bench_snapshot [LABELS]`. Each task has a prompt of 300 characters and two responses of 500, which
three people have rated, so the labels are means and the ratings are written too. The worker's function runs twice, each
time in a process of its own: for labels that are new, and for the same labels again.
"""

import os
import subprocess
import sys
import time

from benchmarks import product
from benchmarks.measuring import heading, row
from benchmarks.processes import status, worked_seconds

BUILD = "build"
"""The argument of the process that builds."""


def build() -> None:
    """Does what the worker does, in this process, and prints a row of the table."""
    import django

    django.setup()
    from django.db import connection

    from rewards.models import SnapshotJob
    from rewards.snapshots import snapshot_jobs

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (backend,) = cursor.fetchone()
    before, start, busy = status(os.getpid(), "VmHWM"), time.perf_counter(), time.process_time()
    served = worked_seconds(beside=[backend])
    assert snapshot_jobs.build_waiting() == 1
    times = (time.perf_counter() - start, time.process_time() - busy, worked_seconds(beside=[backend]) - served)
    job = SnapshotJob.objects.latest("pk")
    assert job.snapshot, job.error
    size = sum(file.stat().st_size for file in job.snapshot.directory().iterdir())
    bytes_held = (status(os.getpid(), "VmHWM"), before, size)
    row(f"{job.snapshot.labels:,}", *(f"{one:.1f}" for one in times), *(f"{one / 1e6:.0f}" for one in bytes_held))


def main(labels: int) -> None:
    with product.database():
        from benchmarks import filling
        from rewards.models import SnapshotJob

        crew = filling.make_crew(3)
        project = filling.make_project("bench", crew=crew, tasks=labels // 2, characters=500)
        filling.make_ratings(project, crew=crew)
        times = ("seconds", "processor, worker", "processor, PostgreSQL")
        heading("labels", *times, "peak memory, MB", "memory before, MB", "files, MB")
        for _ in range(2):
            SnapshotJob.objects.create(project=project)  # as a request does
            subprocess.run([sys.executable, "-m", "benchmarks.bench_snapshot", BUILD], check=True)


if __name__ == "__main__":
    if sys.argv[1:] == [BUILD]:
        build()
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
