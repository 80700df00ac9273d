"""Checks which texts PostgreSQL can store: valid Unicode without NUL. Every door refuses other texts through this."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotator.infrastructure.limits import LONGEST_NOTE
from annotator.infrastructure.refusals import Refusal


@dataclass(frozen=True)
class TextFault:
    """What a text contains that cannot be stored, and its position, counted from 1."""

    what: str
    position: int


NUL = gettext_noop("a NUL character")
HALF_A_PAIR = gettext_noop("half a character pair")


class UnstorableText(Refusal):
    """A text contains NUL or half a character pair; `place` names the field or parameter."""

    status = 400
    code = "invalid"

    def __init__(self, place: str, fault: TextFault) -> None:
        words = {"place": place, "what": _(fault.what), "position": fault.position}
        super().__init__(_("%(place)s holds %(what)s at position %(position)s, which cannot be stored.") % words)
        self.errors = {place: [_("The text holds %(what)s, which cannot be stored.") % words]}


class TextTooLong(Refusal):
    """Somebody has written a longer text than is stored; `place` names the field."""

    status = 400
    code = "invalid"

    def __init__(self, place: str, longest: int) -> None:
        super().__init__(_("This text is too long. At most %(most)s characters can be stored.") % {"most": longest})
        self.errors = {place: [str(self)]}


def fault_in(text: str) -> TextFault | None:
    """Returns the first character of the text that cannot be stored, or None if all of it can."""
    if "\0" in text:
        return TextFault(NUL, text.index("\0") + 1)
    # Most texts end here: CPython knows whether a text is ASCII without looking through it.
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as wrong:
        return TextFault(HALF_A_PAIR, wrong.start + 1)
    return None


def require_storable(text: str, place: str) -> None:
    """Raises UnstorableText if PostgreSQL cannot store the text."""
    if fault := fault_in(text):
        raise UnstorableText(place, fault)


def check_written(text: str, place: str, *, longest: int = LONGEST_NOTE) -> None:
    """Checks a text that a person wrote, such as a note; raises UnstorableText or TextTooLong."""
    if len(text) > longest:
        raise TextTooLong(place, longest)
    require_storable(text, place)


def require_storable_form(form: Mapping[str, Any]) -> None:
    """Checks the names and values of a submitted form, including values in lists; raises UnstorableText."""
    for name, value in form.items():
        for text in (name, *_texts(value)):
            require_storable(text, shown_name(name))


def shown_name(name: str) -> str:
    """Returns a field's name in a form that is safe to repeat in an answer: short, ASCII and without NUL."""
    return name[:100].encode("ascii", "backslashreplace").decode().replace("\0", "\\x00")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
