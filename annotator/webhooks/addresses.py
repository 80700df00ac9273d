"""Where a webhook may post to: what its URL may look like, and which internet addresses its host may have.

A host is resolved once for each attempt, and the connection goes to the very address that was checked: a name that
resolves to another address a moment later leads nowhere.
"""

import re
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from annotator.models import LONGEST_URL
from annotator.refusals import Refusal

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
    _check_host(host)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(is_secure, host, port or (443 if is_secure else 80), path)


def _check_host(host: str) -> None:
    try:
        addresses: list[Address] = [ip_address(host)]
    except ValueError as no_number:
        if not _NAME.fullmatch(host):
            raise UnusableAddress(_("The URL names no host that can exist. Check it.")) from no_number
        addresses = []
    if host.lower() == "localhost":
        addresses = [IPv4Address("127.0.0.1")]
    require_public(addresses)


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
