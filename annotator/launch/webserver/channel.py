"""A connection: its requests as they arrive, each within its limits, and their deadlines.

A request has a deadline as a whole, and so has the reading of an answer. How much of a request may come is known as
soon as its first lines have.

waitress itself limits inactivity only, and a sender of a byte now and then is never inactive.
"""

import socket
import time
from collections.abc import Callable
from copy import copy
from functools import cache
from io import BytesIO
from threading import RLock
from typing import Any

from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.task import Task, WSGITask
from waitress.utilities import Error, RequestEntityTooLarge

from annotator.infrastructure.web import body_limits, lane_shares

HEADER_SECONDS = 10
BODY_SECONDS, BODY_BYTES_A_SECOND = 20, 20_000
"""A body may take BODY_SECONDS, and a second more for each BODY_BYTES_A_SECOND that have come."""
IDLE_SECONDS = 30
"""A connection that is kept alive may be without a request for so long."""
READ_SECONDS, READ_BYTES_A_SECOND = 20, 10_000
"""An answer may wait READ_SECONDS for its reader, and a second more for each READ_BYTES_A_SECOND that were taken."""
LARGE_BODIES_SHARE = 8
"""Large bodies that one account may bring to one process at once."""
LINGER_SECONDS = 2
"""After a refusal, what still comes is read and dropped for so long. Closed at once, the connection would be reset, and
the sender would never see the answer."""


class TooLarge(Error):  # type: ignore[misc]
    """The body is larger than the address takes, which is answered before the body is read."""

    code = 413
    reason = "Content Too Large"

    def __init__(self, path: str) -> None:
        super().__init__("")
        self.path = path

    def to_response(self, ident: str | None = None) -> tuple[str, list[tuple[str, str]], bytes]:
        kind, body = body_limits.too_large(self.path)
        return f"{self.code} {self.reason}", [("Content-Type", kind)], body


class Parser(HTTPRequestParser):  # type: ignore[misc]
    """waitress' parser with a limit for each address.

    A body that a stranger may not send waits until the application has said whether to read it.
    `awaiting_permission` is true while that is open, `permission_checked` from then on.
    """

    # These are waitress' own; it has no types.
    path = ""
    adj: Adjustments
    error: Error | None
    expect_continue: bool
    headers_finished: bool
    completed: bool
    chunked: bool
    content_length: int
    body_bytes_received: int

    awaiting_permission = False
    permission_checked = False
    wants_continue = False
    early_bytes = b""

    def received(self, data: bytes) -> int:
        consumed: int = super().received(data)
        if isinstance(self.error, RequestEntityTooLarge):
            self.error = TooLarge(self.path)
        elif (
            not self.permission_checked
            and not self.completed
            and self.headers_finished
            and (self.chunked or self.content_length > body_limits.STRANGERS_MOST)
        ):
            # A request that is complete goes to a thread, and waitress reads no further: so the question gets there.
            self.permission_checked = self.awaiting_permission = self.completed = True
            # waitress would send "100 Continue" at once, and invite a body that may be refused.
            self.wants_continue, self.expect_continue = self.expect_continue, False
            self.early_bytes = data[consumed:]
            return len(data)
        return consumed

    def parse_header(self, header_plus: bytes) -> None:
        super().parse_header(header_plus)
        self.adj = _limited(self.adj, body_limits.most_bytes(self.path))

    def accept_body(self) -> bytes:
        """Lets the body come; returns the part of it that came together with the headers."""
        self.awaiting_permission = self.completed = False
        self.expect_continue = self.wants_continue
        rest, self.early_bytes = self.early_bytes, b""
        return rest

    def close(self) -> None:
        """Frees the body's buffer, unless the body is still to come.

        waitress closes every request that it has served, and the question whether to read a body is served as one.
        """
        if self.completed:
            super().close()


@cache
def _limited(adjustments: Any, most: int) -> Adjustments:
    """Returns waitress' settings with this limit. Cached, as there are few limits and many requests."""
    limited = copy(adjustments)
    # waitress refuses what is as large as its limit; ours may be reached.
    limited.max_request_body_size = most + 1
    return limited


class AppRequest(WSGITask):  # type: ignore[misc]
    """A request for the application."""

    def get_environment(self) -> dict[str, Any]:
        environ: dict[str, Any] = super().get_environment()
        return environ | {lane_shares.SHARE: self.channel.share}

    def set_close_on_finish(self) -> None:
        """waitress closes after an answer that does not say its length; 204 and 304 need not say any."""
        if self.has_body or self.request.connection_close:
            super().set_close_on_finish()


class BodyPermission(WSGITask):  # type: ignore[misc]
    """Asks the application whether to read a body.

    If it says no, that is the answer to the request; if it says yes, nothing is sent.
    """

    def execute(self) -> None:
        # Unless the answer is yes: what comes of a body that nobody reads would be taken for the next request.
        self.close_on_finish = True
        super().execute()

    def get_environment(self) -> dict[str, Any]:
        announced = 0 if self.request.chunked else self.request.content_length
        without = {body_limits.WAITS: announced, "CONTENT_LENGTH": "0", "wsgi.input": BytesIO()}
        environ: dict[str, Any] = super().get_environment() | without
        return environ | {lane_shares.SHARE: self.channel.body_share}

    def finish(self) -> None:
        if self.status.startswith(str(body_limits.GO_ON)):
            self.close_on_finish = False
            self.channel.accept_body()
        else:
            super().finish()


class Channel(HTTPChannel):  # type: ignore[misc]
    parser_class = Parser
    close_when_flushed: bool  # waitress' own; it has no types

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.began = self.idle_since = time.monotonic()
        self.served = self.refused = False
        self.lingers_until = 0.0
        self.sent = 0
        self.share: Callable[[int], bool] | None = None
        self._body_of = 0
        self._read_since: float | None = None
        self._sent_before = 0
        self._held_back = b""
        # The main thread receives, and a thread that has asked hands over what was held back. Without the lock the
        # bytes of a body could change their order.
        self._arrival = RLock()
        super().__init__(*args, **kwargs)

    def task_class(self, channel: "Channel", request: Parser) -> Task:
        return BodyPermission(channel, request) if request.awaiting_permission else AppRequest(channel, request)

    # What arrives ------------------------------------------------------------------------------------------

    def received(self, data: bytes) -> bool:
        with self._arrival:
            if self.lingers_until:
                return False  # what comes after a refusal is dropped
            if self.request is None:
                self.began = time.monotonic()
            # Bytes that were held back came before these.
            data, self._held_back = self._held_back + data, b""
            return bool(super().received(data))

    def service(self) -> None:
        asking = self.requests[0].awaiting_permission
        # Before the answer is made: the main thread may send it and close while we are still in here.
        self.refused = asking or self.requests[0].error is not None
        super().service()
        self.served, self.idle_since = True, time.monotonic()
        if asking and self.request is not None:  # the answer was yes, and `accept_body` has put the request back
            self.refused = False
            self.received(b"")  # takes what was held back, as no more may come

    def accept_body(self) -> None:
        """Makes the request that was asked about one that is still arriving."""
        request = self.requests[0]
        self._held_back = request.accept_body()
        self.began, self.request = time.monotonic(), request

    def brings_much(self) -> bool:
        """Returns whether a request of this connection has a body that the application was asked about."""
        return any(request.permission_checked for request in [*self.requests, self.request] if request is not None)

    def body_share(self, account: int) -> bool:
        """Counts the body that is to come on the account's share; returns False if it brings as many already."""
        # Over a copy: other threads accept and close connections meanwhile.
        others = [channel for channel in list(self.server.active_channels.values()) if channel.brings_much_of(account)]
        if len(others) >= LARGE_BODIES_SHARE:
            return False
        self._body_of = account
        return True

    def brings_much_of(self, account: int) -> bool:
        return self._body_of == account and self.brings_much()

    # Deadlines ---------------------------------------------------------------------------------------------

    def is_overdue(self, now: float) -> bool:
        """Returns whether the other side takes longer than the deadline of what it is doing.

        While a request is being worked on there is no deadline: the delay is ours.
        """
        if self.lingers_until:
            return now > self.lingers_until
        if self.total_outbufs_len:
            if self._read_since is None:
                self._read_since, self._sent_before = now, self.sent
            return now - self._read_since > READ_SECONDS + (self.sent - self._sent_before) / READ_BYTES_A_SECOND
        self._read_since = None
        if not self.is_idle():
            return False
        request: Parser | None = self.request
        if request is None:
            return now - self.idle_since > (IDLE_SECONDS if self.served else HEADER_SECONDS)
        if not request.headers_finished:
            return now - self.began > HEADER_SECONDS
        return now - self.began > BODY_SECONDS + request.body_bytes_received / BODY_BYTES_A_SECOND

    def send(self, data: bytes, do_close: bool = True) -> int:
        taken: int = super().send(data, do_close=do_close)
        self.sent += taken
        return taken

    def has_hung_up(self) -> bool:
        """Returns whether the other side has closed the connection while its request is being worked on."""
        if not self.requests:
            return False  # then waitress itself reads, and notices
        try:
            return not self.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    # The end -----------------------------------------------------------------------------------------------

    def is_idle(self) -> bool:
        return not self.requests and not self.total_outbufs_len

    def handle_write(self) -> None:
        """Sends what is ready; after a refusal, closes our direction only and lingers."""
        if not (self.refused and self.close_when_flushed) or self.will_close:
            super().handle_write()
            return
        self._flush_exception(self._flush_some)
        if self.connected and not self.total_outbufs_len:
            # waitress reads nothing while `close_when_flushed` is set; `is_overdue` closes the connection instead.
            self.close_when_flushed, self.lingers_until = False, time.monotonic() + LINGER_SECONDS
            try:
                self.socket.shutdown(socket.SHUT_WR)
            except OSError:  # the sender has hung up
                self.handle_close()

    # The processes' shares ---------------------------------------------------------------------------------

    def add_channel(self, *channels: Any) -> None:
        super().add_channel(*channels)
        self.server.count_connections()

    def del_channel(self, *channels: Any) -> None:
        super().del_channel(*channels)
        self.server.count_connections()
