"""Health checks of the containers: `python -m annotator.launch.container_health` with the name of a process."""

import os
import socket
import sys
import time
import urllib.request

import psycopg
import redis
from django.conf import settings

from annotator.infrastructure.background import heartbeats

# Beat writes down what it sent every three minutes only.
_BEAT_SECONDS = 600


def main(process: str) -> int:
    checks = {"web": web_answers, "beat": beat_sends}
    try:
        alive = checks[process]() if process in checks else worker_beats(process)
    except (OSError, redis.RedisError, psycopg.Error) as error:
        print(f"{process}: {error}", file=sys.stderr)
        return 1
    return 0 if alive else 1


def web_answers() -> bool:
    with urllib.request.urlopen(f"http://127.0.0.1:{settings.PORT}/api/v1/health/live/", timeout=4) as answer:
        return bool(answer.status == 200)


def worker_beats(queue: str) -> bool:
    """Returns whether this machine's worker for the queue is alive and takes work; it beats while it trains too."""
    name = f"{queue}@{socket.gethostname()}"
    worker = next((worker for worker in heartbeats.workers() if worker.name == name), None)
    if worker and worker.unfit:
        print(heartbeats.idle_in_words(queue, worker.unfit), file=sys.stderr)
    return worker is not None and worker.alive and not worker.unfit


def beat_sends() -> bool:
    with psycopg.connect(os.environ["DATABASE_URL"]) as database:
        row = database.execute("SELECT max(last_run_at) FROM django_celery_beat_periodictask").fetchone()
    return bool(row and row[0] and time.time() - row[0].timestamp() < _BEAT_SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
