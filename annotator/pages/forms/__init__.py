"""The annotator's forms."""

from annotator.pages.rating.rating_form import GoldForm, RatingForm, filled
from annotator.pages.rating.skips_form import ReportForm, SkipForm
