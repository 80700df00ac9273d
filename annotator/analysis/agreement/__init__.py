"""Measures how far annotators agree: quadratic-weighted kappa, with equal weight for samples of few and many raters.

`counted_ratings` reads the ratings that count, `pair_counts` turns them into counts of pairs, `totals` stores these and
keeps them up to date, `measures` computes the statistics, `reports` puts them together for the doors.
"""
