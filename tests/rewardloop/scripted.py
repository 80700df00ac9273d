"""A server that answers by a script, for what a real one does only on bad days."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx

Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]
T = TypeVar("T")
URL = "https://rate.example"


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs it in a thread: Playwright leaves an event loop running in the one of the tests."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


@dataclass
class Script:
    """Gives its answers in turn, the last one for ever, and remembers the requests."""

    answers: list[Answer]
    requests: list[httpx.Request] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(request.read())
        return self._next(request)

    async def answer_async(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(await request.aread())
        return self._next(request)

    def _next(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else answer(request)


class BreaksOff(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body whose connection is lost behind some bytes."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self._content
        raise httpx.ReadError("connection reset")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece


def refusal(status: int, detail: str = "No.", code: str = "no", **headers: str) -> httpx.Response:
    body = {"detail": detail, "code": code, "errors": {"name": [detail]}}
    return httpx.Response(status, json=body, headers={name.replace("_", "-"): value for name, value in headers.items()})
