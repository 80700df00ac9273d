"""Reads query parameters for every door: numbers with bounds, choices, flags and texts.

REST refuses values that it cannot read, so that a misspelt one does not silently leave a default in force. Pages treat
them as absent (`number_in`, `choice_in`), because people edit and keep their addresses. NUL never comes this far:
annotator/infrastructure/web/middleware.py refuses it for every address.
"""

from collections.abc import Iterable, Mapping

from annotator.infrastructure.refusals import Refusal

Parameters = Mapping[str, str]
LARGEST = 2**63 - 1
"""The largest number that is read, which is the largest id that the database can hold."""
TRUE, FALSE = {"1", "true", "t", "yes", "y", "on"}, {"0", "false", "f", "no", "n", "off"}
_DIGITS = len(str(LARGEST))


class BadParameter(Refusal):
    """A query parameter has an invalid value; the message says which values are valid."""

    status = 400
    code = "invalid"

    def __init__(self, name: str, wanted: str) -> None:
        super().__init__(f"{name}: {wanted}")
        self.errors = {name: [wanted]}


def as_number(text: str, *, most: int = LARGEST) -> int | None:
    """Returns a whole number from 0 to `most`, or None if the text is anything else."""
    # The length comes first, as int() raises ValueError for a text of many thousand digits.
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        return None
    return int(text) if int(text) <= most else None


def number_in(parameters: Parameters, name: str, *, most: int = LARGEST) -> int | None:
    """Returns the number in a page's parameter, or None if it is absent or no valid number."""
    return as_number(parameters.get(name, ""), most=most)


def choice_in(parameters: Parameters, name: str, options: Iterable[str], *, default: str = "") -> str:
    """Returns the option in a page's parameter, or the default if it is absent or unknown."""
    value = parameters.get(name, default)
    return value if value in options else default


def number(parameters: Parameters, name: str, *, most: int = LARGEST) -> int | None:
    """Returns the number, or None if the parameter is absent. Raises BadParameter."""
    if name not in parameters:
        return None
    parsed = as_number(parameters[name], most=most)
    if parsed is None:
        raise BadParameter(name, f"Write a whole number from 0 to {most}.")
    return parsed


def choice(parameters: Parameters, name: str, options: Iterable[str], *, default: str) -> str:
    """Returns the option, or the default if the parameter is absent. Raises BadParameter, which names the options."""
    value, known = parameters.get(name, default), list(options)
    if value not in known:
        raise BadParameter(name, f"Known are {', '.join(known)}.")
    return value


def flag(parameters: Parameters, name: str) -> bool:
    """Reads 1, true, yes or on as true, and 0, false, no or off as false; absent means false. Raises BadParameter."""
    value = parameters.get(name, "0")
    if value.lower() not in TRUE | FALSE:
        raise BadParameter(name, f"Write 1 or 0, not {value[:40]!r}.")
    return value.lower() in TRUE


def text(parameters: Parameters, name: str, *, longest: int = 200) -> str:
    """Returns the text, which is empty if the parameter is absent. Raises BadParameter for a longer one."""
    value = parameters.get(name, "")
    if len(value) > longest:
        raise BadParameter(name, f"Write at most {longest} characters.")
    return value
