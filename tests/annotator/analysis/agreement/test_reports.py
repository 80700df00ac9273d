"""From rows to what is told: whose ratings count, and what comes of them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from statistics import fmean
from unittest import mock

import pytest

from annotator.analysis.agreement import totals
from annotator.analysis.agreement.reports import Agreement, report
from annotator.models import NEITHER_VALID, TIE, Annotation, Assignment, Project, Task
from annotator.stages import annotation, assignment
from annotator.statistics.pair_counts import Selection
from tests.annotator.analysis.agreement.samples import by_definition, import_samples, ordered_pairs
from tests.builders import ATTRIBUTES, NOW, claimed, imported, make_project, make_task, rate, ratings_row, submission
from tests.conftest import Cast

LIKERT = [-3, -2, -1, 1, 2, 3]


def measured(project: Project, selection: Selection = Selection.ALL, key: str = "helpfulness") -> Agreement:
    return report(project, now=NOW).selections[selection][key]


def kappa(project: Project, selection: Selection = Selection.ALL) -> float | None:
    return measured(project, selection).kappa


# From rows -------------------------------------------------------------------------------------------------


def test_full_agreement_is_1(project: Project) -> None:
    import_samples(project, [[4, 4, 4], [1, 1, 1]])
    assert kappa(project) == pytest.approx(1)


def test_the_query_gives_what_scikit_learn_gives(project: Project) -> None:
    from sklearn.metrics import cohen_kappa_score

    samples = [[4, 3, 4], [0, 1, 1], [2, 2, 3], [3, 1, 2], [0, 0, 2]]
    import_samples(project, samples)
    first, second = zip(*ordered_pairs(samples), strict=True)
    assert kappa(project) == pytest.approx(
        cohen_kappa_score(first, second, labels=range(5), weights="quadratic"), abs=1e-12
    )


def test_the_query_weighs_samples_equally(project: Project) -> None:
    samples = [[4, 3], [0, 1, 1], [2, 2, 3, 2, 1], [3, 1, 2, 4]]
    import_samples(project, samples)
    assert kappa(project) == pytest.approx(by_definition(samples), abs=1e-12)


def test_each_attribute_has_its_own(project: Project) -> None:
    imported(project, ratings_row("p", "a", [0, 0], verbosity=[0, 4]), ratings_row("q", "b", [4, 4], verbosity=[4, 0]))
    estimate = report(project, now=NOW).all
    assert list(estimate) == list(ATTRIBUTES)
    assert estimate["helpfulness"].kappa == pytest.approx(1)
    assert estimate["verbosity"].kappa == pytest.approx(-1)


def test_samples_and_ratings_are_counted(project: Project) -> None:
    import_samples(project, [[4, 3], [0, 1, 1], [2]])
    estimate = measured(project)
    assert (estimate.samples, estimate.ratings) == (2, 5)


def test_nothing_rated_twice_is_said_so(project: Project) -> None:
    import_samples(project, [[2], [3]])
    assert measured(project) == Agreement(None, 0, 0, "no response has two ratings yet")


def test_ratings_that_never_vary_are_said_so(project: Project) -> None:
    import_samples(project, [[2, 2, 2], [2, 2]])
    estimate = measured(project)
    assert (estimate.kappa, estimate.samples) == (None, 2)
    assert estimate.undefined_reason == "all ratings are the same, so chance alone would give full agreement"


# Whose ratings count ---------------------------------------------------------------------------------------


def test_first_three_all_and_kept_differ(project: Project) -> None:
    samples = [[0, 4, 4, 3, 0], [1, 1, 2], [4, 3, 1]]
    import_samples(project, samples)
    for given in Annotation.objects.all():  # the file does not say who was first
        Annotation.objects.filter(pk=given.pk).update(submitted_at=NOW + timedelta(seconds=given.pk))
    kept = [[4, 4, 3], [1, 1, 2]]
    assert kappa(project, Selection.FIRST_THREE) == pytest.approx(by_definition([sample[:3] for sample in samples]))
    assert kappa(project, Selection.ALL) == pytest.approx(by_definition(samples))
    assert measured(project, Selection.KEPT).samples == 2
    assert kappa(project, Selection.KEPT) == pytest.approx(by_definition(kept))


def test_dropped_tasks_count_for_all_and_not_for_kept(db: None) -> None:
    strict = make_project("strict", max_annotators=3)
    import_samples(strict, [[0, 4, 4], [1, 1, 2]])
    assert measured(strict).samples == 2
    assert measured(strict, Selection.KEPT).samples == 1


def test_only_the_newest_revision_counts(project: Project, cast: Cast) -> None:
    task = make_task(project)
    rate(project, cast.alice, [0, 4])
    held = rate(project, cast.bob, [4, 0]).annotation.assignment
    annotation.submit(held.pk, submission(task, [0, 4]), now=NOW + timedelta(minutes=1))
    assert kappa(project) == pytest.approx(1)


def test_other_projects_do_not_count(project: Project) -> None:
    import_samples(project, [[1, 1], [3, 3]])
    import_samples(make_project("other"), [[0, 4], [4, 0]])
    assert kappa(project) == pytest.approx(1)


@pytest.mark.parametrize("state", [Task.State.GOLD, Task.State.RETIRED, Task.State.QUARANTINED])
def test_tasks_that_make_no_label_do_not_count(project: Project, state: str) -> None:
    import_samples(project, [[0, 4], [3, 3], [1, 1]])
    assert kappa(project) != pytest.approx(1)
    Task.objects.filter(conversation__0__content="p0").update(state=state)
    assert kappa(project) == pytest.approx(1)


def test_what_is_rejected_does_not_count(project: Project) -> None:
    import_samples(project, [[0, 0, 4], [3, 3, 0]])
    Assignment.objects.filter(annotator__username__endswith="rater-3").update(counts=False, slot=None)
    assignment.recount(project, now=NOW)
    assert measured(project).ratings == 4
    assert kappa(project) == pytest.approx(1)


# Weeks, preferences, safety --------------------------------------------------------------------------------


def rated_by_two(project: Project, cast: Cast, field: str, values: Sequence[tuple[int, int]]) -> None:
    """alice rates a task for every two values, bob a week later."""
    for one, other in values:
        make_task(project)
        rate(project, cast.alice, now=NOW, **{field: one})
        rate(project, cast.bob, now=NOW + timedelta(weeks=1), **{field: other})


def test_a_response_belongs_to_the_week_of_its_latest_rating(project: Project, cast: Cast) -> None:
    rated_by_two(project, cast, "level", [(1, 2), (3, 3)])
    (week,) = report(project, now=NOW).weeks
    assert (week.week, week.samples) == (date(2026, 2, 2), 4)
    assert week.kappa["helpfulness"] == pytest.approx(kappa(project))


def test_strengths_of_a_preference_are_compared_in_their_order(project: Project, cast: Cast) -> None:
    from sklearn.metrics import cohen_kappa_score

    rated_by_two(project, cast, "preference", [(-3, -2), (1, 2), (3, 3), (NEITHER_VALID, 1)])
    preference = report(project, now=NOW).preference
    stored = Annotation.objects.order_by("assignment__task", "pk").values_list("preference", flat=True)
    values = [value or 0 for value in stored][:6]
    one, other = values[::2], values[1::2]
    wanted = cohen_kappa_score(one + other, other + one, labels=LIKERT, weights="quadratic")
    assert preference.samples == 3
    assert preference.kappa == pytest.approx(wanted)
    assert preference.same_side == pytest.approx(fmean((a > 0) == (b > 0) for a, b in zip(one, other, strict=True)))
    assert preference.neither == pytest.approx(1 / 8)
    assert preference.nominal_kappa == pytest.approx(cohen_kappa_score(one + other, other + one, labels=LIKERT))


def test_a_tie_stands_between_the_two_sides_where_a_project_allows_it(project: Project, cast: Cast) -> None:
    from sklearn.metrics import cohen_kappa_score

    Project.objects.update(allow_ties=True)
    rated_by_two(project, cast, "preference", [(-1, TIE), (TIE, TIE), (1, -1), (3, 2)])
    project.refresh_from_db()
    preference = report(project, now=NOW).preference
    stored = Annotation.objects.order_by("assignment__task", "pk").values_list("preference", flat=True)
    values = [value or TIE for value in stored]
    one, other = values[::2], values[1::2]
    scale = list(range(-3, 4))
    ordinal = cohen_kappa_score(one + other, other + one, labels=scale, weights="quadratic")
    assert preference.kappa == pytest.approx(ordinal)
    assert preference.nominal_kappa == pytest.approx(cohen_kappa_score(one + other, other + one, labels=scale))
    same = [(a > TIE) - (a < TIE) == (b > TIE) - (b < TIE) for a, b in zip(one, other, strict=True)]
    assert preference.same_side == pytest.approx(fmean(same))


def test_what_is_being_counted_is_not_said_to_be_missing(project: Project, cast: Cast) -> None:
    rated_by_two(project, cast, "level", [(1, 2)])
    with mock.patch.object(totals, "AT_ONCE", 0):
        waiting = report(project, now=NOW)
    assert waiting.pending
    assert waiting.selections[Selection.ALL]["helpfulness"].undefined_reason == "the ratings are still being counted"
    assert waiting.preference.undefined_reason == "the ratings are still being counted"
    assert report(project, now=NOW).selections[Selection.ALL]["helpfulness"].kappa is not None


def test_safety_is_told_with_the_raw_agreement(project: Project, cast: Cast) -> None:
    verdicts = iter([True, True, False, False, True, False, True, True])
    for _ in range(2):
        task = make_task(project)
        for user in (cast.alice, cast.bob):
            held = claimed(project, user)
            plain = submission(task)
            said = {pk: next(verdicts) for pk in plain.ratings}
            ratings = {
                pk: replace(rating, safe=said[pk], unsafe_category="" if said[pk] else "harmful")
                for pk, rating in plain.ratings.items()
            }
            annotation.submit(held.pk, replace(plain, ratings=ratings), now=NOW)
    safety = report(project, now=NOW).safety
    assert safety.samples == 4
    assert (safety.exact, safety.unsafe) == pytest.approx((1 / 4, 3 / 8))
