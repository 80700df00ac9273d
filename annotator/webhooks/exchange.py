"""Posts one message and reads the answer: within ten seconds in all, without following redirects, 64 kB at most."""

import http.client
import io
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from annotator.webhooks.addresses import NotResolved, Target, UnusableAddress, addresses_of, target_of

SECONDS = 10.0
MOST_BYTES = 64 * 1024
LONGEST_QUOTE = 200
"""The characters of an answer that the log repeats where it is an error."""


@dataclass(frozen=True)
class Outcome:
    """What came of a post: the status of the answer, if there was one, and what was wrong."""

    status: int | None
    error: str
    seconds: float

    @property
    def is_delivered(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class _TooLong(OSError):
    """The answer has more bytes than are read."""


def post(url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
    """Posts the body to the URL. Whatever goes wrong is in the outcome."""
    began = time.monotonic()
    status, error = None, ""
    try:
        status, quote = _exchanged(target_of(url), body, headers, until=began + SECONDS)
        error = _error_of(status, quote)
    except TimeoutError:
        error = f"The receiver did not answer within {SECONDS:.0f} seconds."
    except UnusableAddress as refused:
        error = str(refused)
    except ssl.SSLCertVerificationError as wrong:
        error = f"The receiver's certificate is not valid: {wrong.verify_message}."
    except NotResolved as unknown:
        error = str(unknown)
    except (OSError, http.client.HTTPException) as failed:
        error = f"{type(failed).__name__}: {_printable(str(failed))}"
    return Outcome(status, error, round(time.monotonic() - began, 3))


def _error_of(status: int, quote: str) -> str:
    if 200 <= status < 300:
        return ""
    if 300 <= status < 400:
        return f"HTTP {status}: redirects are not followed. Give the address that answers itself."
    return f"HTTP {status}: {quote}" if quote else f"HTTP {status}"


def _printable(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[:LONGEST_QUOTE]


def _exchanged(target: Target, body: bytes, headers: Mapping[str, str], *, until: float) -> tuple[int, str]:
    connection = _Connection(target, until=until)
    try:
        connection.request("POST", target.path, body=body, headers=dict(headers))
        answer = connection.getresponse()
        return answer.status, "" if 200 <= answer.status < 400 else _quote_of(answer)
    finally:
        connection.hang_up()


def _quote_of(answer: http.client.HTTPResponse) -> str:
    try:
        return _printable(answer.read1(4 * LONGEST_QUOTE).decode(errors="replace"))
    except (http.client.HTTPException, OSError):
        return ""  # the status says what came of it


class _Connection(http.client.HTTPConnection):
    """A connection to the addresses that were checked, under the host's name, with a deadline for all of it."""

    def __init__(self, target: Target, *, until: float) -> None:
        super().__init__(target.host, target.port)
        self.target, self.until = target, until
        self.default_port = 443 if target.is_secure else 80  # which the header Host leaves out
        self.plain: socket.socket | None = None

    def connect(self) -> None:
        addresses = addresses_of(self.target, seconds=_left(self.until))
        for number, address in enumerate(addresses, 1):
            # An address that does not answer leaves time for the others.
            share = _left(self.until) / (len(addresses) - number + 1)
            try:
                plain = _connected(address, self.target.port, seconds=share)
                break
            except OSError:
                if number == len(addresses):
                    raise
        if self.target.is_secure:
            plain.settimeout(_left(self.until))
            plain = _tls().wrap_socket(plain, server_hostname=self.target.host)
        self.plain = plain
        self.sock: Any = _Deadlined(plain, until=self.until)

    def hang_up(self) -> None:
        if self.plain:
            self.plain.close()


def _connected(address: str, port: int, *, seconds: float) -> socket.socket:
    # Not socket.create_connection, which would resolve what it is given.
    plain = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        plain.settimeout(seconds)
        plain.connect((address, port))
    except OSError:
        plain.close()
        raise
    return plain


class _Deadlined:
    """The part of a socket that http.client uses. Each single wait of a socket may be as long as its timeout."""

    def __init__(self, plain: socket.socket, *, until: float) -> None:
        self.plain, self.until = plain, until

    def sendall(self, data: bytes) -> None:
        self.plain.settimeout(_left(self.until))
        self.plain.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Answer(self.plain, until=self.until))

    def close(self) -> None:
        """Leaves the socket open: http.client closes it before it has read the answer."""


class _Answer(io.RawIOBase):
    """What the receiver sends, headers included, until the deadline and up to the number of bytes."""

    def __init__(self, plain: socket.socket, *, until: float) -> None:
        self.plain, self.until, self.bytes = plain, until, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.bytes >= MOST_BYTES:
            raise _TooLong("The answer is too long.")
        self.plain.settimeout(_left(self.until))
        count = self.plain.recv_into(memoryview(buffer)[: MOST_BYTES - self.bytes])
        self.bytes += count
        return count


def _left(until: float) -> float:
    if (left := until - time.monotonic()) <= 0:
        raise TimeoutError
    return left


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
