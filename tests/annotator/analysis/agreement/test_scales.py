"""What a report says of random ratings on 3, 5 and 7 levels is what scikit-learn and krippendorff say of them.

The ratings come in by the import, the protocol settles them, and the report is read from the database. The libraries
are given the rows of ratings, so that nothing of annotator/agreement is taken for granted.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, permutations
from operator import attrgetter
from typing import Any

import krippendorff
import numpy as np
import pytest
from scipy.stats import spearmanr

from annotator.analysis.agreement.reports import AgreementReport, report
from annotator.analysis.agreement.totals import refresh
from annotator.analysis.quality import own_work
from annotator.analysis.quality.own_work import PeerAgreement
from annotator.analysis.quality.person_work import latest_assignments
from annotator.managing import project_settings
from annotator.managing.preset_rubrics import AttributeText, RubricText
from annotator.models import Consensus, Project, Rating, Task, User
from annotator.statistics.pair_counts import Selection
from tests.builders import NOW, imported

LEVELS = {"tone": 3, "depth": 5, "trust": 7}
PROMPTS = 40
EXACT = 1e-9
RESPONSE = attrgetter("response_id")

by_attribute = pytest.mark.parametrize("key", LEVELS)
by_seed = pytest.mark.parametrize("filled", [1, 2, 3], indirect=True, ids="seed {}".format)


def rubric() -> RubricText:
    return RubricText(
        "scales",
        "Scales",
        tuple(
            AttributeText(key, key.capitalize(), tuple(f"{key} {level}" for level in range(number)))
            for key, number in LEVELS.items()
        ),
    )


@dataclass(frozen=True)
class Sample:
    """Everybody's ratings of one response, in the order in which they came, and which of them make the label."""

    complete: bool
    raters: tuple[str, ...]
    scores: tuple[dict[str, int], ...]
    kept: tuple[bool, ...]

    def ratings(self, key: str, selection: Selection = Selection.ALL) -> list[int]:
        chosen = {
            Selection.FIRST_THREE: [place < 3 for place in range(len(self.scores))],
            Selection.ALL: [True] * len(self.scores),
            Selection.KEPT: self.kept,
        }[selection]
        return [scores[key] for scores, taken in zip(self.scores, chosen, strict=True) if taken]


@dataclass(frozen=True)
class Filled:
    """The report on a project, what its annotators' own pages say, and the ratings as they lie in the database."""

    report: AgreementReport
    own: Sequence[tuple[User, PeerAgreement]]
    samples: Sequence[Sample]

    def of(self, key: str, selection: Selection = Selection.ALL) -> list[list[int]]:
        """The ratings of each response with two or more."""
        samples = [sample.ratings(key, selection) for sample in self.samples]
        return [sample for sample in samples if len(sample) > 1]


@pytest.fixture(scope="module")
def known() -> dict[int, Filled]:
    return {}


@pytest.fixture
def filled(request: pytest.FixtureRequest, db: None, known: dict[int, Filled]) -> Filled:
    """The first test that needs it fills the project for all of them."""
    seed = request.param
    if seed not in known:
        project = project_settings.create({"slug": "scales", "name": "Scales", "rubric": rubric()})
        imported(project, *rows(random.Random(seed)))
        refresh(project, now=NOW)
        made = report(project, now=NOW)
        people = [rater.annotator for rater in made.annotators]
        own = [(user, own_work.agreement_with_peers(project, latest_assignments(user), now=NOW)) for user in people]
        known[seed] = Filled(made, own, list(stored(project)))
    return known[seed]


def rows(dice: random.Random) -> Iterator[dict[str, Any]]:
    """Two responses to each prompt, rated by three to five people who mostly stay near the middle of their opinions."""
    for number in range(PROMPTS):
        raters = dice.randint(3, 5)
        for response in range(2):
            share = dice.random()
            lists = {
                key: [min(levels - 1, max(0, round((levels - 1) * dice.gauss(share, 0.25)))) for _ in range(raters)]
                for key, levels in LEVELS.items()
            }
            yield {"prompt": f"Question {number}?", "response": f"Answer {response}.", **lists}


def stored(project: Project) -> Iterator[Sample]:
    kept = set(chain.from_iterable(Consensus.objects.filter(drop_reason="").values_list("kept", flat=True)))
    of_project = Rating.objects.filter(response__task__project=project)
    # In the order of submission: what was submitted at one moment is ordered by what it says.
    ratings = of_project.order_by("response_id", "annotation__content_hash", "annotation_id")
    for _, group in groupby(ratings.select_related("response__task", "annotation__assignment__annotator"), RESPONSE):
        given = list(group)
        yield Sample(
            given[0].response.task.state == Task.State.COMPLETE,
            tuple(rating.annotation.assignment.annotator.username for rating in given),
            tuple(rating.scores for rating in given),
            tuple(rating.annotation_id in kept for rating in given),
        )


@dataclass(frozen=True)
class Pairs:
    """Every two ratings of a response, in both orders; those of one response weigh 1 together."""

    first: list[int]
    second: list[int]
    weights: list[float]

    @classmethod
    def of(cls, samples: Sequence[Sequence[int]]) -> "Pairs":
        rows = [
            (one, other, 1 / (len(sample) * (len(sample) - 1)))
            for sample in samples
            for one, other in permutations(sample, 2)
        ]
        first, second, weights = zip(*rows, strict=True)
        return cls(list(first), list(second), list(weights))


def cohen(first: Sequence[int], second: Sequence[int], levels: int, **options: Any) -> float:
    from sklearn.metrics import cohen_kappa_score

    return float(cohen_kappa_score(first, second, labels=range(levels), weights="quadratic", **options))


# The three columns that HelpSteer2 publishes ---------------------------------------------------------------


@by_seed
def test_the_three_columns_differ(filled: Filled) -> None:
    """Else the tests below would compare one column three times."""
    sizes = {selection: sum(map(len, filled.of("tone", selection))) for selection in Selection}
    assert sizes[Selection.KEPT] < sizes[Selection.FIRST_THREE] < sizes[Selection.ALL]
    assert any(not sample.ratings("tone", Selection.KEPT) for sample in filled.samples), "some tasks are dropped"


@by_seed
@by_attribute
@pytest.mark.parametrize("selection", Selection)
def test_kappa_of_each_column_is_scikit_learns(filled: Filled, selection: Selection, key: str) -> None:
    samples = filled.of(key, selection)
    pairs = Pairs.of(samples)
    estimate = filled.report.selections[selection][key]
    assert estimate.kappa == pytest.approx(
        cohen(pairs.first, pairs.second, LEVELS[key], sample_weight=pairs.weights), abs=EXACT
    )
    assert (estimate.samples, estimate.ratings) == (len(samples), sum(map(len, samples)))
    assert estimate.kappa
    assert estimate.interval
    assert estimate.interval[0] < estimate.kappa < estimate.interval[1]


# The other measures of all ratings -------------------------------------------------------------------------


@by_seed
@by_attribute
def test_alpha_is_krippendorffs(filled: Filled, key: str) -> None:
    samples = filled.of(key)
    table = np.array([[*sample, *[np.nan] * (5 - len(sample))] for sample in samples], float).T
    alpha: Callable[..., Any] = krippendorff.alpha
    expected = {
        level: alpha(reliability_data=table, level_of_measurement=level, value_domain=range(LEVELS[key]))
        for level in ("ordinal", "interval")
    }
    measured = filled.report.alpha[key]
    assert measured.ordinal == pytest.approx(expected["ordinal"], abs=EXACT)
    assert measured.interval == pytest.approx(expected["interval"], abs=EXACT)


@by_seed
@by_attribute
def test_shares_and_confusion_are_scikit_learns(filled: Filled, key: str) -> None:
    from sklearn.metrics import accuracy_score, confusion_matrix

    pairs, report = Pairs.of(filled.of(key)), filled.report
    assert report.exact[key] == pytest.approx(
        accuracy_score(pairs.first, pairs.second, sample_weight=pairs.weights), abs=EXACT
    )
    near = [abs(one - other) <= 1 for one, other in zip(pairs.first, pairs.second, strict=True)]
    assert report.within_one[key] == pytest.approx(np.average(near, weights=pairs.weights), abs=EXACT)
    assert report.confusion[key] == confusion_matrix(pairs.first, pairs.second, labels=range(LEVELS[key])).tolist()


@by_seed
@by_attribute
def test_spearman_is_scipys(filled: Filled, key: str) -> None:
    # Each pair so often that every response weighs the same: 60 is divisible by the pairs of 3, 4 and 5 ratings.
    pairs = Pairs.of(filled.of(key))
    times = np.rint(np.array(pairs.weights) * 60).astype(int)
    expected = spearmanr(np.repeat(pairs.first, times), np.repeat(pairs.second, times)).statistic
    assert filled.report.spearman[key] == pytest.approx(expected, abs=EXACT)


# People ----------------------------------------------------------------------------------------------------


@by_seed
@by_attribute
def test_annotators_against_their_peers_are_scikit_learns(filled: Filled, key: str) -> None:
    from sklearn.metrics import accuracy_score

    assert len(filled.report.annotators) == 5
    for rater in filled.report.annotators:
        mine, others = against_peers(filled.samples, rater.annotator, key)
        assert rater.kappa[key] == pytest.approx(cohen(mine, others, LEVELS[key]), abs=EXACT)
        assert rater.exact[key] == pytest.approx(accuracy_score(mine, others), abs=EXACT)
        assert rater.bias[key] == pytest.approx(np.mean(mine) - np.mean(others), abs=EXACT)


def against_peers(samples: Sequence[Sample], user: User, key: str) -> tuple[list[int], list[int]]:
    """The annotator's rating of each response once for each peer who rated it, and the peers' ratings."""
    mine, others = [], []
    for sample in samples:
        if user.username in sample.raters:
            place = sample.raters.index(user.username)
            peers = [score for other, score in enumerate(sample.ratings(key)) if other != place]
            mine += [sample.scores[place][key]] * len(peers)
            others += peers
    return mine, others


@by_seed
@by_attribute
def test_pairs_of_annotators_are_scikit_learns(filled: Filled, key: str) -> None:
    assert len(filled.report.pairs) == 10
    for pair in filled.report.pairs:
        names = [user.username for user in pair.annotators]
        both = [sample for sample in filled.samples if set(names) <= set(sample.raters)]
        one, other = ([sample.scores[sample.raters.index(name)][key] for sample in both] for name in names)
        assert pair.shared == len(both)
        assert pair.kappa[key] == pytest.approx(cohen(one, other, LEVELS[key]), abs=EXACT)


@by_seed
@by_attribute
def test_a_week_is_scikit_learns(filled: Filled, key: str) -> None:
    """All ratings of an import are of one week."""
    (week,) = filled.report.weeks
    pairs = Pairs.of(filled.of(key))
    assert week.kappa[key] == pytest.approx(
        cohen(pairs.first, pairs.second, LEVELS[key], sample_weight=pairs.weights), abs=EXACT
    )


@by_seed
@by_attribute
def test_ones_own_page_is_scikit_learns_of_complete_tasks(filled: Filled, key: str) -> None:
    """Open tasks are left out, as one may still change one's rating."""
    complete = [sample for sample in filled.samples if sample.complete]
    assert len(complete) < len(filled.samples)
    for user, own in filled.own:
        assert own.overall[key] == pytest.approx(cohen(*against_peers(complete, user, key), LEVELS[key]), abs=EXACT)
