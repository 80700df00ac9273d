"""What can go wrong between a script and the server::

    RewardloopError
    ├── NotSetUp                 no address of a server
    ├── ServerAway               no answer, or 502, 503 or 504 after the last try
    ├── UnexpectedAnswer         an answer that is not Rewardloop's: another program, a proxy, a redirect
    ├── DamagedFile              a download whose hash is not the one that the server names
    ├── WorkFailed               an import, export, release or scoring job that failed or was cancelled
    ├── TookTooLong              work that is not done within the time that the caller gave it
    └── Refused                  the server refused the call, with `status`, `detail`, `code` and `errors`
        ├── Invalid              400, 413, 415, 422: what was sent cannot be taken as it is
        ├── Unauthorized         401: no token, or one that is unknown or has ended
        ├── Forbidden            403: the token or the role does not allow this
        ├── NotFound             404, 410: there is no such thing, or not for this account
        ├── Conflict             409: the state of things does not allow this now
        ├── TooManyRequests      429: come back after `retry_after` seconds
        ├── Unavailable          503 with a reason, such as `no_worker`, and 507: an operator has to act
        └── ServerFault          500: the server's log has the error

All of them can be imported from `rewardloop` itself.
"""

from collections.abc import Mapping, Sequence

import httpx


class RewardloopError(Exception):
    """The base of all errors of this package. Its text is a sentence for people."""


class NotSetUp(RewardloopError):
    """Nobody said where the server is."""


class ServerAway(RewardloopError):
    """The server does not answer, or says that it cannot at the moment."""


class UnexpectedAnswer(RewardloopError):
    """The answer is not one of Rewardloop's REST interface."""


class DamagedFile(RewardloopError):
    """A file that arrived is not the one that the server has."""


class WorkFailed(RewardloopError):
    """Work that the server did in the background has failed, or was cancelled."""


class TookTooLong(RewardloopError):
    """Work in the background goes on, but the caller's time is over."""


class Refused(RewardloopError):
    """The server refused a call.

    `status` is HTTP's, `detail` a sentence for people, `code` a word for programs, and `errors` lists sentences by the
    dotted name of the field that they are about. `retry_after` is in seconds, where the server gives it.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int,
        code: str = "",
        errors: Mapping[str, Sequence[str]] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.code = code
        self.errors = {place: list(texts) for place, texts in (errors or {}).items()}
        self.retry_after = retry_after


class Invalid(Refused):
    """What was sent cannot be taken; `errors` names the fields."""


class Unauthorized(Refused):
    """The token is missing, unknown, revoked or too old."""


class Forbidden(Refused):
    """The token's scopes or the account's role do not allow the call."""


class NotFound(Refused):
    """There is no such thing, or the account has no access to it."""


class Conflict(Refused):
    """The call does not fit the present state, such as a second run of one project."""


class TooManyRequests(Refused):
    """The server wants fewer calls; `retry_after` says for how long."""


class Unavailable(Refused):
    """A part of the installation is missing: no worker listens, or the disk is full."""


class ServerFault(Refused):
    """The server failed; its log has the error."""


_BY_STATUS: dict[int, type[Refused]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: NotFound,
    429: TooManyRequests,
    503: Unavailable,
    507: Unavailable,
}
LONGEST_SHOWN = 500
"""Characters of a sentence that a server's error may have here."""


def error_in(response: httpx.Response) -> RewardloopError:
    """Returns the exception for an answer that is no success. The answer has to be read already."""
    status = response.status_code
    if 300 <= status < 400:
        where = response.headers.get("Location", "another address")
        return UnexpectedAnswer(f"The server sends its callers to {where}: use that as the URL.")
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict) or "detail" not in body:
        if status in {502, 503, 504}:
            return ServerAway(f"The server is not available at the moment (HTTP {status}). Try again later.")
        return UnexpectedAnswer(f"{response.request.url.host} answered HTTP {status} and no error of Rewardloop's.")
    kind = _BY_STATUS.get(status, ServerFault if status >= 500 else Invalid)
    errors = body.get("errors")
    return kind(
        str(body["detail"])[:LONGEST_SHOWN],
        status=status,
        code=str(body.get("code", "")),
        errors=errors if isinstance(errors, dict) else None,
        retry_after=retry_after(response),
    )


def retry_after(response: httpx.Response) -> float | None:
    """Returns the seconds that the server asks its callers to wait; None where it names none."""
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else None
