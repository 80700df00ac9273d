"""The connection to a server: requests and their repetition, waiting, lists and rows."""

import json
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, is_dataclass
from datetime import datetime
from functools import cache
from time import monotonic, sleep
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import httpx

from rewardloop.answers import ExportJob, ImportJob, Lease, NextTask, NothingToRate, Release
from rewardloop.errors import (
    NotSetUp,
    ServerAway,
    TookTooLong,
    UnexpectedAnswer,
    WorkFailed,
    error_in,
    retry_after,
)
from rewardloop.version import VERSION

T = TypeVar("T")
API = "api/v1/"
URL, TOKEN = "REWARDLOOP_URL", "REWARDLOOP_TOKEN"
PAGE_SIZE = 200
LONGEST_PAUSE = 60.0
"""Seconds. A server that asks for more is not waited for."""
WRITTEN = ("done", "failed", "expired", "withdrawn")
"""The states in which a file of the server's is not being written any more."""
_hints: Callable[[type], dict[str, Any]] = cache(get_type_hints)


@dataclass(frozen=True)
class Call:
    """One call below `/api/v1/`. Of its query, what is None, False or empty is left out.

    `repeatable` ones do no harm when they arrive twice: what would make something twice carries a `request_id`, by
    which the server knows it again.
    """

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    stream: httpx.SyncByteStream | None = None
    """A body that is read while it is sent, in place of `body`."""
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True


class Connection:
    """Where the server is, who asks, and with how much patience: seconds for an answer, and further tries.

    Raises:
        NotSetUp: neither `url` nor the environment has an address, or it cannot be one; or a token that cannot be.
    """

    def __init__(
        self, url: str, token: str, *, timeout: float, retries: int, transport: httpx.BaseTransport | None
    ) -> None:
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
        self.url, self.token, self.timeout, self.retries = url, token, timeout, retries
        self.http = httpx.Client(transport=transport)

    def answer(
        self,
        call: Call,
        *,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        opens: bool = False,
        accepted: Sequence[int] = (),
    ) -> httpx.Response:
        """Returns the answer to a call, after further tries where that does no harm.

        `query` stands in place of the call's own. The answer is read to its end, unless `opens`: then only an error is
        read. `accepted` are statuses that are answers as well, though no successes.

        Raises:
            Refused, ServerAway, UnexpectedAnswer: what `error_in` makes of the last answer, or that none came.
        """
        tries = 0
        while True:
            try:
                response = self.http.send(self._request(call, query=query, headers=headers or {}), stream=opens)
                if opens and not response.is_success:
                    response.read()
            except httpx.TransportError as lost:
                # Without a connection nothing has arrived, so nothing is done twice.
                again = call.repeatable or isinstance(lost, httpx.ConnectError | httpx.ConnectTimeout)
                if tries >= self.retries or not again:
                    raise ServerAway(f"{self.url} does not answer ({reason(lost)}). Is it the right address?") from lost
                pause = backoff(tries)
            else:
                if response.is_success or response.status_code in accepted:
                    return response
                asked = _pause_before_again(call, response, otherwise=backoff(tries))
                if tries >= self.retries or asked is None:
                    raise error_in(response)
                pause = asked
            sleep(pause)
            tries += 1

    def _request(self, call: Call, *, query: str, headers: Mapping[str, str]) -> httpx.Request:
        base = self.url.rstrip("/").removesuffix(API.rstrip("/")).rstrip("/")
        given = {name: text_of(value) for name, value in call.query.items() if value is not None and value is not False}
        asked = {name: value for name, value in given.items() if value}
        url = httpx.URL(f"{base}/{API}{call.path}", params=asked or None)
        # As raw text, because a cursor must go back as it came.
        url = url.copy_with(query=query.encode()) if query else url
        # httpx adds no Host to a request with a stream.
        sent = {"Host": url.netloc.decode(), "Accept": "application/json", "User-Agent": f"rewardloop/{VERSION}"}
        sent |= {**call.headers, **headers}
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

    # What answers become -------------------------------------------------------------------------------------

    def json(self, call: Call, *, query: str = "") -> Any:
        """Returns the JSON of an answer. Raises UnexpectedAnswer for one that is none."""
        response = self.answer(call, query=query)
        try:
            return response.json()
        except ValueError as other:
            raise UnexpectedAnswer(f"{response.request.url} answered no JSON. Is it Rewardloop's address?") from other

    def one(self, kind: type[T], call: Call) -> T:
        """Returns the object that a call answers."""
        return _read(kind, self.json(call))

    def listed(self, kind: type[T], call: Call) -> tuple[T, ...]:
        """Returns the objects of a list that has no pages."""
        return _list_of(kind, self.json(call))

    def pages(self, kind: type[T], call: Call) -> Iterator[T]:
        """Yields the objects of a list, page by page."""
        call = Call(call.method, call.path, {**call.query, "page_size": PAGE_SIZE})
        query = ""
        while True:
            page = self.json(call, query=query)
            if not isinstance(page, dict):
                raise UnexpectedAnswer("The server answered no page of a list. Is it a Rewardloop of this version?")
            yield from _list_of(kind, page.get("results"))
            # The query alone: wherever the address leads, the token goes to the server that was named.
            if not (query := httpx.URL(page.get("next") or "").query.decode()):
                return

    def rows(self, call: Call) -> Iterator[dict[str, Any]]:
        """Yields rows of JSON as they arrive. Only a line feed ends a line, as in JSON lines."""
        rest = b""
        with closing(self.answer(call, opens=True)) as response:
            try:
                for piece in response.iter_bytes():
                    *lines, rest = (rest + piece).split(b"\n")
                    yield from (_row_of(line) for line in lines if line.strip())
            except httpx.TransportError as lost:
                raise ServerAway(f"The answer broke off ({reason(lost)}). Ask again.") from lost
        if rest.strip():
            yield _row_of(rest)

    def finished(
        self,
        kind: type[T],
        call: Call,
        *,
        is_done: Callable[[T], bool],
        on_progress: Callable[[T], object] | None = None,
        timeout: float | None = None,
    ) -> T:
        """Asks until it is done; `on_progress` hears each answer. Raises TookTooLong after `timeout` seconds."""
        began, pause = monotonic(), 0.2
        while not is_done(state := self.one(kind, call)):
            if on_progress:
                on_progress(state)
            if timeout is not None and monotonic() - began + pause > timeout:
                raise TookTooLong(f"It is not done after {timeout:g} seconds. It goes on; ask for it again later.")
            sleep(pause)
            pause = min(pause * 1.5, 5.0)
        if on_progress:
            on_progress(state)
        return state


def _pause_before_again(call: Call, response: httpx.Response, *, otherwise: float) -> float | None:
    """Returns the seconds after which the call may be sent again, None if it may not."""
    asked, status = retry_after(response), response.status_code
    if asked is None:
        return otherwise if status in {502, 504} and call.repeatable else None
    # After 429 nothing has been looked at yet.
    patience = status == 429 or (status in {502, 503, 504} and call.repeatable)
    return asked if patience and asked <= LONGEST_PAUSE else None


def backoff(tries: int) -> float:
    """Returns the seconds to wait: half a second, doubled each time, and not the same for everybody."""
    return float(0.5 * 2**tries * random.uniform(0.75, 1.25))


def reason(lost: httpx.TransportError) -> str:
    return str(lost) or type(lost).__name__


def same_place(one: str, other: str) -> bool:
    """Whether two addresses are of one server."""
    return one.rstrip("/") == other.rstrip("/")


def require_done(work: ImportJob | ExportJob | Release, what: str) -> None:
    """Raises WorkFailed for work that is not done."""
    if work.state != "done":
        raise WorkFailed(f"{what} is {work.state}. {work.error}".rstrip())


def _read(kind: type[T], data: Any) -> T:
    """Returns the dataclass from an object of an answer. Raises UnexpectedAnswer for anything else."""
    if not isinstance(data, dict):
        raise UnexpectedAnswer(f"The server answered no {kind.__name__}. Is it a Rewardloop of this version?")
    hints = _hints(kind)
    values = {name: _value(hints[name], data[name]) for name in hints.keys() & data.keys()}
    try:
        return kind(**(values | {"raw": data} if "raw" in hints else values))
    except TypeError as missing:
        raise UnexpectedAnswer(f"The server's {kind.__name__} lacks a field: {missing}.") from missing


def read_next(data: Any) -> NextTask:
    """Returns the lease, or why there is none."""
    leased = isinstance(data, dict) and data.get("assignment") is not None
    return _read(Lease, data) if leased else _read(NothingToRate, data)


def _value(hint: Any, value: Any) -> Any:
    """Makes the value of a field what its annotation says; what it does not know stays as it is."""
    if value is None:
        return None
    if hint == NextTask | None:
        return read_next(value)
    if get_origin(hint) in {Union, UnionType}:
        known = [one for one in get_args(hint) if one is not type(None)]
        return _value(known[0], value) if len(known) == 1 else value
    if get_origin(hint) is tuple and isinstance(value, list):
        return tuple(_value(get_args(hint)[0], one) for one in value)
    if hint is datetime:
        return datetime.fromisoformat(value)
    return _read(hint, value) if is_dataclass(hint) and isinstance(hint, type) else value


def _list_of(kind: type[T], data: Any) -> tuple[T, ...]:
    if not isinstance(data, list):
        raise UnexpectedAnswer("The server answered no list. Is it a Rewardloop of this version?")
    return tuple(_read(kind, one) for one in data)


def _row_of(line: bytes) -> dict[str, Any]:
    try:
        row: dict[str, Any] = json.loads(line)
    except ValueError as cut:
        raise ServerAway("The rows broke off in the middle of one. Ask for them again.") from cut
    return row


def text_of(value: Any) -> str:
    """Returns a value as a parameter of an address; lists are joined by commas."""
    if value is True:
        return "true"
    if isinstance(value, datetime):
        return value.isoformat()
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def json_bytes(value: Any) -> bytes:
    """Returns a value as JSON, as it stands in a body or in a line of a file."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
