"""Says in the reader's language what was stored in English, before anybody knew who would read it."""

import re
from collections.abc import Sequence
from functools import cache

from django.utils.translation import gettext as _

from annotator.web.numbers import number

_FIELD = re.compile(r"%\((\w+)\)s")
_WRITTEN_IN_ENGLISH = re.compile(r"-?(?:\d+\.(?P<digits>\d+)|\d{1,3}(?:,\d{3})+)")


def in_readers_language(text: str, known: Sequence[str]) -> str:
    """Returns the text translated if it is one of the known sentences, and as it is if not.

    The fields of a sentence are written %(name)s, and what they hold may be a known sentence again. Where a text could
    be one of several, the first one counts.
    """
    for sentence in known:
        if match := _pattern(sentence).fullmatch(text):
            return _(sentence) % {name: _value(value, known) for name, value in match.groupdict().items()}
    return text


@cache
def _pattern(sentence: str) -> re.Pattern[str]:
    # Split by a pattern with a group, every other piece is the name of a field.
    pieces = _FIELD.split(sentence)
    return re.compile("".join(f"(?P<{p}>.+)" if i % 2 else re.escape(p) for i, p in enumerate(pieces)), re.DOTALL)


def _value(text: str, known: Sequence[str]) -> str:
    if written := _WRITTEN_IN_ENGLISH.fullmatch(text):
        return number(float(text.replace(",", "")), len(written["digits"] or ""))
    return in_readers_language(text, known)
