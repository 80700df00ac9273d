"""Data sets of the Hub: a small one stands in for it, which answers as the Hub does."""

import io
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotator.models import Project, Task
from tests.builders import json_lines, task_row

FILES = {
    "README.md": b"# Rows",
    "preference/train.jsonl": json_lines(task_row("t-1")).getvalue(),
    "edit/train.jsonl": json_lines(task_row("t-2")).getvalue(),
}
SHA = "0" * 40


class Hub(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        info = {"id": "ours/rows", "sha": SHA, "siblings": [{"rfilename": n, "size": len(c)} for n, c in FILES.items()]}
        name = self.path.partition(f"/resolve/{SHA}/")[2]
        if self.path.startswith("/api/datasets/ours/rows"):
            self._answer(200, json.dumps(info).encode())
        elif name in FILES:
            self._answer(200, FILES[name])
        else:
            self._answer(404, b"")

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{hash(body)}"')
        self.send_header("X-Repo-Commit", SHA)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield
        server.shutdown()


def imported(*names: str) -> str:
    out = io.StringIO()
    call_command("import_tasks", "talk", *names, stdout=out)
    return out.getvalue()


@pytest.mark.usefixtures("hub")
def test_every_file_of_rows_of_a_data_set_goes_in(project: Project) -> None:
    assert imported("hub:ours/rows").endswith("2 tasks created, 0 existing, 0 rows rejected\n")


@pytest.mark.usefixtures("hub", "project")
def test_a_folder_of_a_data_set_goes_in_alone() -> None:
    imported("hub:ours/rows/preference")
    assert [task.external_id for task in Task.objects.all()] == ["t-1"]


@pytest.mark.usefixtures("hub", "project")
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("hub:rows", "names no data set: write hub:OWNER/NAME"),
        ("hub:ours/gone", "hub:ours/gone cannot be read from the Hub: "),
        ("hub:ours/rows/nothing", "holds no file of rows"),
    ],
)
def test_what_the_hub_does_not_have_is_said(name: str, error: str) -> None:
    with pytest.raises(CommandError, match=error):
        imported(name)


@pytest.mark.usefixtures("project")
def test_a_hub_out_of_reach_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(CommandError, match="hub:ours/rows cannot be read from the Hub"):
        imported("hub:ours/rows")
