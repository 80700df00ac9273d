"""The annotator's forms."""

from annotator.forms.gold import GoldForm
from annotator.forms.passing import ReportForm, SkipForm
from annotator.forms.rating import RatingForm
from annotator.forms.revising import filled

__all__ = ["GoldForm", "RatingForm", "ReportForm", "SkipForm", "filled"]
