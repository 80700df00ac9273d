"""Limits wrong passwords, for every door that asks for one.

They are counted in the database, so that all processes count together, with three limits:

- From one address for one account, LOGIN_FAILURES. Then this address has to wait, and no other.
- From one address for all accounts, twenty times as many.
- For one account from everywhere, ten times as many. Then each address has one wrong password for it instead of
  LOGIN_FAILURES: nobody who knows the password has to wait because of what others try elsewhere.

A browser that has logged in to the account before holds a signed cookie that says so. It has a count of its own (twice
LOGIN_FAILURES) and none of the above, so that nobody behind the same address can keep it out. Right passwords are not
counted. Guesses are counted after they are checked, so simultaneous ones may exceed a limit by the web's threads.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil
from typing import Any
from unicodedata import normalize

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.sessions.models import Session
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import get_random_string, salted_hmac
from django.utils.translation import ngettext

from annotator.accounts.passwords import UnknownLink
from annotator.infrastructure import audit
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.db.statements import Statement
from annotator.infrastructure.refusals import Refusal
from annotator.models import LoginFailures, User

SALT = "annotator.accounts.logins"
COOKIE = "known_browser"
COOKIE_SECONDS = 180 * 24 * 60 * 60
ACCOUNT = "account"
"""The count for an account from everywhere. When it is full, it lowers the limit of each address."""
ACCOUNTS_KNOWN = 5
"""How many accounts a browser is remembered for, the latest first: the cookie must not grow."""

_log = logging.getLogger(__name__)


class TooManyFailures(Refusal):
    """There were so many wrong passwords that no more are checked for a while."""

    status = 429
    code = "too_many_failures"

    def __init__(self, until: datetime) -> None:
        seconds = max(1, ceil((until - database_now()).total_seconds()))
        minutes = ceil(seconds / 60)
        super().__init__(self.text(minutes) % {"minutes": minutes})
        self.headers = {"Retry-After": str(seconds)}

    @classmethod
    def text(cls, minutes: int) -> str:
        """Returns what is answered, with a place for the minutes."""
        return ngettext(
            "Too many wrong passwords. Try again in %(minutes)d minute.",
            "Too many wrong passwords. Try again in %(minutes)d minutes.",
            minutes,
        )


class TooManyWrongLinks(TooManyFailures):
    """There were so many links with a wrong secret from this address that no more are looked up for a while."""

    code = "too_many_wrong_links"

    @classmethod
    def text(cls, minutes: int) -> str:
        return ngettext(
            "Too many wrong links from your address. Try again in %(minutes)d minute.",
            "Too many wrong links from your address. Try again in %(minutes)d minutes.",
            minutes,
        )


class LimitedBackend(ModelBackend):
    """Django's accounts and passwords, within the limits.

    Without a request there is no address to count for, so nobody gets in.
    """

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> User | None:
        if request is None or username is None or password is None:
            return None
        attempt = Attempt.of(request, username)
        attempt.require_room()
        # Django hashes the password for unknown names too, so that the time does not reveal which accounts exist.
        user = super().authenticate(request, username=username, password=password)
        attempt.settle(right=user is not None)
        return user if isinstance(user, User) else None


def knows_password(request: HttpRequest, user: User, password: str) -> bool:
    """Says whether somebody who is logged in knows the account's password, within the same limits."""
    attempt = Attempt.of(request, user.username)
    attempt.require_room()
    right = user.check_password(password)
    attempt.settle(right=right)
    return right


def note_login(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """Records a login on a page, and sets the cookie by which the browser is recognised the next time."""
    audit.record("login.succeeded", f"account {user.username}", address=address_of(request))
    _log.info("login of %s from %s", user.username, address_of(request))
    browser, accounts = _known_browser(request)
    remembered = [_plain(user.username), *(account for account in accounts if account != _plain(user.username))]
    response.set_cookie(
        COOKIE,
        # Signed: a browser that could write this itself would escape the limits of its address.
        signing.dumps([browser or get_random_string(22), remembered[:ACCOUNTS_KNOWN]], salt=SALT),
        max_age=COOKIE_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def note_logout(request: HttpRequest) -> None:
    """Records a logout; it is called before the session ends, as long as it says whose it is."""
    if isinstance(request.user, User):
        audit.record("login.ended", f"account {request.user.username}", address=address_of(request))
        _log.info("logout of %s from %s", request.user.username, address_of(request))


# One attempt -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Count:
    """A count of wrong passwords that have something in common, and how many there may be."""

    over: str
    key: str
    most: int

    @classmethod
    def of(cls, *subjects: str, over: str, most: int) -> "Count":
        """Makes the count for an account, an address, a browser, or two of these."""
        # The key is a keyed digest, because some of the names are passwords that were typed into the wrong field.
        return cls(over, salted_hmac(SALT, json.dumps([over, *subjects]), algorithm="sha256").hexdigest(), most)


@dataclass(frozen=True)
class Attempt:
    """A password that is sent for an account, from an address and perhaps from a browser that is known."""

    username: str
    address: str
    browser: str
    "The browser's number in its cookie; empty for a browser that has not logged in to this account."

    @classmethod
    def of(cls, request: HttpRequest, username: str) -> "Attempt":
        browser, accounts = _known_browser(request)
        return cls(username, address_of(request), browser if _plain(username) in accounts else "")

    def require_room(self) -> None:
        """Raises TooManyFailures if a limit is reached, so that the password is not even checked."""
        own, *others = self._counts()
        keys = [count.key for count in (own, *others)]
        failed = LoginFailures.objects.filter(key__in=keys, ends_at__gt=database_now()).in_bulk()
        full = {count.over for count in (own, *others) if count.key in failed and failed[count.key].count >= count.most}
        # An account that is guessed at from everywhere is not closed, or anybody could keep its owner out. Instead one
        # wrong password is enough to close it for an address.
        if ACCOUNT in full and own.key in failed:
            full.add(own.over)
        waits = [failed[count.key].ends_at for count in (own, *others) if count.over in full - {ACCOUNT}]
        if waits:
            raise TooManyFailures(max(waits))

    def settle(self, *, right: bool) -> None:
        """Counts a wrong password, or deletes this attempt's own count after a right one."""
        own, *others = self._counts()
        if right:
            LoginFailures.objects.filter(key=own.key).delete()
            return
        wait = timedelta(minutes=settings.LOGIN_WAIT_MINUTES)
        failed: dict[str, int] = dict(_COUNT.rows(keys=[count.key for count in (own, *others)], wait=wait))
        self._note("login.failed", "wrong password")
        for count in (own, *others):
            # Equal, not at least: a limit that is reached is recorded once.
            if failed[count.key] == count.most:
                self._note("login.locked", "too many wrong passwords", count)

    def _counts(self) -> list[Count]:
        """Returns the counts that apply to this attempt; the first is its own."""
        few, account, network = settings.LOGIN_FAILURES, _plain(self.username), _network(self.address)
        if self.browser:
            return [Count.of(account, self.browser, over="account and browser", most=2 * few)]
        return [
            Count.of(account, network, over="account and address", most=few),
            Count.of(network, over="address", most=20 * few),
            Count.of(account, over=ACCOUNT, most=10 * few),
        ]

    def _note(self, action: str, text: str, full: Count | None = None) -> None:
        """Records what happened in the audit log and the server's log."""
        # A name that no account has is left out, because it may be a password.
        known = User.objects.filter(username=self.username).exists()
        who = f"account {self.username}" if known else "an account that does not exist"
        if full:
            audit.record(action, who, address=self.address, over=full.over, limit=full.most)
        else:
            audit.record(action, who, address=self.address)
        _log.warning("%s for %s from %s", text, who, self.address, extra={"event": action})


@contextmanager
def limited_links(request: HttpRequest) -> Iterator[None]:
    """Counts an UnknownLink that the block raises: somebody follows a link whose secret is nobody's.

    Raises:
        TooManyWrongLinks: so many from this address were wrong that no more are looked up for a while.
    """
    most, address = 20 * settings.LOGIN_FAILURES, address_of(request)
    count = Count.of(_network(address), over="links from an address", most=most)
    full = LoginFailures.objects.filter(key=count.key, ends_at__gt=database_now(), count__gte=most).first()
    if full:
        raise TooManyWrongLinks(full.ends_at)
    try:
        yield
    except UnknownLink:
        wait = timedelta(minutes=settings.LOGIN_WAIT_MINUTES)
        failed: dict[str, int] = dict(_COUNT.rows(keys=[count.key], wait=wait))
        if failed[count.key] == most:
            audit.record("login.locked", "links", address=address, over=count.over, limit=most)
        _log.warning("wrong link from %s", address)
        raise


# In the order of the keys, so that two statements with the same keys cannot deadlock. `ends_at` stays what the first
# failure made it: trying during a wait does not prolong it.
_COUNT = Statement(
    """
INSERT INTO annotator_loginfailures AS counted (key, count, ends_at)
SELECT key, 1, statement_timestamp() + %(wait)s FROM unnest(%(keys)s::text[]) AS key ORDER BY key
ON CONFLICT (key) DO UPDATE SET
    count = CASE WHEN counted.ends_at > statement_timestamp() THEN counted.count + 1 ELSE 1 END,
    ends_at = CASE WHEN counted.ends_at > statement_timestamp() THEN counted.ends_at ELSE excluded.ends_at END
RETURNING key, count
""",
    prepared=False,
)


def forget_ended(*, now: datetime) -> int:
    """Deletes counts whose wait is over, and sessions that have expired; returns how many rows."""
    failures, _ = LoginFailures.objects.filter(ends_at__lte=now).delete()
    sessions, _ = Session.objects.filter(expire_date__lte=now).delete()
    return failures + sessions


# Who it is ---------------------------------------------------------------------------------------------------


def address_of(request: HttpRequest) -> str:
    """Returns the address that a request comes from: what our proxies say, or else who connected to us."""
    # Counted from the end: our proxies append what they saw, and everything before it is written by the client.
    direct = str(request.META.get("REMOTE_ADDR", ""))
    forwarded = [part.strip() for part in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")]
    if not settings.TRUSTED_PROXIES or len(forwarded) < settings.TRUSTED_PROXIES:
        return direct
    try:
        return str(ip_address(forwarded[-settings.TRUSTED_PROXIES]))
    except ValueError:
        return direct


def _network(address: str) -> str:
    """Returns the network for which failures are counted: an IPv4 address, or the first 64 bits of an IPv6 address."""
    # One customer of a provider has at least 64 bits, so a count for each IPv6 address would limit nobody.
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    return str(parsed.ipv4_mapped or ip_network((parsed, 64), strict=False))


def _known_browser(request: HttpRequest) -> tuple[str, list[str]]:
    """Reads the cookie: the browser's number and the accounts that logged in there; empty if it is not ours."""
    try:
        browser, accounts = signing.loads(request.COOKIES.get(COOKIE, ""), salt=SALT, max_age=COOKIE_SECONDS)
    except signing.BadSignature:
        return "", []
    return browser, accounts


def _plain(username: str) -> str:
    # All spellings of a name share one count, or each would have its own.
    return normalize("NFKC", username).casefold()
