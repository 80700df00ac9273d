"""Numbers as people read them: in the reader's language, rounded, with a real minus sign, or a dash where undefined."""

from django.utils.formats import number_format

UNDEFINED = "–"


def number(value: float | None, digits: int = 2) -> str:
    """Rounded, where Django's own formats cut digits off; what rounds to 0 has no sign."""
    if value is None:
        return UNDEFINED
    written = str(number_format(round(value, digits) + 0.0, digits, force_grouping=True))
    return written.replace("-", "\N{MINUS SIGN}")


def percent(share: float | None, digits: int = 0) -> str:
    """A share of 1 as per cent, with its sign."""
    return UNDEFINED if share is None else f"{number(100 * share, digits)}\N{NO-BREAK SPACE}%"


def signed(value: float | None, digits: int = 2) -> str:
    """A difference, which has a plus where it is one."""
    return f"+{number(value, digits)}" if value is not None and round(value, digits) > 0 else number(value, digits)
