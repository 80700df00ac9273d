"""A request as it arrives: how much of it may come is known as soon as its first lines have."""

from copy import copy
from functools import cache
from typing import Any

from waitress.adjustments import Adjustments
from waitress.parser import HTTPRequestParser
from waitress.utilities import Error, RequestEntityTooLarge

from annotator.web import body_limits


class TooLarge(Error):  # type: ignore[misc]
    """More than the address takes; answered before it is read."""

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

    Of a body that a stranger might not send, `asking` says that the application is asked first whether to read it.
    """

    # As waitress has them.
    path = ""
    adj: Adjustments
    error: Error | None
    expect_continue: bool
    headers_finished: bool
    completed: bool
    chunked: bool
    content_length: int
    body_bytes_received: int

    asking = False
    asked = False
    wants_continue = False
    held_back = b""

    def received(self, data: bytes) -> int:
        consumed: int = super().received(data)
        if isinstance(self.error, RequestEntityTooLarge):
            self.error = TooLarge(self.path)
        elif not self.asked and not self.completed and self._may_be_too_much():
            self._ask(data[consumed:])
            return len(data)
        return consumed

    def parse_header(self, header_plus: bytes) -> None:
        super().parse_header(header_plus)
        self.adj = _limited(self.adj, body_limits.most_bytes(self.path))

    def _may_be_too_much(self) -> bool:
        return self.headers_finished and (self.chunked or self.content_length > body_limits.STRANGERS_MOST)

    def _ask(self, rest: bytes) -> None:
        """For waitress the request is complete: it hands it to a thread and reads no further."""
        self.asked = self.asking = self.completed = True
        self.wants_continue, self.expect_continue = self.expect_continue, False
        self.held_back = rest

    def go_on(self) -> bytes:
        """The body may come; what has come of it already."""
        self.asking = self.completed = False
        self.expect_continue = self.wants_continue
        rest, self.held_back = self.held_back, b""
        return rest

    def close(self) -> None:
        """Not while the body may still come, although the question about it has been served."""
        if self.completed:
            super().close()


@cache
def _limited(adjustments: Any, most: int) -> Adjustments:
    """waitress' settings with this limit; it refuses what is as large as its own."""
    limited = copy(adjustments)
    limited.max_request_body_size = most + 1
    return limited
