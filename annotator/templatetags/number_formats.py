"""{{ kappa|measure:3 }}, {{ share|percent }}, {{ bias|signed }} write numbers in the reader's language, or a dash."""

from django import template

from annotator.web import numbers

register = template.Library()
register.filter("measure", numbers.number)
register.filter("percent", numbers.percent)
register.filter("signed", numbers.signed)
