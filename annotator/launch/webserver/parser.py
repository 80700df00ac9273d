"""A request as it arrives: how much of it may come is known as soon as its first lines have."""

from copy import copy
from functools import cache
from typing import Any

from waitress.adjustments import Adjustments
from waitress.parser import HTTPRequestParser
from waitress.utilities import Error, RequestEntityTooLarge

from annotator.web import body_limits


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

    A body that a stranger may not send waits until the application has said whether to read it. `asking` is true while
    that is open, `asked` from then on.
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

    asking = False
    asked = False
    wants_continue = False
    held_back = b""

    def received(self, data: bytes) -> int:
        consumed: int = super().received(data)
        if isinstance(self.error, RequestEntityTooLarge):
            self.error = TooLarge(self.path)
        elif (
            not self.asked
            and not self.completed
            and self.headers_finished
            and (self.chunked or self.content_length > body_limits.STRANGERS_MOST)
        ):
            # A request that is complete goes to a thread, and waitress reads no further: so the question gets there.
            self.asked = self.asking = self.completed = True
            # waitress would send "100 Continue" at once, and invite a body that may be refused.
            self.wants_continue, self.expect_continue = self.expect_continue, False
            self.held_back = data[consumed:]
            return len(data)
        return consumed

    def parse_header(self, header_plus: bytes) -> None:
        super().parse_header(header_plus)
        self.adj = _limited(self.adj, body_limits.most_bytes(self.path))

    def go_on(self) -> bytes:
        """Lets the body come; returns the part of it that came together with the headers."""
        self.asking = self.completed = False
        self.expect_continue = self.wants_continue
        rest, self.held_back = self.held_back, b""
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
