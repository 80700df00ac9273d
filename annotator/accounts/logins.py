"""Whether a password may be tried, and what a wrong one leads to: the same for every door that asks for one.

Wrong passwords are counted in the database, so that all processes count together:

- From one address for one account a few. So many lead to a wait, for this address alone.
- From one address for all accounts twenty times as many.
- For one account from everywhere ten times as many. Then an address has one wrong password for it instead of a few:
  nobody who knows the password waits because of what others try elsewhere.

A browser that has logged in to the account before holds a signed cookie that says so. It has a count of its own and
none of the above, so that nobody behind the same address can keep it out. A password that is right counts nothing.
Guesses at one moment are counted after they were looked at: so many more may pass as the web has threads.
"""

import json
import logging
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

from annotator import audit
from annotator.db.clock import database_now
from annotator.db.statements import Statement
from annotator.models import LoginFailures, User
from annotator.refusals import Refusal

COOKIE = "known_browser"
COOKIE_SECONDS = 180 * 24 * 60 * 60
ACCOUNT = "account"
"""What is counted for an account from everywhere; that it is full lowers the limit of each address."""
ACCOUNTS_KNOWN = 5
"""Accounts that one browser is remembered for, the latest first."""

_log = logging.getLogger(__name__)


class TooManyFailures(Refusal):
    """So many wrong passwords came that no more are looked at for a while."""

    status = 429
    code = "too_many_failures"

    def __init__(self, until: datetime) -> None:
        seconds = max(1, ceil((until - database_now()).total_seconds()))
        minutes = ceil(seconds / 60)
        text = ngettext(
            "Too many wrong passwords. Try again in %(minutes)d minute.",
            "Too many wrong passwords. Try again in %(minutes)d minutes.",
            minutes,
        )
        super().__init__(text % {"minutes": minutes})
        self.headers = {"Retry-After": str(seconds)}


class LimitedBackend(ModelBackend):
    """Django's accounts and passwords, within the limits. Without a request there is no address, and no way in."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> User | None:
        if request is None or username is None or password is None:
            return None
        attempt = Attempt.of(request, username)
        attempt.require_room()
        user = super().authenticate(request, username=username, password=password)
        attempt.settle(right=user is not None)
        return user if isinstance(user, User) else None


def knows_password(request: HttpRequest, user: User, password: str) -> bool:
    """Whether somebody who is logged in knows the account's password, within the limits."""
    attempt = Attempt.of(request, user.username)
    attempt.require_room()
    right = user.check_password(password)
    attempt.settle(right=right)
    return right


def note_login(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """After a login on a page: an entry, and a cookie by which the browser is known the next time."""
    audit.record("login.succeeded", f"account {user.username}", address=address_of(request))
    _log.info("login of %s from %s", user.username, address_of(request))
    browser, accounts = _known_browser(request)
    named = [_plain(user.username), *(account for account in accounts if account != _plain(user.username))]
    response.set_cookie(
        COOKIE,
        signing.dumps([browser or get_random_string(22), named[:ACCOUNTS_KNOWN]], salt=__name__),
        max_age=COOKIE_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def note_logout(request: HttpRequest) -> None:
    """Before a session ends by its owner's will."""
    if isinstance(request.user, User):
        audit.record("login.ended", f"account {request.user.username}", address=address_of(request))
        _log.info("logout of %s from %s", request.user.username, address_of(request))


# One attempt -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Count:
    """Wrong passwords that have something in common, and how many there may be."""

    over: str
    key: str
    most: int

    @classmethod
    def of(cls, *what: str, over: str, most: int) -> "Count":
        """The key is a digest: among the names are passwords that were typed in the wrong field."""
        return cls(over, salted_hmac(__name__, json.dumps([over, *what]), algorithm="sha256").hexdigest(), most)


@dataclass(frozen=True)
class Attempt:
    """Somebody at an address, perhaps in a browser that is known, who gives a password for an account."""

    username: str
    address: str
    browser: str
    "What its cookie says; empty for one that has not logged in to this account."

    @classmethod
    def of(cls, request: HttpRequest, username: str) -> "Attempt":
        browser, accounts = _known_browser(request)
        return cls(username, address_of(request), browser if _plain(username) in accounts else "")

    def require_room(self) -> None:
        """Raises TooManyFailures where the password is not to be looked at."""
        own, *others = self._counts()
        keys = [count.key for count in (own, *others)]
        failed = LoginFailures.objects.filter(key__in=keys, ends_at__gt=database_now()).in_bulk()
        full = {count.over for count in (own, *others) if count.key in failed and failed[count.key].count >= count.most}
        if ACCOUNT in full and own.key in failed:
            full.add(own.over)
        waits = [failed[count.key].ends_at for count in (own, *others) if count.over in full - {ACCOUNT}]
        if waits:
            raise TooManyFailures(max(waits))

    def settle(self, *, right: bool) -> None:
        """Counts a wrong password; a right one wipes out what this attempt's own count holds."""
        own, *others = self._counts()
        if right:
            LoginFailures.objects.filter(key=own.key).delete()
            return
        wait = timedelta(minutes=settings.LOGIN_WAIT_MINUTES)
        failed: dict[str, int] = dict(_COUNT.rows(keys=[count.key for count in (own, *others)], wait=wait))
        self._note("login.failed", "wrong password")
        for count in (own, *others):
            if failed[count.key] == count.most:
                self._note("login.locked", "too many wrong passwords", count)

    def _counts(self) -> list[Count]:
        """The first is this attempt's own."""
        few, account, network = settings.LOGIN_FAILURES, _plain(self.username), _network(self.address)
        if self.browser:
            return [Count.of(account, self.browser, over="account and browser", most=2 * few)]
        return [
            Count.of(account, network, over="account and address", most=few),
            Count.of(network, over="address", most=20 * few),
            Count.of(account, over=ACCOUNT, most=10 * few),
        ]

    def _note(self, action: str, text: str, full: Count | None = None) -> None:
        """Without a name that no account has: it may be a password."""
        known = User.objects.filter(username=self.username).exists()
        who = f"account {self.username}" if known else "an account that does not exist"
        if full:
            audit.record(action, who, address=self.address, over=full.over, limit=full.most)
        else:
            audit.record(action, who, address=self.address)
        _log.warning("%s for %s from %s", text, who, self.address)


# In the order of the keys, so that no two wait for each other.
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
    """Takes away counts that have begun anew, and sessions that are over."""
    failures, _ = LoginFailures.objects.filter(ends_at__lte=now).delete()
    sessions, _ = Session.objects.filter(expire_date__lte=now).delete()
    return failures + sessions


# Who it is ---------------------------------------------------------------------------------------------------


def address_of(request: HttpRequest) -> str:
    """Where a request comes from: as our proxies say, where there are any, else whoever connected to us."""
    direct = str(request.META.get("REMOTE_ADDR", ""))
    forwarded = [part.strip() for part in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")]
    if not settings.TRUSTED_PROXIES or len(forwarded) < settings.TRUSTED_PROXIES:
        return direct
    try:
        return str(ip_address(forwarded[-settings.TRUSTED_PROXIES]))
    except ValueError:
        return direct


def _network(address: str) -> str:
    """What one customer of a provider has at least: an IPv4 address, or 64 bits of an IPv6 one."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    return str(parsed.ipv4_mapped or ip_network((parsed, 64), strict=False))


def _known_browser(request: HttpRequest) -> tuple[str, list[str]]:
    """What the cookie says: a browser's number and the accounts that logged in there."""
    try:
        browser, accounts = signing.loads(request.COOKIES.get(COOKIE, ""), salt=__name__, max_age=COOKIE_SECONDS)
    except signing.BadSignature:
        return "", []
    return browser, accounts


def _plain(username: str) -> str:
    return normalize("NFKC", username).casefold()
