"""Knows languages by the codes that tasks have, such as `de` and `pt-br`. The names come from Unicode's CLDR."""

from functools import cache
from re import fullmatch

from babel import Locale

CODE = r"[a-z]{2,3}(-[a-z0-9]{1,8})?"


@cache
def names() -> dict[str, str]:
    """Returns the English names of all languages by their codes of two or three letters, without country or script."""
    known = Locale("en").languages
    return {code: known[code] for code in sorted(known) if fullmatch(r"[a-z]{2,3}", code)}


def code_of(text: str) -> str:
    """Returns the code of a language from a code in any case or from its English name; empty if it is unknown."""
    written = text.strip().lower().replace("_", "-")
    if fullmatch(CODE, written) and written.partition("-")[0] in names():
        return written
    return next((code for code, name in names().items() if name.lower() == written), "")
