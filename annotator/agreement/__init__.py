"""Measures how far annotators agree: quadratic-weighted kappa, with equal weight for samples of few and many raters.

`counted_ratings` reads the ratings that count, `pair_counts` turns them into counts of pairs, `totals` stores these,
`totals_refresh` keeps them up to date, `measures` and `intervals` compute the statistics, `reports` and `raters` put
them together for the doors.
"""

from annotator.agreement.pair_counts import Selection
from annotator.agreement.raters import Pair, Rater, Week, rater_called
from annotator.agreement.reports import Agreement, Report, agreement, as_json, kappas, report, trend
from annotator.agreement.totals_refresh import rebuild, refresh, refresh_all
from annotator.agreement.two_rater_kappa import AgainstExperts, against_experts, paired_kappa
