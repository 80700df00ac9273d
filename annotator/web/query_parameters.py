"""Query parameters, read for every door: numbers with bounds, choices, flags, texts.

REST refuses what it cannot read: a misspelt parameter must not silently leave a default in force. Pages are reached by
addresses that people edit and keep: to them what cannot be read is as if it were absent (`number_in`, `choice_in`).
NUL never comes this far: annotator/web/storable_requests.py refuses it for every address.
"""

from collections.abc import Iterable, Mapping

from annotator.refusals import Refusal

Parameters = Mapping[str, str]
LARGEST = 2**63 - 1
"""Of a number: what the database's ids go up to."""
TRUE, FALSE = {"1", "true", "t", "yes", "y", "on"}, {"0", "false", "f", "no", "n", "off"}
_DIGITS = len(str(LARGEST))


class BadParameter(Refusal):
    """A query parameter is not what it has to be; the message says what that is."""

    status = 400
    code = "invalid"

    def __init__(self, name: str, wanted: str) -> None:
        super().__init__(f"{name}: {wanted}")
        self.errors = {name: [wanted]}


def as_number(text: str, *, most: int = LARGEST) -> int | None:
    """A whole number from 0 as an address holds it; None for anything else, numbers beyond `most` among it."""
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        return None
    return int(text) if int(text) <= most else None


def number_in(sent: Parameters, name: str, *, most: int = LARGEST) -> int | None:
    """The number that a page was asked for, if it is one."""
    return as_number(sent.get(name, ""), most=most)


def choice_in(sent: Parameters, name: str, options: Iterable[str], *, default: str = "") -> str:
    """The option that a page was asked for, if there is such a one."""
    wanted = sent.get(name, default)
    return wanted if wanted in options else default


def number(sent: Parameters, name: str, *, most: int = LARGEST) -> int | None:
    """The number, or None if the parameter is absent. Raises BadParameter."""
    if name not in sent:
        return None
    parsed = as_number(sent[name], most=most)
    if parsed is None:
        raise BadParameter(name, f"Write a whole number from 0 to {most}.")
    return parsed


def choice(sent: Parameters, name: str, options: Iterable[str], *, default: str) -> str:
    """Raises BadParameter, naming the options."""
    wanted, known = sent.get(name, default), list(options)
    if wanted not in known:
        raise BadParameter(name, f"Known are {', '.join(known)}.")
    return wanted


def flag(sent: Parameters, name: str) -> bool:
    """1, true, yes or on against 0, false, no or off; absent means no. Raises BadParameter."""
    wanted = sent.get(name, "0")
    if wanted.lower() not in TRUE | FALSE:
        raise BadParameter(name, f"Write 1 or 0, not {wanted[:40]!r}.")
    return wanted.lower() in TRUE


def text(sent: Parameters, name: str, *, longest: int = 200) -> str:
    """Empty where it is absent; raises BadParameter for one that is longer than anything it could name."""
    value = sent.get(name, "")
    if len(value) > longest:
        raise BadParameter(name, f"Write at most {longest} characters.")
    return value
