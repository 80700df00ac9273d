"""Label Studio and Potato, each served as its manual has it, with annotators who do the work of `benchmarks.load`.

`python -m benchmarks.peers label-studio|potato` is the program of these annotators: they ask for a task, rate both of
its responses by five attributes, submit, and ask for the next task in a call of its own, as neither product gives it
with the answer to a submission. `bench_peers` says how to name the environments.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from annotator.launch import child_processes
from benchmarks.load import ATTRIBUTES, PAUSE_SECONDS, Annotator, main, near
from benchmarks.measuring import task_row
from benchmarks.processes import Memory, descendants, worked_seconds

PORTS = {"label-studio": 8931, "potato": 8932}
PATIENCE_SECONDS = 300
AT_ONCE = 20_000
"""Tasks in one request: all of a million in one body are more than Label Studio takes."""
RATERS = 3
_NAMES = [f"{key}_{number}" for number in (1, 2) for key in ATTRIBUTES]
_DATABASE = "label_studio"
_ACCOUNT = ("admin@bench.local", "a password of the bench", "0123456789abcdef0123456789abcdef01234567")
# As its compose file has it, but without nginx in front of it, which would only cost it time. Its own settings end a
# request after 120 seconds.
_UWSGI = (
    f"--http 127.0.0.1:{PORTS['label-studio']} --module core.wsgi:application --master --processes 2 --threads 1 "
    "--enable-threads --lazy-apps --single-interpreter --need-app --die-on-term --buffer-size 65535 "
    f"--http-timeout {PATIENCE_SECONDS} --harakiri 120 --post-buffering 4096 --thunder-lock --disable-logging"
)
_KIND = _UWSGI[: _UWSGI.index(" --module")].encode()
# One process: Potato keeps its state in memory, and refuses more.
_GUNICORN = f"-m gunicorn --bind 127.0.0.1:{PORTS['potato']} --workers 1 --threads 8 --timeout 120"
_ITEM = re.compile(rb'id="instance_id"[^>]*value="([^"]*)"')
"""Where a page of Potato names the item that it shows."""


@contextmanager
def running(peer: str, line: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path) -> Iterator[None]:
    address = f"http://127.0.0.1:{PORTS[peer]}/"
    with log.open("ab") as out:
        keep = child_processes.die_with_parent()
        started = subprocess.Popen(
            line, env=env, cwd=cwd, stdout=out, stderr=out, start_new_session=True, preexec_fn=keep
        )
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < deadline:
                with suppress(OSError):
                    urllib.request.urlopen(address, timeout=PATIENCE_SECONDS).close()
                    break
                time.sleep(0.2)
            else:
                raise TimeoutError(f"{address} does not answer")
            yield
        finally:
            child_processes.stop(started, patience=30)


def call(peer: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes, float, list[str]]:
    """Sends a request; returns the status, 0 where the server closed the connection instead, the content, the seconds
    to its first byte, and the cookies.
    """
    connection = HTTPConnection("127.0.0.1", PORTS[peer], timeout=PATIENCE_SECONDS)
    start = time.perf_counter()
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        begun = answer.read(1)
        first = time.perf_counter() - start
        return answer.status, begun + answer.read(), first, answer.headers.get_all("Set-Cookie", [])
    except (HTTPException, OSError):
        return 0, b"", time.perf_counter() - start, []
    finally:
        connection.close()


# Label Studio ----------------------------------------------------------------------------------------------


@contextmanager
def label_studio(environment: Path, data: Path) -> Iterator[None]:
    """Runs Label Studio with a database and an account of its own."""
    if url := os.environ.get("LABEL_STUDIO_DATABASE_URL"):
        import psycopg

        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {_DATABASE} WITH (FORCE)")
            connection.execute(f"CREATE DATABASE {_DATABASE}")
    name, password, token = _ACCOUNT
    account = ["--username", name, "--password", password, "--user-token", token, "--enable-legacy-api-token"]
    _manage(environment, data, "python", "manage.py", "migrate", "-v", "0")
    _manage(environment, data, "label-studio", "init", "-q", *account)
    (package,) = environment.glob("lib/python*/site-packages/label_studio")
    line = [str(environment / "bin/uwsgi"), *_UWSGI.split()]
    with running("label-studio", line, env=_variables(data), cwd=package, log=data / "label_studio.log"):
        yield


def _manage(environment: Path, data: Path, program: str, *words: str) -> str:
    (package,) = environment.glob("lib/python*/site-packages/label_studio")
    line = [str(environment / "bin" / program), *words]
    taken: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True, "check": True}
    return str(subprocess.run(line, env=_variables(data), cwd=package, **taken).stdout)


def _variables(data: Path) -> dict[str, str]:
    """Returns the environment of its processes: none of ours, whose names some of its settings share."""
    off = dict.fromkeys(("COLLECT_ANALYTICS", "LATEST_VERSION_CHECK"), "0")
    off |= dict.fromkeys(("SENTRY_DSN", "FRONTEND_SENTRY_DSN"), "")
    own = {"PATH": os.environ["PATH"], "HOME": str(data), "LOG_LEVEL": "ERROR"}
    own |= {"DJANGO_SETTINGS_MODULE": "core.settings.label_studio", "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true"}
    own |= {"LABEL_STUDIO_BASE_DATA_DIR": str(data / "label_studio"), "DJANGO_DB": "sqlite"}
    if url := os.environ.get("LABEL_STUDIO_DATABASE_URL"):
        server = urlsplit(url)
        own |= {"DJANGO_DB": "default", "POSTGRE_NAME": _DATABASE, "POSTGRE_USER": server.username or "postgres"}
        own |= {"POSTGRE_PASSWORD": server.password or "", "POSTGRE_HOST": server.hostname or "127.0.0.1"}
        own["POSTGRE_PORT"] = str(server.port or 5432)
    return off | own


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
"""Its API has no call that makes accounts."""


def make_annotators(environment: Path, data: Path, number: int) -> list[str]:
    """Makes so many accounts in Label Studio; returns their tokens."""
    program = _ANNOTATORS.format(number=number, password=_ACCOUNT[1])
    said = _manage(environment, data, "python", "manage.py", "shell", "-c", program).splitlines()
    return [line.split()[1] for line in said if line.startswith("token ")]


def make_project(rows: Sequence[Mapping[str, Any]], *, overlap: int = 1, **fields: Any) -> tuple[int, int]:
    """Makes a project with tasks of ours and these fields, each for so many annotators; answers its id and number."""
    parts = (
        f'<Text name="response_{n}" value="$response_{n}"/>'
        + "".join(f'<Rating name="{key}_{n}" toName="response_{n}" maxRating="5"/>' for key in ATTRIBUTES)
        for n in (1, 2)
    )
    config = f'<View><Text name="prompt" value="$prompt"/>{"".join(parts)}</View>'
    made = _posted("/api/projects/", {"title": "bench", "label_config": config, "maximum_annotations": overlap})
    taken, tasks = 0, []
    for row in rows:
        (prompt,), (first, second) = row["messages"], row["responses"]
        texts = {"prompt": prompt["content"], "response_1": first["text"], "response_2": second["text"]}
        tasks.append({"data": texts, **fields})
    for start in range(0, len(tasks), AT_ONCE):
        taken += _posted(f"/api/projects/{made['id']}/import", tasks[start : start + AT_ONCE])["task_count"]
    return int(made["id"]), taken


def _posted(path: str, body: Any) -> Any:
    headers = {"Authorization": f"Token {_ACCOUNT[2]}", "Content-Type": "application/json"}
    status, content, _first, _cookies = call("label-studio", "POST", path, json.dumps(body), **headers)
    assert status == 201, (status, content[:500])
    return json.loads(content)


def _rated(levels: Iterator[int]) -> list[dict[str, Any]]:
    return [
        {"from_name": name, "to_name": f"response_{name[-1]}", "type": "rating", "value": {"rating": level}}
        for name, level in zip(_NAMES, levels, strict=False)
    ]


def measure_label_studio(environment: Path, folder: Path, *, taken: int, given: Sequence[int]) -> None:
    """Prints how fast it gives back the annotations of so many tasks, three of each, and takes so many tasks."""
    data = folder / "peer"
    data.mkdir(exist_ok=True)
    with label_studio(environment, data):
        for number in given:
            annotations = RATERS * [{"result": _rated(iter(range(1, 6)))}]
            rows = [task_row(place, prompt=170, response=130) for place in range(number)]
            project, _ = make_project(rows, annotations=annotations)
            for kind in ("JSON", "CSV"):
                memory, start = Memory(_KIND), time.perf_counter()
                path, token = f"/api/projects/{project}/export?exportType={kind}", f"Token {_ACCOUNT[2]}"
                with memory.watched():
                    status, content, first, _ = call("label-studio", "GET", path, Authorization=token)
                seconds = time.perf_counter() - start
                rate = f"status {status}, {seconds:.1f} s, {RATERS * number / seconds:,.0f} a second, first byte after"
                sizes = f"{len(content) / 1e6:.0f} MB, at most {memory.peak / 1e6:.0f} MB held"
                print(f"Label Studio, {RATERS * number:,} out as {kind}: {rate} {first:.1f} s, {sizes}.", flush=True)
        rows = [task_row(place, prompt=170, response=130) for place in range(taken)]
        beside, memory, start = _database_processes(), Memory(_KIND), time.perf_counter()
        worked = worked_seconds(_KIND, beside=beside)
        with memory.watched():
            _, number = make_project(rows)
        seconds, worked = time.perf_counter() - start, worked_seconds(_KIND, beside=beside) - worked
        rate = f"{number:,} of {taken:,} in {seconds:.1f} s, {number / seconds:,.0f} a second, processor {worked:.1f} s"
        print(f"Label Studio, tasks in: {rate}, at most {memory.peak / 1e6:.0f} MB held.", flush=True)


def _database_processes() -> list[int]:
    """Returns the processes of its PostgreSQL, which runs on this machine; none for SQLite."""
    if not (url := os.environ.get("LABEL_STUDIO_DATABASE_URL")):
        return []
    import psycopg

    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)::int").fetchone()
    assert row
    return [row[0], *descendants(row[0])]


# Potato ----------------------------------------------------------------------------------------------------


@contextmanager
def potato(environment: Path, data: Path, rows: Sequence[Mapping[str, Any]], *, overlap: int) -> Iterator[None]:
    """Serves a project with these tasks of ours, each for so many annotators."""
    scale = {"annotation_type": "likert", "min_label": "low", "max_label": "high", "size": 5}
    settings = {
        "annotation_task_name": "bench", "task_dir": ".", "output_annotation_dir": "annotation_output/",
        "output_annotation_format": "json", "port": PORTS["potato"], "site_dir": "default",
        "alert_time_each_instance": 10_000_000, "data_files": ["data/items.jsonl"],
        "item_properties": {"id_key": "id", "text_key": "text"}, "user_config": {"allow_all_users": True, "users": []},
        "require_password": False, "assignment_strategy": "random", "max_annotations_per_user": -1,
        "num_annotators_per_item": overlap,
        "annotation_schemes": [{**scale, "name": name, "description": name} for name in _NAMES],
    }  # fmt: skip
    (data / "data").mkdir(parents=True)
    (data / "config.yaml").write_text(json.dumps(settings))  # JSON is YAML
    with (data / "data/items.jsonl").open("w") as items:
        for row in rows:
            texts = [*(turn["content"] for turn in row["messages"]), *(one["text"] for one in row["responses"])]
            items.write(json.dumps({"id": row["id"], "text": "\n\n".join(texts)}) + "\n")
    line = [str(environment / "bin/python"), *_GUNICORN.split(), "potato.flask_server:create_app('config.yaml')"]
    env = {"PATH": os.environ["PATH"], "HOME": str(data), "POTATO_SECRET_KEY": "bench-" * 8}
    with running("potato", line, env=env, cwd=data, log=data / "potato.log"):
        yield


def log_in(number: int) -> list[str]:
    """Logs so many annotators in to Potato; returns their session cookies."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answers = (call("potato", "POST", "/auth", f"email=annotator-{place}&pass=", **form) for place in range(number))
    cookies = (cookie for *_, of_one in answers for cookie in of_one)
    return [one.split(";")[0].removeprefix("session=") for one in cookies if one.startswith("session=")]


# Annotators ------------------------------------------------------------------------------------------------


class InLabelStudio(Annotator):
    """Connects for each call, as uWSGI's own HTTP server ends every connection after its answer."""

    async def exchange(self, name: str, method: str, path: str, body: str = "") -> bytes | None:
        if self.connection:
            self.connection.answer.cancel()
            self.connection.transport.close()
            self.connection = None
        return await super().exchange(name, method, path, body)

    async def work(self, until: float) -> None:
        while time.perf_counter() < until:
            task = await self.call("next", "GET", f"/api/projects/{self.plan.project}/next")
            if task is None:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            results = _rated(near(task["id"] % 5, self.dice) + 1 for _ in _NAMES)
            path = f"/api/tasks/{task['id']}/annotations/?project={self.plan.project}"
            answer = await self.call("submit", "POST", path, json.dumps({"result": results, "lead_time": 30.0}))
            self.tally.stored += answer is not None


class InPotato(Annotator):
    """Goes on as the page's script does, without loading the page a second time after each step."""

    def identity(self, token: str) -> str:
        return f"Cookie: session={token}"

    async def work(self, until: float) -> None:
        item = await self._shown("GET", "/annotate")
        while time.perf_counter() < until:
            if item is None:
                self.tally.empty += 1
                await asyncio.sleep(PAUSE_SECONDS)
                item = await self._shown("GET", "/annotate")
                continue
            marks = {f"{name}:{near(2, self.dice) + 1}": "on" for name in _NAMES}
            body = json.dumps({"instance_id": item, "annotations": marks, "span_annotations": []})
            answer = await self.call("submit", "POST", "/updateinstance", body)
            self.tally.stored += bool(answer and answer.get("status") == "success")
            step = json.dumps({"action": "next_instance", "instance_id": item})
            item = await self._shown("POST", "/annotate", step)

    async def _shown(self, method: str, path: str, body: str = "") -> str | None:
        page = await self.exchange("next", method, path, body)
        found = _ITEM.search(page or b"")
        return found.group(1).decode() if found else None


if __name__ == "__main__":
    main({"label-studio": InLabelStudio, "potato": InPotato}[sys.argv[1]])
