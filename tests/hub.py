"""A small server that answers as the Hugging Face Hub does, with one data set of two files of rows."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

from tests.builders import json_lines, task_row

FILES = {
    "README.md": b"# Rows",
    "preference/train.jsonl": json_lines(task_row("t-1")).getvalue(),
    "edit/train.jsonl": json_lines(task_row("t-2")).getvalue(),
}
SHA = "0" * 40


class Hub(BaseHTTPRequestHandler):
    tokens: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.tokens.append(self.headers.get("Authorization"))
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


@contextmanager
def served_hub() -> Iterator[str]:
    """Its address, for HF_ENDPOINT."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        Hub.tokens.clear()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
