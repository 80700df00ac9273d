"""{{ kappa|measure:3 }}, {{ share|percent }}, {{ bias|signed }}: numbers in the reader's language, or a dash."""

from django import template
from django.utils.formats import number_format

register = template.Library()
UNDEFINED = "–"


@register.filter
def measure(value: float | None, digits: int = 2) -> str:
    # Django cuts digits off; and what rounds to 0 has no sign.
    if value is None:
        return UNDEFINED
    return number_format(round(value, digits) + 0.0, digits).replace("-", "\N{MINUS SIGN}")


@register.filter
def percent(value: float | None, digits: int = 0) -> str:
    return UNDEFINED if value is None else f"{measure(100 * value, digits)}\N{NO-BREAK SPACE}%"


@register.filter
def signed(value: float | None, digits: int = 2) -> str:
    if value is None:
        return UNDEFINED
    return f"+{measure(value, digits)}" if round(value, digits) > 0 else measure(value, digits)
