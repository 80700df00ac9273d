"""Knows languages by the codes that tasks have, such as `de` and `pt-br`. The names come from Unicode's CLDR."""

from functools import cache, lru_cache
from operator import itemgetter
from re import fullmatch

from babel import Locale

LONGEST = 16
"""Most characters of a code."""
CODE = r"[a-z]{2,3}(-[a-z0-9]{1,8})?"


@cache
def names() -> dict[str, str]:
    """Returns the English names of all languages by their codes of two or three letters, without country or script."""
    known = Locale("en").languages
    return {code: known[code] for code in sorted(known) if fullmatch(r"[a-z]{2,3}", code)}


COMMON = (
    "ar bg bn cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv ms nl no pl pt ro ru sk sl sr sv sw ta th tr "
    "uk ur vi zh"
)
"""Languages that are suggested where one is asked for. Any other may be named."""


def common() -> list[tuple[str, str]]:
    """Returns the codes of the suggested languages with their English names, by name."""
    return sorted(((code, names()[code]) for code in COMMON.split()), key=itemgetter(1))


@lru_cache(maxsize=1024)
def code_of(text: str) -> str:
    """Returns the code of a language from a code in any case or from its English name; empty if it is unknown."""
    written = text.strip().lower().replace("_", "-")
    if fullmatch(CODE, written) and written.partition("-")[0] in names():
        return written
    return next((code for code, name in names().items() if name.lower() == written), "")
