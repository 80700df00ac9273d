"""A connection: what arrives has a deadline as a whole, and so has what is read of an answer.

waitress itself knows a limit of inactivity only, which a byte now and then never reaches.
"""

import socket
import time
from io import BytesIO
from threading import RLock
from typing import Any

from waitress.channel import HTTPChannel
from waitress.task import Task, WSGITask

from annotator.launch.webserver.parser import Parser
from annotator.web import body_limits

HEADER_SECONDS = 10
BODY_SECONDS, BODY_BYTES_A_SECOND = 20, 20_000
"""A body may take so long, and a second more for each so many bytes that have come."""
IDLE_SECONDS = 30
"""Between two requests of a connection that is kept alive."""
READ_SECONDS, READ_BYTES_A_SECOND = 20, 10_000
"""An answer may wait so long for its reader, and a second more for each so many bytes that were taken."""
LINGER_SECONDS = 2
"""What comes after a refusal is read and dropped for so long: closed at once, the sender would never see the answer."""


class Work(WSGITask):  # type: ignore[misc]
    """A request for the application."""

    def set_close_on_finish(self) -> None:
        """waitress closes after an answer that does not say its length; 204 and 304 need not say any."""
        if self.has_body or self.request.connection_close:
            super().set_close_on_finish()


class Question(WSGITask):  # type: ignore[misc]
    """Asks the application whether to read a body. A no is the answer to the request; a yes is not sent."""

    def execute(self) -> None:
        self.close_on_finish = True
        super().execute()

    def get_environment(self) -> dict[str, Any]:
        announced = 0 if self.request.chunked else self.request.content_length
        without = {body_limits.WAITS: announced, "CONTENT_LENGTH": "0", "wsgi.input": BytesIO()}
        environ: dict[str, Any] = super().get_environment() | without
        return environ

    def finish(self) -> None:
        if self.status.startswith(str(body_limits.GO_ON)):
            self.close_on_finish = False
            self.channel.go_on()
        else:
            super().finish()


class Channel(HTTPChannel):  # type: ignore[misc]
    parser_class = Parser

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.began = self.idle_since = time.monotonic()
        self.served = self.refused = False
        self.lingers_until = 0.0
        self.sent = 0
        self._read_since: float | None = None
        self._sent_before = 0
        self._held_back = b""
        # The main thread receives, a thread that has asked hands over what was held back: in this order.
        self._arrival = RLock()
        super().__init__(*args, **kwargs)

    def task_class(self, channel: "Channel", request: Parser) -> Task:
        return Question(channel, request) if request.asking else Work(channel, request)

    # What arrives ------------------------------------------------------------------------------------------

    def received(self, data: bytes) -> bool:
        with self._arrival:
            if self.lingers_until:
                return False
            if self.request is None:
                self.began = time.monotonic()
            data, self._held_back = self._held_back + data, b""
            return bool(super().received(data))

    def service(self) -> None:
        asking = self.requests[0].asking
        self.refused = asking or self.requests[0].error is not None
        super().service()
        self.served, self.idle_since = True, time.monotonic()
        if asking and self.request is not None:
            self.refused = False
            self.received(b"")  # what was held back; there may come no more

    def go_on(self) -> None:
        """The request that was asked about becomes one that is still arriving."""
        request = self.requests[0]
        self._held_back = request.go_on()
        self.began, self.request = time.monotonic(), request

    def brings_much(self) -> bool:
        return any(request.asked for request in [*self.requests, self.request] if request is not None)

    # Deadlines ---------------------------------------------------------------------------------------------

    def is_overdue(self, now: float) -> bool:
        if self.lingers_until:
            return now > self.lingers_until
        if self.total_outbufs_len:
            return self._is_read_too_slowly(now)
        self._read_since = None
        return self.is_idle() and self._arrives_too_slowly(now)

    def _arrives_too_slowly(self, now: float) -> bool:
        request: Parser | None = self.request
        if request is None:
            return now - self.idle_since > (IDLE_SECONDS if self.served else HEADER_SECONDS)
        if not request.headers_finished:
            return now - self.began > HEADER_SECONDS
        return now - self.began > BODY_SECONDS + request.body_bytes_received / BODY_BYTES_A_SECOND

    def _is_read_too_slowly(self, now: float) -> bool:
        if self._read_since is None:
            self._read_since, self._sent_before = now, self.sent
        return now - self._read_since > READ_SECONDS + (self.sent - self._sent_before) / READ_BYTES_A_SECOND

    def send(self, data: bytes, do_close: bool = True) -> int:
        taken: int = super().send(data, do_close=do_close)
        self.sent += taken
        return taken

    # The end -----------------------------------------------------------------------------------------------

    def is_idle(self) -> bool:
        return not self.requests and not self.total_outbufs_len

    def handle_write(self) -> None:
        if not (self.refused and self.close_when_flushed) or self.will_close:
            super().handle_write()
            return
        self._flush_exception(self._flush_some)
        if self.connected and not self.total_outbufs_len:
            self._linger()

    def _linger(self) -> None:
        self.close_when_flushed, self.lingers_until = False, time.monotonic() + LINGER_SECONDS
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:  # the sender has gone
            self.handle_close()

    # The processes' shares ---------------------------------------------------------------------------------

    def add_channel(self, *channels: Any) -> None:
        super().add_channel(*channels)
        self.server.count_connections()

    def del_channel(self, *channels: Any) -> None:
        super().del_channel(*channels)
        self.server.count_connections()
