"""Posts to addresses that people have written: where may be posted to, one message, and what its answer was.

A host is resolved once for each attempt, and the connection goes to the very address that was checked: a name that
resolves to another address a moment later leads nowhere. A post takes ten seconds in all, follows no redirect and reads
64 kB at most. Whatever else posts to such an address posts by this module.
"""

import http.client
import io
import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from annotator.infrastructure.refusals import Refusal
from annotator.models import LONGEST_URL

Address = IPv4Address | IPv6Address
MOST_ADDRESSES = 8
"""The addresses of a host that are looked at and tried."""
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*", re.IGNORECASE)
_GLOBAL_UNICAST, _NAT64 = ip_network("2000::/3"), ip_network("64:ff9b::/96")
# Tunnels, by which an address outside leads to one inside, and what older versions of Python take for public.
_REFUSED = [ip_network(text) for text in ("192.88.99.0/24", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]


class UnusableAddress(Refusal):
    """Nothing is posted to this URL; the message says why, and what to write instead."""

    status = 400
    code = "invalid"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.errors = {"url": [text]}


class NotResolved(OSError):
    """No address is known for the host's name."""


@dataclass(frozen=True)
class Target:
    """The parts of a URL that can be posted to. `path` includes the query."""

    is_secure: bool
    host: str
    port: int
    path: str


def target_of(url: str) -> Target:
    """Takes a URL apart. No name is resolved here, as a page waits for the answer.

    Raises:
        UnusableAddress: it is no URL, or one that nothing is posted to.
    """
    if len(url) > LONGEST_URL:
        raise UnusableAddress(_("The URL is too long. It may have %(most)d characters.") % {"most": LONGEST_URL})
    if not re.fullmatch(r"[!-~]+", url) or "\\" in url:
        text = _(
            "The URL has a space, a backslash or letters beyond ASCII. Write such a host as xn--..., and other "
            "characters percent-encoded."
        )
        raise UnusableAddress(text)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as wrong:
        raise UnusableAddress(_("This is no URL. Write one like https://example.org/hook.")) from wrong
    schemes = ("https", "http") if _private_is_allowed() else ("https",)
    if parts.scheme not in schemes or not host:
        text = _("This is no URL that can be posted to. Write one like %(scheme)s://example.org/hook.")
        raise UnusableAddress(text % {"scheme": schemes[0]})
    if "@" in parts.netloc:
        raise UnusableAddress(_("Leave the name and the password out of the URL: the signature shows who sends."))
    if parts.fragment or url.endswith("#"):
        raise UnusableAddress(_("Leave out “#” and what follows it: it is never sent."))
    is_secure = parts.scheme == "https"
    if port == 0:
        raise UnusableAddress(_("A port is a number from 1 to 65535."))
    try:
        addresses: list[Address] = [ip_address("127.0.0.1" if host.lower() == "localhost" else host)]
    except ValueError as no_number:
        if not _NAME.fullmatch(host):
            raise UnusableAddress(_("The URL names no host that can exist. Check it.")) from no_number
        addresses = []
    require_public(addresses)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(is_secure, host, port or (443 if is_secure else 80), path)


def addresses_of(target: Target, *, seconds: float) -> list[str]:
    """Resolves the target's host, within the time, and returns the addresses that it may be reached at.

    Raises:
        UnusableAddress: the host has an address that is not of the public internet. One is enough, as others are no
            excuse for it.
        NotResolved: the name is not known, or its server did not answer in time.
    """
    texts = _resolved(target, seconds=seconds)
    require_public([ip_address(text) for text in texts])
    return texts[:MOST_ADDRESSES]


def _resolved(target: Target, *, seconds: float) -> list[str]:
    # The system's resolver knows no deadline, so a thread waits for it that may be left behind.
    answers: list[list[str] | NotResolved] = []

    def resolve() -> None:
        try:
            rows = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as unknown:
            answers.append(NotResolved(f"The name {target.host} cannot be resolved ({unknown})."))
        else:
            answers.append(list(dict.fromkeys(str(row[4][0]) for row in rows)))

    thread = threading.Thread(target=resolve, name="webhook's resolver", daemon=True)
    thread.start()
    thread.join(seconds)
    if not any(answers):
        raise NotResolved(f"The name {target.host} was not resolved in time.")
    if isinstance(answers[0], NotResolved):
        raise answers[0]
    return answers[0]


def require_public(addresses: Sequence[Address]) -> None:
    """Raises UnusableAddress if one of the addresses is not of the public internet, unless that is allowed here."""
    if not _private_is_allowed() and not all(map(is_public, addresses)):
        text = _(
            "The host has an address that is not of the public internet, and this installation posts to no other. The "
            "administrator can allow it by WEBHOOK_PRIVATE_ADDRESSES=allow."
        )
        raise UnusableAddress(text)


def is_public(address: Address) -> bool:
    """Returns whether everybody on the internet means the same host by this address."""
    if isinstance(address, IPv6Address):
        if address in _NAT64:  # what a network without IPv4 writes for an address of IPv4
            return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
        if address.scope_id or address not in _GLOBAL_UNICAST:
            return False
    is_refused = any(address.version == net.version and address in net for net in _REFUSED)
    return address.is_global and not address.is_multicast and not address.is_reserved and not is_refused


def _private_is_allowed() -> bool:
    return settings.WEBHOOK_PRIVATE_ADDRESSES == "allow"


SECONDS = 10.0
MOST_BYTES = 64 * 1024
LONGEST_QUOTE = 200
"""The characters of an answer that the log repeats where it is an error."""


@dataclass(frozen=True)
class PostOutcome:
    """What came of a post: the status of the answer, if there was one, and what was wrong."""

    status: int | None
    error: str
    seconds: float

    @property
    def is_delivered(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class _TooLong(OSError):
    """The answer has more bytes than are read."""


def post(url: str, body: bytes, headers: Mapping[str, str]) -> PostOutcome:
    """Posts the body to the URL. Whatever goes wrong is in the outcome."""
    began = time.monotonic()
    status, error = None, ""
    try:
        connection = _Connection(target_of(url), until=began + SECONDS)
        try:
            connection.request("POST", connection.target.path, body=body, headers=dict(headers))
            answer = connection.getresponse()
            status, error = answer.status, _error_of(answer)
        finally:
            connection.hang_up()
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
    return PostOutcome(status, error, round(time.monotonic() - began, 3))


def _error_of(answer: http.client.HTTPResponse) -> str:
    if 200 <= answer.status < 300:
        return ""
    if 300 <= answer.status < 400:
        return f"HTTP {answer.status}: redirects are not followed. Give the address that answers itself."
    quote = ""
    with suppress(http.client.HTTPException, OSError):  # the status says what came of it
        quote = _printable(answer.read1(4 * LONGEST_QUOTE).decode(errors="replace"))
    return f"HTTP {answer.status}: {quote}" if quote else f"HTTP {answer.status}"


def _printable(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[:LONGEST_QUOTE]


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
            # Not socket.create_connection, which would resolve what it is given.
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
