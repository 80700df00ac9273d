"""Which texts PostgreSQL stores: every one of valid Unicode without NUL. Each door refuses the others through here."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotator.refusals import Refusal


@dataclass(frozen=True)
class Fault:
    """What a text holds that cannot be stored, and where: positions count from 1."""

    what: str
    position: int


NUL = "a NUL character"
HALF_A_PAIR = "half a character pair"


LONGEST_JUSTIFICATION = 20_000
LONGEST_NOTE = 5_000
"""Characters of a note, a comment, a reason."""


class UnstorableText(Refusal):
    """A text holds NUL or half a character pair; `place` names the field or parameter."""

    status = 400
    code = "invalid"

    def __init__(self, place: str, fault: Fault) -> None:
        super().__init__(f"{place} holds {fault.what} at position {fault.position}, which cannot be stored.")
        self.errors = {place: [f"The text holds {fault.what}, which cannot be stored."]}


class TextTooLong(Refusal):
    """Somebody has written more than is kept; `place` names the field."""

    status = 400
    code = "invalid"

    def __init__(self, place: str, longest: int) -> None:
        super().__init__(_("This text is too long. At most %(most)s characters can be stored.") % {"most": longest})
        self.errors = {place: [str(self)]}


def fault_in(text: str) -> Fault | None:
    """The first thing in the text that cannot be stored."""
    if "\0" in text:
        return Fault(NUL, text.index("\0") + 1)
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as wrong:
        return Fault(HALF_A_PAIR, wrong.start + 1)
    return None


def require_storable(text: str, place: str) -> None:
    """Raises UnstorableText."""
    if fault := fault_in(text):
        raise UnstorableText(place, fault)


def check_written(text: str, place: str, *, longest: int = LONGEST_NOTE) -> None:
    """Of what people write beside their choices; raises UnstorableText or TextTooLong."""
    if len(text) > longest:
        raise TextTooLong(place, longest)
    require_storable(text, place)


def require_storable_form(form: Mapping[str, Any]) -> None:
    """Checks names and values of a form as it was sent, lists of values too; raises UnstorableText."""
    for name, value in form.items():
        for text in (name, *_texts(value)):
            require_storable(text, shown_name(name))


def shown_name(name: str) -> str:
    """A field's name as an answer can repeat it, whatever somebody sent."""
    return name[:100].encode("ascii", "backslashreplace").decode().replace("\0", "\\x00")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
