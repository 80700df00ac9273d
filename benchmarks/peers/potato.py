"""Potato beside the product: a project of its own, served as its manual has it, and annotators who have logged in.

POTATO names an environment with the packages potato-annotation and gunicorn. One process serves it: it keeps its state
in memory, and refuses more.
"""

import http.client
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from annotator.launch import child_processes
from benchmarks.load import ATTRIBUTES
from benchmarks.peers import wait_until_it_answers

PORT = 8932
ADDRESS = f"127.0.0.1:{PORT}"
THREADS = 8
PATIENCE_SECONDS = 120


@contextmanager
def served(environment: Path, data: Path, tasks: Sequence[Mapping[str, Any]], *, overlap: int) -> Iterator[None]:
    """Serves a project with these tasks of ours, each for so many annotators."""
    (data / "data").mkdir(parents=True)
    (data / "data/items.jsonl").write_text("".join(json.dumps(_item(task)) + "\n" for task in tasks))
    (data / "config.yaml").write_text(json.dumps(_settings(overlap)))  # JSON is YAML
    line = f"gunicorn --bind {ADDRESS} --workers 1 --threads {THREADS} --timeout {PATIENCE_SECONDS}"
    with (data / "potato.log").open("wb") as log:
        started = subprocess.Popen(
            [environment / "bin/python", "-m", *line.split(), "potato.flask_server:create_app('config.yaml')"],
            env={"PATH": os.environ["PATH"], "HOME": str(data), "POTATO_SECRET_KEY": "bench-" * 8},
            cwd=data,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=child_processes.die_with_parent(),
        )
        try:
            wait_until_it_answers(f"http://{ADDRESS}/", seconds=PATIENCE_SECONDS)
            yield
        finally:
            child_processes.stop(started, patience=30)


def _item(task: Mapping[str, Any]) -> dict[str, str]:
    (prompt,), responses = task["messages"], task["responses"]
    return {"id": task["id"], "text": "\n\n".join([prompt["content"], *(one["text"] for one in responses)])}


def _settings(overlap: int) -> dict[str, Any]:
    scale = {"annotation_type": "likert", "min_label": "low", "max_label": "high", "size": 5}
    asked = [{**scale, "name": f"{key}_{n}", "description": f"{key} {n}"} for n in (1, 2) for key in ATTRIBUTES]
    return {
        "annotation_task_name": "bench",
        "task_dir": ".",
        "output_annotation_dir": "annotation_output/",
        "output_annotation_format": "json",
        "port": PORT,
        "site_dir": "default",
        "alert_time_each_instance": 10_000_000,
        "data_files": ["data/items.jsonl"],
        "item_properties": {"id_key": "id", "text_key": "text"},
        "user_config": {"allow_all_users": True, "users": []},
        "require_password": False,
        "assignment_strategy": "random",
        "max_annotations_per_user": -1,
        "num_annotators_per_item": overlap,
        "annotation_schemes": asked,
    }


def log_in(number: int) -> list[str]:
    """Logs so many annotators in; returns their session cookies."""
    return [_cookie(f"annotator-{place}") for place in range(number)]


def _cookie(name: str) -> str:
    connection = http.client.HTTPConnection(ADDRESS, timeout=PATIENCE_SECONDS)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", "/auth", f"email={name}&pass=", form)
    answer = connection.getresponse()
    answer.read()
    cookies = answer.headers.get_all("Set-Cookie", [])
    connection.close()
    return next(one.split(";")[0].removeprefix("session=") for one in cookies if one.startswith("session="))
