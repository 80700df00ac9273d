"""From rows to what is told: whose ratings count, and what comes of them."""

from datetime import timedelta

import pytest

from annotator import annotation
from annotator.agreement import Agreement, Selection, agreement
from annotator.models import Project, Task
from tests.annotator.agreement.samples import by_definition, import_samples, ordered_pairs
from tests.builders import ATTRIBUTES, NOW, imported, make_project, make_task, rate, ratings_row, submission
from tests.conftest import Cast


def measured(project: Project, selection: Selection = Selection.ALL, key: str = "helpfulness") -> Agreement:
    return agreement(project, selection, now=NOW)[key]


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
    found = agreement(project, Selection.ALL, now=NOW)
    assert list(found) == list(ATTRIBUTES)
    assert found["helpfulness"].kappa == pytest.approx(1)
    assert found["verbosity"].kappa == pytest.approx(-1)


def test_samples_and_ratings_are_counted(project: Project) -> None:
    import_samples(project, [[4, 3], [0, 1, 1], [2]])
    found = measured(project)
    assert (found.samples, found.ratings) == (2, 5)


def test_nothing_rated_twice_is_said_so(project: Project) -> None:
    import_samples(project, [[2], [3]])
    assert measured(project) == Agreement(None, 0, 0, "no response has two ratings yet")


def test_ratings_that_never_vary_are_said_so(project: Project) -> None:
    import_samples(project, [[2, 2, 2], [2, 2]])
    found = measured(project)
    assert (found.kappa, found.samples) == (None, 2)
    assert found.undefined_because == "every rating is the same, so agreement by chance is complete"


# Whose ratings count ---------------------------------------------------------------------------------------


def test_first_three_all_and_kept_differ(project: Project) -> None:
    samples = [[0, 4, 4, 3, 0], [1, 1, 2], [4, 3, 1]]
    import_samples(project, samples)
    kept = [[4, 4, 3], [1, 1, 2]]
    assert kappa(project, Selection.FIRST_THREE) == pytest.approx(by_definition([each[:3] for each in samples]))
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


def test_a_quarantined_task_does_not_count(project: Project) -> None:
    import_samples(project, [[0, 4], [3, 3], [1, 1]])
    Task.objects.filter(conversation__0__content="p0").update(state=Task.State.QUARANTINED)
    assert kappa(project) == pytest.approx(1)


def test_other_projects_do_not_count(project: Project) -> None:
    import_samples(project, [[1, 1], [3, 3]])
    import_samples(make_project("other"), [[0, 4], [4, 0]])
    assert kappa(project) == pytest.approx(1)
