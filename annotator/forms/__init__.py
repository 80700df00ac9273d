"""The annotator's forms."""

from annotator.forms.passing import ReportForm, SkipForm
from annotator.forms.rating import RatingForm

__all__ = ["RatingForm", "ReportForm", "SkipForm"]
