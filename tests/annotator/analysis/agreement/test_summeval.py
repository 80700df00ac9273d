"""A published set through the real import: three experts on 1,200 summaries (Yale-LILY/SummEval, MIT)."""

import csv
import gzip
import json
from collections import defaultdict
from itertools import chain, combinations
from typing import Any

import krippendorff
import numpy as np
import pytest

from annotator.analysis.agreement.reports import AgreementReport, report
from annotator.analysis.agreement.totals import refresh
from annotator.models import Attribute, Project, Rubric
from annotator.stages.importing import import_rows
from annotator.statistics.pair_counts import Selection
from tests.builders import NOW, json_lines
from tests.shared_data import needs_shared, shared

RATINGS, EXPECTED = shared("summeval_expert_ratings.csv.gz"), shared("summeval_expert_agreement.json")
ATTRIBUTES = ("coherence", "consistency", "fluency", "relevance")
EXPERTS = 3
ROUNDED = 1e-6
"""The expected values have six digits."""

pytestmark = [
    pytest.mark.slow,
    needs_shared(RATINGS.name),
]
Items = dict[str, dict[str, list[int]]]


@pytest.fixture(scope="module")
def items() -> Items:
    """By summary and attribute, each expert's level; 1..5 become 0..4."""
    by_rater: Items = defaultdict(lambda: defaultdict(list))
    with gzip.open(RATINGS, "rt", newline="") as file:
        for row in csv.DictReader(file):
            by_rater[row["item_id"]][row["attribute"]].append(int(row["value"]) - 1)
    return by_rater


@pytest.fixture(scope="module")
def reports() -> list[AgreementReport]:
    return []


@pytest.fixture
def summary(db: None, items: Items, reports: list[AgreementReport]) -> AgreementReport:
    """The report on a project into which the ratings were imported, by the first test for all of them."""
    if not reports:
        project = filled(items)
        refresh(project, now=NOW)
        reports.append(report(project, now=NOW))
    return reports[0]


def filled(items: Items) -> Project:
    rubric = Rubric.objects.create(key="summeval", name="SummEval")
    Attribute.objects.bulk_create(
        Attribute(rubric=rubric, key=key, name=key, description=key, levels=["x"] * 5, position=place)
        for place, key in enumerate(ATTRIBUTES)
    )
    project = Project.objects.create(slug="summeval", name="SummEval", rubric=rubric, spread_attribute="coherence")
    rows = ({"prompt": f"Sum up {name}", "response": "A summary.", **lists} for name, lists in items.items())
    assert import_rows(project, json_lines(*rows), now=NOW).created == len(items) == 1200
    return project


def expected(key: str) -> dict[str, Any]:
    return dict(json.loads(EXPECTED.read_text())[f"summeval_expert/{key}"])


@pytest.mark.parametrize("key", ATTRIBUTES)
def test_pairs_have_the_published_kappas(summary: AgreementReport, key: str) -> None:
    wanted = expected(key)["qwk_pairs"]
    kappas = {
        "~".join(f"expert{user.username[-1]}" for user in pair.annotators): pair.kappa[key] for pair in summary.pairs
    }
    assert kappas == pytest.approx(wanted, abs=ROUNDED)
    assert np.mean(list(kappas.values())) == pytest.approx(expected(key)["mean_qwk"], abs=ROUNDED)


@pytest.mark.parametrize("key", ATTRIBUTES)
def test_alpha_is_the_published_one(summary: AgreementReport, key: str) -> None:
    alpha = summary.alpha[key]
    assert alpha.ordinal == pytest.approx(expected(key)["alpha_ordinal"], abs=ROUNDED)
    assert alpha.interval == pytest.approx(expected(key)["alpha_interval"], abs=ROUNDED)


@pytest.mark.parametrize("key", ATTRIBUTES)
def test_pooled_and_paired_kappas_are_scikit_learns(summary: AgreementReport, items: Items, key: str) -> None:
    from sklearn.metrics import cohen_kappa_score

    def cohen(first: list[int], second: list[int]) -> float:
        return float(cohen_kappa_score(first, second, labels=range(5), weights="quadratic"))

    experts = [[lists[key][expert] for lists in items.values()] for expert in range(EXPERTS)]
    pairs = list(combinations(range(EXPERTS), 2))
    orders = [*pairs, *((b, a) for a, b in pairs)]
    pooled = cohen([*chain(*(experts[a] for a, _ in orders))], [*chain(*(experts[b] for _, b in orders))])
    assert summary.selections[Selection.ALL][key].kappa == pytest.approx(pooled, abs=1e-9)
    by_users = {tuple(user.username[-1] for user in pair.annotators): pair.kappa[key] for pair in summary.pairs}
    assert by_users == pytest.approx(
        {(str(a + 1), str(b + 1)): cohen(experts[a], experts[b]) for a, b in pairs}, abs=1e-9
    )


@pytest.mark.parametrize("key", ATTRIBUTES)
def test_alpha_is_the_librarys(summary: AgreementReport, items: Items, key: str) -> None:
    data = np.array([lists[key] for lists in items.values()], float).T
    wanted = krippendorff.alpha(reliability_data=data, level_of_measurement="ordinal", value_domain=range(5))
    assert summary.alpha[key].ordinal == pytest.approx(wanted, abs=1e-9)


def test_every_rating_counts(summary: AgreementReport) -> None:
    estimate = summary.selections[Selection.ALL]["coherence"]
    assert (estimate.samples, estimate.ratings) == (1200, 3600)
    assert [rater.shared for rater in summary.annotators] == [1200] * EXPERTS
