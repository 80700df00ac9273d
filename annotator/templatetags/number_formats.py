"""{{ kappa|measure:3 }}, {{ share|percent }}, {{ bias|signed }} write numbers in the reader's language, or a dash.

{{ left|duration }} writes a time span as people say it: 40 s, 12 min, 3 h 5 min.
"""

from datetime import timedelta

from django import template
from django.utils.translation import gettext as _

from annotator.infrastructure.web import numbers

register = template.Library()
register.filter("measure", numbers.number)
register.filter("percent", numbers.percent)
register.filter("signed", numbers.signed)


@register.filter
def duration(span: timedelta | None) -> str:
    """Returns the span in seconds below a minute, in minutes below an hour, else in hours and minutes."""
    if span is None:
        return "–"
    seconds = max(round(span.total_seconds()), 0)
    if seconds < 60:
        return _("%(seconds)s s") % {"seconds": seconds}
    minutes = round(seconds / 60)
    if minutes < 60:
        return _("%(minutes)s min") % {"minutes": minutes}
    return _("%(hours)s h %(minutes)s min") % {"hours": minutes // 60, "minutes": minutes % 60}
