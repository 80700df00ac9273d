"""Label Studio beside the product: tasks in, annotations out and annotators at work, over HTTP.

LABEL_STUDIO names an environment with the packages label-studio and uwsgi, and LABEL_STUDIO_DATABASE_URL an account of
a PostgreSQL that has the extension pg_trgm, which our embedded one lacks; without it, Label Studio keeps its data in
SQLite, as it does by itself. It runs as its compose file has it, with uWSGI and two processes, but without nginx in
front of it, which would only cost it time.
"""

import http.client
import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from annotator.launch import child_processes
from benchmarks.peers import wait_until_it_answers
from benchmarks.resident import Memory, descendants, worked_seconds

PORT = 8931
ADDRESS = f"127.0.0.1:{PORT}"
KIND = f"--http {ADDRESS}".encode()
AT_ONCE = 20_000
"""Tasks in one request: all of a million in one body are more than it takes."""
PATIENCE_SECONDS = 300
LIMIT_SECONDS = 120
"""After so long its own settings end a request."""
RATERS = 3
_DATABASE = "label_studio"
_ACCOUNT = ("admin@bench.local", "a password of the bench", "0123456789abcdef0123456789abcdef01234567")
_ATTRIBUTES = ("helpfulness", "correctness", "coherence", "complexity", "verbosity")
_SERVED = (
    f"--http {ADDRESS} --module core.wsgi:application --master --processes 2 --threads 1 --enable-threads --lazy-apps "
    f"--single-interpreter --need-app --die-on-term --buffer-size 65535 --http-timeout {PATIENCE_SECONDS} "
    f"--harakiri {LIMIT_SECONDS} --post-buffering 4096 --thunder-lock --disable-logging"
)


def environment_folder() -> Path | None:
    named = os.environ.get("LABEL_STUDIO")
    return Path(named) if named else None


@contextmanager
def served(environment: Path, data: Path) -> Iterator[None]:
    """Runs Label Studio with a database and an account of its own."""
    (package,) = environment.glob("lib/python*/site-packages/label_studio")
    programs = environment / "bin"
    variables = _variables(data)
    if database := os.environ.get("LABEL_STUDIO_DATABASE_URL"):
        variables |= _new_database(database)
    name, password, token = _ACCOUNT
    account = ["--username", name, "--password", password, "--user-token", token, "--enable-legacy-api-token"]
    with (data / "label_studio.log").open("wb") as log:
        lines: list[list[str | Path]] = [
            [programs / "python", package / "manage.py", "migrate", "-v", "0"],
            [programs / "label-studio", "init", "-q", *account],
        ]
        for line in lines:
            subprocess.run(
                line, env=variables, cwd=package, stdout=log, stderr=log, stdin=subprocess.DEVNULL, check=True
            )
        started = subprocess.Popen(
            [programs / "uwsgi", *_SERVED.split()],
            env=variables,
            cwd=package,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=child_processes.die_with_parent(),
        )
        try:
            wait_until_it_answers(f"http://{ADDRESS}/health", seconds=PATIENCE_SECONDS)
            yield
        finally:
            child_processes.stop(started, patience=30)


def _variables(data: Path) -> dict[str, str]:
    """Returns the environment of its processes: none of ours, whose names some of its settings share."""
    off = dict.fromkeys(("COLLECT_ANALYTICS", "LATEST_VERSION_CHECK"), "0")
    off |= dict.fromkeys(("SENTRY_DSN", "FRONTEND_SENTRY_DSN"), "")
    return {
        **off,
        "PATH": os.environ["PATH"],
        "HOME": str(data),
        "LOG_LEVEL": "ERROR",
        "DJANGO_SETTINGS_MODULE": "core.settings.label_studio",
        "LABEL_STUDIO_BASE_DATA_DIR": str(data / "label_studio"),
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "DJANGO_DB": "sqlite",
    }


def _new_database(url: str) -> dict[str, str]:
    """Makes a database anew; returns the settings by which Label Studio uses it."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {_DATABASE} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {_DATABASE}")
    return _database_variables()


def _database_variables() -> dict[str, str]:
    if not (url := os.environ.get("LABEL_STUDIO_DATABASE_URL")):
        return {}
    server = urlsplit(url)
    return {
        "DJANGO_DB": "default",
        "POSTGRE_NAME": _DATABASE,
        "POSTGRE_USER": server.username or "postgres",
        "POSTGRE_PASSWORD": server.password or "",
        "POSTGRE_HOST": server.hostname or "127.0.0.1",
        "POSTGRE_PORT": str(server.port or 5432),
    }


def _database_processes() -> list[int]:
    """Returns the processes of its PostgreSQL, which runs on this machine; none for SQLite."""
    import psycopg

    if not (url := os.environ.get("LABEL_STUDIO_DATABASE_URL")):
        return []
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)::int").fetchone()
    assert row
    return [row[0], *descendants(row[0])]


# Calls -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    status: int
    content: bytes
    first_byte: float


def call(method: str, path: str, body: Any = None) -> Answer:
    """Sends one request, and reads the whole answer. The status is 0 where the server closed the connection instead."""
    connection = http.client.HTTPConnection(ADDRESS, timeout=PATIENCE_SECONDS)
    headers = {"Authorization": f"Token {_ACCOUNT[2]}", "Content-Type": "application/json"}
    start = time.perf_counter()
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        begun = answer.read(1)
        first = time.perf_counter() - start
        return Answer(answer.status, begun + answer.read(), first)
    except (http.client.HTTPException, OSError):
        return Answer(0, b"", time.perf_counter() - start)
    finally:
        connection.close()


# Annotators ------------------------------------------------------------------------------------------------

_ANNOTATORS = """
from organizations.models import Organization
from users.models import User
organization = Organization.objects.first()
for place in range({number}):
    user = User.objects.create_user(email=f"annotator-{{place}}@bench.local", password="{password}")
    organization.add_user(user)
    user.active_organization = organization
    user.save()
    print("token", user.auth_token.key)
"""


def make_annotators(environment: Path, data: Path, number: int) -> list[str]:
    """Makes so many accounts; returns their tokens. Its API has no call for it."""
    (package,) = environment.glob("lib/python*/site-packages/label_studio")
    done = subprocess.run(
        [environment / "bin/python", package / "manage.py", "shell", "-c",
         _ANNOTATORS.format(number=number, password=_ACCOUNT[1])],
        env=_variables(data) | _database_variables(),
        cwd=package,
        capture_output=True,
        text=True,
        check=True,
    )  # fmt: skip
    return [line.split()[1] for line in done.stdout.splitlines() if line.startswith("token ")]


def make_project(tasks: Sequence[Mapping[str, Any]], *, overlap: int) -> int:
    """Makes a project with these tasks of ours, each for so many annotators; returns its id."""
    project = _make_project(overlap)
    _import(project, [_task(task) for task in tasks])
    return project


# Tasks in, annotations out ---------------------------------------------------------------------------------


def measure_in(tasks: Sequence[Mapping[str, Any]]) -> None:
    """Prints how fast tasks of ours come in."""
    project = _make_project()
    rows = [_task(task) for task in tasks]
    worked = worked_seconds((KIND,), beside=_database_processes())
    memory, start = Memory(KIND), time.perf_counter()
    with memory.watched():
        taken = _import(project, rows)
    seconds = time.perf_counter() - start
    worked = worked_seconds((KIND,), beside=_database_processes()) - worked
    rate = f"{taken:,} of {len(rows):,} in {seconds:.1f} s, {taken / seconds:,.0f} a second, processor {worked:.1f} s"
    print(f"Label Studio, tasks in: {rate}, at most {memory.peak / 1e6:.0f} MB held.", flush=True)


def measure_out(tasks: Sequence[Mapping[str, Any]]) -> None:
    """Prints how fast the annotations of so many tasks leave, each with three."""
    project = _make_project()
    annotation = {"result": _results()}
    _import(project, [_task(task) | {"annotations": RATERS * [annotation]} for task in tasks])
    for kind in ("JSON", "CSV"):
        memory, start = Memory(KIND), time.perf_counter()
        with memory.watched():
            answer = call("GET", f"/api/projects/{project}/export?exportType={kind}")
        seconds = time.perf_counter() - start
        number = RATERS * len(tasks)
        head = f"Label Studio, {number:,} annotations out as {kind}: "
        if answer.status == 200:
            rate = f"{seconds:.1f} s, {number / seconds:,.0f} a second, first byte after {answer.first_byte:.1f} s, "
            print(
                head + rate + f"{len(answer.content) / 1e6:.0f} MB, at most {memory.peak / 1e6:.0f} MB held.",
                flush=True,
            )
        else:
            print(f"{head}none after {seconds:.0f} s (status {answer.status}).", flush=True)


def _make_project(overlap: int = 1) -> int:
    rows = "".join(
        f'<Text name="response_{n}" value="$response_{n}"/>'
        + "".join(f'<Rating name="{key}_{n}" toName="response_{n}" maxRating="5"/>' for key in _ATTRIBUTES)
        for n in (1, 2)
    )
    config = f'<View><Text name="prompt" value="$prompt"/>{rows}</View>'
    made = call("POST", "/api/projects/", {"title": "bench", "label_config": config, "maximum_annotations": overlap})
    assert made.status == 201, made.content[:500]
    return int(json.loads(made.content)["id"])


def _import(project: int, rows: Sequence[Mapping[str, Any]]) -> int:
    taken = 0
    for start in range(0, len(rows), AT_ONCE):
        answer = call("POST", f"/api/projects/{project}/import", rows[start : start + AT_ONCE])
        assert answer.status == 201, (answer.status, answer.content[:500])
        taken += json.loads(answer.content)["task_count"]
    return taken


def _task(task: Mapping[str, Any]) -> dict[str, Any]:
    (prompt,), (first, second) = task["messages"], task["responses"]
    return {"data": {"prompt": prompt["content"], "response_1": first["text"], "response_2": second["text"]}}


def _results() -> list[dict[str, Any]]:
    return [
        {"from_name": f"{key}_{n}", "to_name": f"response_{n}", "type": "rating", "value": {"rating": place % 5 + 1}}
        for n in (1, 2)
        for place, key in enumerate(_ATTRIBUTES)
    ]
