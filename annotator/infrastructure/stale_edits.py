"""Refuses an edit of what somebody else has changed since it was read, so that nobody's change is lost unread.

A page carries the values that it showed in a hidden field, signed. The stage function compares them with what is stored
once it holds the row's lock. What has versions of its own, such as a rubric, names its version instead.
"""

from collections.abc import Mapping
from typing import Any

from django.core import signing
from django.db.models import Model
from django.utils.translation import gettext as _

from annotator.infrastructure.refusals import Refusal

FIELD = "seen"
"""The hidden field of a form."""
_SALT = "annotator.stale-edits"

Seen = Mapping[str, Any]
"""Plain values, which JSON holds, by the names of a row's fields."""


class ChangedMeanwhile(Refusal):
    """Somebody has changed settings since the caller read them; `names` holds the names of these settings."""

    code = "changed_meanwhile"

    def __init__(self, names: list[str]) -> None:
        text = _("Somebody else has changed these settings meanwhile: %(names)s.")
        super().__init__(text % {"names": ", ".join(names)})
        self.names = names


def require_as_seen(row: Model, seen: Seen | None) -> None:
    """Raises ChangedMeanwhile if the row, which is locked, no longer has the values that the caller has seen."""
    if stale := [name for name, value in (seen or {}).items() if row.serializable_value(name) != value]:
        raise ChangedMeanwhile(stale)


def sealed(values: Seen) -> str:
    """Returns the values as the hidden field holds them."""
    return signing.dumps(dict(values), salt=_SALT, compress=True)


def unsealed(text: str) -> dict[str, Any]:
    """Returns the values of a hidden field; none where it is missing or was not written by this server."""
    try:
        values: dict[str, Any] = signing.loads(text, salt=_SALT)
    except signing.BadSignature:
        return {}
    return values
