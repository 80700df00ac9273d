"""Formats numbers for people: in their language, rounded, with a real minus sign, or a dash if undefined."""

from django.utils.formats import number_format

UNDEFINED = "–"


def number(value: float | None, digits: int = 2) -> str:
    """Returns the number rounded to `digits` decimal places, or a dash for None."""
    if value is None:
        return UNDEFINED
    # Rounded here, as Django's formats cut digits off. Adding 0.0 turns -0.0 into 0.0, which has no sign.
    written = str(number_format(round(value, digits) + 0.0, digits, force_grouping=True))
    return written.replace("-", "\N{MINUS SIGN}")


def percent(share: float | None, digits: int = 0) -> str:
    """Returns a share of 1 in per cent, with the per cent sign."""
    return UNDEFINED if share is None else f"{number(100 * share, digits)}\N{NO-BREAK SPACE}%"


def signed(value: float | None, digits: int = 2) -> str:
    """Returns a difference, with a plus sign if it is positive after rounding."""
    return f"+{number(value, digits)}" if value is not None and round(value, digits) > 0 else number(value, digits)
