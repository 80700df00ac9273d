"""A server that answers by a script, for what a real one does only on bad days."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import httpx

Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]
URL = "https://rate.example"


@dataclass
class Script:
    """Gives its answers in turn, the last one for ever, and remembers the requests."""

    answers: list[Answer]
    requests: list[httpx.Request] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(request.read())
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else answer(request)


class BreaksOff(httpx.SyncByteStream):
    """A body whose connection is lost behind some bytes."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self._content
        raise httpx.ReadError("connection reset")


def refusal(status: int, detail: str = "No.", code: str = "no", **headers: str) -> httpx.Response:
    body = {"detail": detail, "code": code, "errors": {"name": [detail]}}
    return httpx.Response(status, json=body, headers={name.replace("_", "-"): value for name, value in headers.items()})
