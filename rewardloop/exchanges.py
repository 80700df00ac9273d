"""Talks with the server, written once for both clients: generators that yield steps and hear their results.

`client.py` and `async_client.py` take the steps over the network. Here are requests, repetition and waiting.
"""

import os
import random
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, TypeVar
from uuid import uuid4

import httpx

from rewardloop.calls import Call, json_bytes
from rewardloop.errors import NotSetUp, ServerAway, TookTooLong, error_in, retry_after
from rewardloop.version import VERSION

T = TypeVar("T")
API = "api/v1/"
KEY = "Idempotency-Key"
URL, TOKEN = "REWARDLOOP_URL", "REWARDLOOP_TOKEN"
LONGEST_PAUSE = 60.0
"""Seconds. A server that asks for more is not waited for."""


@dataclass(frozen=True)
class Send:
    """Sends a request. The result is the answer, read to its end, unless `opens`: then only an error is read."""

    request: httpx.Request
    opens: bool = False


@dataclass(frozen=True)
class Save:
    """Writes the rest of an open answer to a file and closes the answer; `told` hears the bytes of each piece."""

    response: httpx.Response
    file: IO[bytes]
    told: Callable[[int], object]


@dataclass(frozen=True)
class Pause:
    """Waits, in seconds."""

    seconds: float


Step = Send | Save | Pause
Talk = Generator[Step, Any, T]


@dataclass(frozen=True)
class Server:
    """Where the server is, who asks, and with how much patience: seconds for an answer, and further tries."""

    url: str
    token: str = ""
    timeout: float = 60.0
    retries: int = 4

    def request(self, call: Call[Any], *, query: str = "", headers: Mapping[str, str] | None = None) -> httpx.Request:
        """Returns the request of a call; `query` stands in place of the call's own."""
        # As raw text, because a cursor must go back as it came.
        url = httpx.URL(f"{self.base}{call.path}", params=call.query or None)
        url = url.copy_with(query=query.encode()) if query else url
        # httpx adds no Host to a request with a stream.
        sent = {"Host": url.netloc.decode(), "Accept": "application/json", "User-Agent": f"rewardloop/{VERSION}"}
        sent |= {**call.headers, **(headers or {})}
        if self.token:
            sent["Authorization"] = f"Token {self.token}"
        content = None
        if call.body is not None:
            content, sent["Content-Type"] = json_bytes(call.body), "application/json"
        return httpx.Request(
            call.method,
            url,
            headers=sent,
            content=content,
            stream=call.stream,
            extensions={"timeout": httpx.Timeout(self.timeout).as_dict()},
        )

    @property
    def base(self) -> str:
        return f"{self.url.rstrip('/').removesuffix(API.rstrip('/')).rstrip('/')}/{API}"


def server_from(url: str, token: str, *, timeout: float, retries: int) -> Server:
    """Returns the server, by the environment where nothing is given.

    Raises:
        NotSetUp: there is no address, or one that cannot be; or a token that cannot be.
    """
    if not url:
        # A token goes to no server that it was not meant for.
        url, token = os.environ.get(URL, ""), token or os.environ.get(TOKEN, "")
    elif not token and same_place(url, os.environ.get(URL, url)):
        token = os.environ.get(TOKEN, "")
    if not url:
        raise NotSetUp("Where is the server? Give its address as url, or set REWARDLOOP_URL.")
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as wrong:
        raise NotSetUp(f"{url!r} is no address: {wrong}. Write it like https://rate.example.org") from wrong
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise NotSetUp(f"{url!r} is no address of a server: write it like https://rate.example.org")
    if not (token.isascii() and token.isprintable()):
        raise NotSetUp("The token has characters that no token has: copy it once more, or log in again.")
    return Server(url, token, timeout=timeout, retries=retries)


def same_place(one: str, other: str) -> bool:
    """Whether two addresses are of one server."""
    return one.rstrip("/") == other.rstrip("/")


# Talks -----------------------------------------------------------------------------------------------------
def answered(
    server: Server,
    call: Call[Any],
    *,
    query: str = "",
    headers: Mapping[str, str] | None = None,
    opens: bool = False,
    accepted: Sequence[int] = (),
) -> Talk[httpx.Response]:
    """Returns the answer to a call, after further tries where that does no harm.

    `accepted` are statuses that are answers as well, though no successes.

    Raises:
        Refused, ServerAway, UnexpectedAnswer: what `error_in` makes of the last answer, or that none came.
    """
    left = server.retries
    headers = {**(headers or {}), **({KEY: str(uuid4())} if call.keyed else {})}
    while True:
        try:
            response: httpx.Response = yield Send(server.request(call, query=query, headers=headers), opens)
        except httpx.TransportError as lost:
            # Without a connection nothing has arrived, so nothing is done twice.
            if not left or not (may_arrive_twice(call) or isinstance(lost, httpx.ConnectError | httpx.ConnectTimeout)):
                raise ServerAway(f"{server.url} does not answer ({reason(lost)}). Is it the right address?") from lost
            wait = backoff(server.retries - left)
        else:
            if response.is_success or response.status_code in accepted:
                return response
            again = pause_before_again(call, response, otherwise=backoff(server.retries - left))
            if not left or again is None:
                raise error_in(response)
            wait = again
        yield Pause(wait)
        left -= 1


def may_arrive_twice(call: Call[Any]) -> bool:
    return call.keyed or call.repeatable


def reason(lost: httpx.TransportError) -> str:
    return str(lost) or type(lost).__name__


def backoff(tries: int) -> float:
    """Returns the seconds to wait: half a second, doubled each time, and not the same for everybody."""
    return float(0.5 * 2**tries * random.uniform(0.75, 1.25))


def pause_before_again(call: Call[Any], response: httpx.Response, *, otherwise: float) -> float | None:
    """Returns the seconds after which the call may be sent again, None if it may not."""
    asked = retry_after(response)
    if asked is not None and asked > LONGEST_PAUSE:
        return None
    # After 429 nothing has been looked at yet; 409 asks for patience where the same call is still being worked on.
    if asked is not None and (response.status_code == 429 or (response.status_code == 409 and call.keyed)):
        return asked
    if asked is not None and response.status_code == 503 and may_arrive_twice(call):
        return asked
    return otherwise if response.status_code in {502, 504} and may_arrive_twice(call) else None


def result(server: Server, call: Call[T]) -> Talk[T]:
    """Returns what the answer to a call becomes."""
    return call.parse((yield from answered(server, call)))


def finished(
    server: Server,
    call: Call[T],
    *,
    is_done: Callable[[T], bool],
    told: Callable[[T], object] | None = None,
    within: float | None = None,
) -> Talk[T]:
    """Asks until it is done; `told` hears each answer. Raises TookTooLong after `within` seconds."""
    began, pause = time.monotonic(), 0.2
    while True:
        state = yield from result(server, call)
        if told:
            told(state)
        if is_done(state):
            return state
        if within is not None and time.monotonic() - began + pause > within:
            raise TookTooLong(f"It is not done after {within:g} seconds. It goes on; ask for it again later.")
        yield Pause(pause)
        pause = min(pause * 1.5, 5.0)


@contextmanager
def breaks_off() -> Iterator[None]:
    """Raises ServerAway for a connection that is lost while an answer is read."""
    try:
        yield
    except httpx.TransportError as lost:
        raise ServerAway(f"The answer broke off ({reason(lost)}). Ask again.") from lost
