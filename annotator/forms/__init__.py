"""The annotator's forms."""

from annotator.forms.rating import GoldForm, RatingForm, filled
from annotator.forms.skips import ReportForm, SkipForm
