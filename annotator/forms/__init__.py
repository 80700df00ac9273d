"""The annotator's forms."""

from annotator.forms.gold import GoldForm
from annotator.forms.rating import RatingForm
from annotator.forms.revision import filled
from annotator.forms.skips import ReportForm, SkipForm
