"""Agreement on segments: the closed form over segments, equal to scikit-learn's kappa, with tasks resampled."""

import warnings
from itertools import permutations

import numpy as np
import pytest

from annotator.analysis.agreement.reports import report
from annotator.models import Attribute, Project, Rating, Rubric, User
from annotator.statistics.pair_counts import Selection
from tests.annotator.segmented import ASPECTS, make_segmented_project, make_segmented_task, rate_segments
from tests.builders import NOW, make_member, make_user


@pytest.fixture
def raters(db: None) -> list[User]:
    project = make_segmented_project()
    users = [make_user(name) for name in ("alice", "bob", "erin")]
    for user in users:
        make_member(project, user)
    return users


def by_pairs(table: dict[tuple[int, int], list[int | None]], levels: int) -> float:
    """Kappa over every two raters of a segment, in both orders; each segment weighs the same."""
    from sklearn.metrics import cohen_kappa_score

    first, second, weight = [], [], []
    for scores in table.values():
        there = [score for score in scores if score is not None]
        for one, other in permutations(range(len(there)), 2):
            first.append(there[one])
            second.append(there[other])
            weight.append(1 / (len(there) * (len(there) - 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(cohen_kappa_score(first, second, weights="quadratic", labels=range(levels), sample_weight=weight))


@pytest.mark.parametrize("levels", [3, 4, 5, 6, 7])
def test_kappa_equals_that_of_scikit_learn(raters: list[User], levels: int) -> None:
    project = Project.objects.get()
    Attribute.objects.filter(rubric__key="helpsteer2d").update(levels=[str(n) for n in range(levels)])
    dice = np.random.default_rng(levels)
    for number in range(6):
        make_segmented_task(project, f"t{number}", "It rains. It pours. It ends. It dries.", "One. Two.")
        for user in raters:
            rate_segments(project, user, [0, 0, 0, 0])
    table: dict[tuple[int, int], list[int | None]] = {}
    for rating in Rating.objects.order_by("pk"):
        rows = [
            [None if dice.random() < 0.2 else int(dice.integers(levels)) for _ in ASPECTS]
            for _ in rating.segment_scores or ()
        ]
        Rating.objects.filter(pk=rating.pk).update(segment_scores=rows)
        for segment, row in enumerate(rows):
            table.setdefault((rating.response_id, segment), []).append(row[1])
    measured = report(project, now=NOW).all["correctness"]
    assert measured.kappa == pytest.approx(by_pairs(table, levels), abs=1e-6)
    assert measured.samples == sum(sum(score is not None for score in scores) > 1 for scores in table.values())


def test_the_report_has_the_aspects_with_intervals(raters: list[User]) -> None:
    project = Project.objects.get()
    dice = np.random.default_rng(7)
    for number in range(12):
        make_segmented_task(project, f"t{number}")
        truth = dice.integers(0, 5, 3)
        for user in raters:
            rate_segments(project, user, np.clip(truth + dice.integers(-1, 2, 3), 0, 4).tolist())
    found = report(project, now=NOW)
    for aspect in ASPECTS:
        kappa = found.selections[Selection.ALL][aspect]
        assert kappa.kappa is not None
        assert kappa.interval is not None
        assert kappa.interval[0] < kappa.kappa < kappa.interval[1]
        assert kappa.samples == 12 * 4
    assert np.array(found.confusion["clarity"]).shape == (5, 5)
    assert found.annotators[0].shared == 24  # responses, however many segments they have


def test_segments_and_responses_side_by_side(raters: list[User]) -> None:
    """A rubric of both: the attributes of responses come first, and each has its own samples."""
    project = Project.objects.get()
    rubric = Rubric.objects.get(key="helpsteer2d")
    Attribute.objects.create(rubric=rubric, key="overall", name="Overall", levels=["No", "Yes"], position=9)
    assert list(report(project, now=NOW).all) == ["overall", *ASPECTS]


def test_own_cuts_meet_on_the_finest_common_one(raters: list[User]) -> None:
    project = Project.objects.get()
    make_segmented_task(project, "t1", "It rains. It pours.")
    rate_segments(project, raters[0], (4, 0))
    rate_segments(project, raters[1], (4, 0))
    Rating.objects.filter(annotation__assignment__annotator=raters[1]).update(cut=[[0, 19]], segment_scores=[[4] * 5])
    assert report(project, now=NOW).all["clarity"].samples == 2
