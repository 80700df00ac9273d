"""Kappa: the closed form against scikit-learn, then the rows that count."""

import csv
import gzip
import os
import random
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotator import annotation
from annotator.agreement import Agreement, Selection, against_experts, agreement, paired_kappa, weighted_kappa
from annotator.models import Annotation, Assignment, Origin, Project, Rating, Response, Task, User
from tests.builders import ATTRIBUTES, NOW, imported, make_project, make_task, rate, ratings_row, submission
from tests.conftest import Cast

SHARED = Path(os.environ.get("SHARED_DATA", Path(__file__).resolve().parents[2].parent / "shared" / "data"))
SUMMEVAL = SHARED / "summeval_expert_ratings.csv.gz"
Samples = Sequence[Sequence[int]]


def ordered_pairs(samples: Samples) -> list[tuple[int, int]]:
    return [pair for sample in samples for pair in permutations(sample, 2)]


def closed_form(samples: Samples) -> float | None:
    """Each sample weighs one, whatever its number of raters."""
    differences = [np.mean([(a - b) ** 2 for a, b in permutations(sample, 2)]) for sample in samples]
    return weighted_kappa(
        squared_difference=float(np.mean(differences)),
        mean_square=float(np.mean([np.mean(np.square(sample)) for sample in samples])),
        mean=float(np.mean([np.mean(sample) for sample in samples])),
    )


def by_definition(samples: Samples) -> float:
    """Cohen's kappa with quadratic weights of a table to which every sample gives the same mass."""
    table = np.zeros((5, 5))
    for sample in samples:
        pairs = list(permutations(sample, 2))
        for a, b in pairs:
            table[a, b] += 1 / len(pairs)
    table /= table.sum()
    weights = np.subtract.outer(np.arange(5), np.arange(5)) ** 2
    chance = np.outer(table.sum(axis=1), table.sum(axis=0))
    return float(1 - (weights * table).sum() / (weights * chance).sum())


def import_samples(project: Project, samples: Samples) -> None:
    imported(project, *(ratings_row(f"p{number}", "a", list(sample)) for number, sample in enumerate(samples)))


def kappa(project: Project, selection: Selection = Selection.ALL) -> float | None:
    return agreement(project, selection)["helpfulness"].kappa


levels = st.integers(0, 4)
of_one_size = st.integers(2, 5).flatmap(
    lambda raters: st.lists(st.lists(levels, min_size=raters, max_size=raters), min_size=1, max_size=12)
)
of_any_size = st.lists(st.lists(levels, min_size=2, max_size=5), min_size=1, max_size=12)


def varies(samples: Samples) -> bool:
    return len({level for sample in samples for level in sample}) > 1


# The closed form -------------------------------------------------------------------------------------------


@given(of_one_size.filter(varies))
def test_the_closed_form_is_cohens_kappa_of_the_pooled_pairs(samples: list[list[int]]) -> None:
    from sklearn.metrics import cohen_kappa_score

    first, second = zip(*ordered_pairs(samples), strict=True)
    assert closed_form(samples) == pytest.approx(
        cohen_kappa_score(first, second, labels=range(5), weights="quadratic"), abs=1e-9
    )


@given(of_any_size.filter(varies))
def test_samples_weigh_equally_whatever_their_raters(samples: list[list[int]]) -> None:
    assert closed_form(samples) == pytest.approx(by_definition(samples), abs=1e-9)


def test_kappa_is_undefined_where_nothing_varies() -> None:
    assert closed_form([[3, 3], [3, 3, 3]]) is None


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
    found = agreement(project, Selection.ALL)
    assert list(found) == list(ATTRIBUTES)
    assert found["helpfulness"].kappa == pytest.approx(1)
    assert found["verbosity"].kappa == pytest.approx(-1)


def test_samples_and_ratings_are_counted(project: Project) -> None:
    import_samples(project, [[4, 3], [0, 1, 1], [2]])
    found = agreement(project, Selection.ALL)["helpfulness"]
    assert (found.samples, found.ratings) == (2, 5)


def test_nothing_rated_twice_is_said_so(project: Project) -> None:
    import_samples(project, [[2], [3]])
    assert agreement(project, Selection.ALL)["helpfulness"] == Agreement(None, 0, 0, "no response has two ratings yet")


def test_ratings_that_never_vary_are_said_so(project: Project) -> None:
    import_samples(project, [[2, 2, 2], [2, 2]])
    found = agreement(project, Selection.ALL)["helpfulness"]
    assert (found.kappa, found.samples) == (None, 2)
    assert found.undefined_because == "every rating is the same, so agreement by chance is complete"


# Whose ratings count ---------------------------------------------------------------------------------------


def test_first_three_all_and_kept_differ(project: Project) -> None:
    samples = [[0, 4, 4, 3, 0], [1, 1, 2], [4, 3, 1]]
    import_samples(project, samples)
    kept = [[4, 4, 3], [1, 1, 2]]
    assert kappa(project, Selection.FIRST_THREE) == pytest.approx(by_definition([each[:3] for each in samples]))
    assert kappa(project, Selection.ALL) == pytest.approx(by_definition(samples))
    assert agreement(project, Selection.KEPT)["helpfulness"].samples == 2
    assert kappa(project, Selection.KEPT) == pytest.approx(by_definition(kept))


def test_dropped_tasks_count_for_all_and_not_for_kept(db: None) -> None:
    strict = make_project("strict", max_annotators=3)
    import_samples(strict, [[0, 4, 4], [1, 1, 2]])
    assert agreement(strict, Selection.ALL)["helpfulness"].samples == 2
    assert agreement(strict, Selection.KEPT)["helpfulness"].samples == 1


def test_only_the_newest_revision_counts(project: Project, cast: Cast) -> None:
    task = make_task(project)
    rate(project, cast.alice, [0, 4])
    held = rate(project, cast.bob, [4, 0]).annotation.assignment
    annotation.submit(held.pk, submission(task, [0, 4]), now=NOW + timedelta(minutes=1))
    assert kappa(project) == pytest.approx(1)


def test_a_quarantined_task_does_not_count(project: Project) -> None:
    import_samples(project, [[0, 4], [3, 3], [1, 1]])
    Task.objects.filter(conversation__0__content="p0").update(state=Task.State.QUARANTINED)
    assert kappa(project) == pytest.approx(1)


def test_other_projects_do_not_count(project: Project) -> None:
    import_samples(project, [[1, 1], [3, 3]])
    import_samples(make_project("other"), [[0, 4], [4, 0]])
    assert kappa(project) == pytest.approx(1)


# A published set -------------------------------------------------------------------------------------------


def summeval_coherence() -> list[list[int]]:
    """1,200 summaries, three experts, 1..5 moved to 0..4."""
    found: dict[str, list[int]] = defaultdict(list)
    with gzip.open(SUMMEVAL, "rt", newline="") as file:
        for row in csv.DictReader(file):
            if row["attribute"] == "coherence":
                found[row["item_id"]].append(int(row["value"]) - 1)
    return list(found.values())


def store_samples(project: Project, samples: Samples) -> None:
    """Straight into the tables: an import would settle each task, which is not what is measured."""
    users = User.objects.bulk_create(User(username=f"expert{number}") for number in range(3))
    tasks = Task.objects.bulk_create(
        Task(project=project, external_id=str(n), conversation=[]) for n in range(len(samples))
    )
    responses = Response.objects.bulk_create(Response(task=task, position=0, text="x") for task in tasks)
    common = {"state": "submitted", "leased_at": NOW, "lease_expires_at": NOW}
    assignments = Assignment.objects.bulk_create(
        Assignment(task=task, annotator=user, **common) for task in tasks for user in users
    )
    annotations = iter(
        Annotation.objects.bulk_create(
            Annotation(assignment=each, origin=Origin.IMPORTED, submitted_at=NOW) for each in assignments
        )
    )
    Rating.objects.bulk_create(
        Rating(annotation=next(annotations), response=response, scores={"helpfulness": level})
        for response, sample in zip(responses, samples, strict=True)
        for level in sample
    )


@pytest.mark.slow
@pytest.mark.skipif(not SUMMEVAL.exists(), reason=f"{SUMMEVAL} is not here: set SHARED_DATA to its folder")
def test_the_summeval_experts_agree_as_scikit_learn_says(project: Project) -> None:
    from sklearn.metrics import cohen_kappa_score

    samples = summeval_coherence()
    store_samples(project, samples)
    first, second = zip(*ordered_pairs(samples), strict=True)
    assert kappa(project) == pytest.approx(
        cohen_kappa_score(first, second, labels=range(5), weights="quadratic"), abs=1e-9
    )


def test_paired_kappa_is_scikit_learns() -> None:
    from sklearn.metrics import cohen_kappa_score

    generator = random.Random(3)
    for _ in range(50):
        pairs = [(generator.randrange(5), generator.randrange(5)) for _ in range(12)]
        ones, others = zip(*pairs, strict=True)
        expected = cohen_kappa_score(ones, others, weights="quadratic", labels=range(5))
        assert paired_kappa(pairs) == pytest.approx(expected)


def test_paired_kappa_is_undefined_where_nobody_varies() -> None:
    assert paired_kappa([(3, 3), (3, 3)]) is None
    assert paired_kappa([]) is None


def test_agreement_with_experts_leaves_out_what_they_rate_alike() -> None:
    experts = [{"helpfulness": 4, "coherence": 4}, {"helpfulness": 0, "coherence": 4}]
    found = against_experts([({"helpfulness": each["helpfulness"], "coherence": 2}, each) for each in experts])
    assert found.kappas == {"helpfulness": 1, "coherence": None}
    assert (found.mean, found.identical) == (1, False)
