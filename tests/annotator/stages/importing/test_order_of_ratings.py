"""Imported ratings mean the same in any order of rows, any layout and any batches, and all of them count."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotator.analysis.agreement.reports import trend
from annotator.models import Annotation, Assignment, Exclusion, ImportedRater, Label, Project, Task
from annotator.stages.importing import batches
from tests.builders import ATTRIBUTES, NOW, imported, make_project, rate, ratings_row, task_row
from tests.conftest import Cast

Rating = tuple[int, int]
"""The levels of helpfulness and of all other attributes."""
Rows = list[dict[str, Any]]


def levels(rating: Rating) -> dict[str, int]:
    return dict.fromkeys(ATTRIBUTES, rating[1]) | {"helpfulness": rating[0]}


def texts(name: str) -> dict[str, str]:
    return {"prompt": f"What is {name}?", "response": f"It is {name}."}


def table(name: str, ratings: Sequence[Rating]) -> Rows:
    scores = [(n, key, level) for n, rating in enumerate(ratings) for key, level in levels(rating).items()]
    return [{"item_id": name, "rater_id": f"r{n}", "attribute": key, "value": level + 1} for n, key, level in scores]


def annotations(name: str, ratings: Sequence[Rating]) -> Rows:
    return [
        {"task": name, "response": "1", "position": 0, "annotator": f"r{n}", "scores": levels(rating), "counts": True}
        for n, rating in enumerate(ratings)
    ]


def lists(name: str, ratings: Sequence[Rating]) -> Rows:
    by_key = {key: [levels(rating)[key] for rating in ratings] for key in ATTRIBUTES}
    return [{**texts(name), **by_key}] if ratings else []


def stars(n: int, rating: Rating) -> dict[str, Any]:
    given = [{"from_name": key, "type": "rating", "value": {"rating": n + 1}} for key, n in levels(rating).items()]
    return {"completed_by": n, "result": given}


def studio(name: str, ratings: Sequence[Rating]) -> Rows:
    return [{"id": name, "data": texts(name), "annotations": [stars(n, each) for n, each in enumerate(ratings)]}]


def studio_apart(name: str, ratings: Sequence[Rating]) -> Rows:
    return [{"id": name, "data": texts(name), "annotations": [stars(n, each)]} for n, each in enumerate(ratings)]


def argilla(name: str, ratings: Sequence[Rating]) -> Rows:
    answers = [
        {"user_id": f"u{n}", "status": "submitted", "values": {key: n + 1 for key, n in levels(each).items()}}
        for n, each in enumerate(ratings)
    ]
    return [{"id": name, "fields": texts(name), "responses": answers}]


LAYOUTS: dict[str, Callable[[str, Sequence[Rating]], Rows]] = {
    "table": table,
    "annotations": annotations,
    "lists": lists,
    "studio": studio,
    "studio_apart": studio_apart,
    "argilla": argilla,
}
BY_ID = {"table", "annotations"}


def outcome(project: Project) -> Any:
    """What the ratings came to, without the ids of rows."""
    tasks = []
    for task in Task.objects.filter(project=project).order_by("conversation__0__content"):
        found = Label.objects.filter(response__task=task).values_list("scores", "means")
        consensus = getattr(task, "consensus", None)
        kept = Annotation.objects.filter(pk__in=consensus.kept) if consensus else []
        tasks.append(
            (
                (task.state, task.slots_wanted, task.open_slots, task.done, task.review_reason, task.review_spread),
                [str(label) for label in found],
                consensus and (consensus.spread, consensus.spread_of_all, consensus.drop_reason),
                sorted(annotation.content_hash for annotation in kept),
            )
        )
    figures = trend(project, now=NOW)[0]
    return tasks, {selection: {key: one.kappa for key, one in found.items()} for selection, found in figures.items()}


RATINGS = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 2)), min_size=1, max_size=8)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None)
@given(tasks=st.lists(RATINGS, min_size=3, max_size=5), seed=st.integers(0, 99))
def test_order_layout_and_batches_decide_nothing(
    db: None, monkeypatch: pytest.MonkeyPatch, tasks: list[list[Rating]], seed: int
) -> None:
    dice, found = random.Random(seed), {}
    for layout, made in LAYOUTS.items():
        for size in (1, 3, 5_000) if layout in BY_ID else (3, 5_000):
            monkeypatch.setattr(batches, "BATCH", size)
            project = make_project(f"{layout}-{size}-{Project.objects.count()}")
            shuffled = [dice.sample(ratings, len(ratings)) for ratings in tasks]
            rows = [row for n, ratings in enumerate(shuffled) for row in made(f"t{n}", ratings)]
            dice.shuffle(rows)
            with_texts = [task_row(f"t{n}", prompt=f"What is t{n}?", responses=1) for n in range(len(tasks))]
            result = imported(project, *([*with_texts, *rows] if layout in BY_ID else rows))
            assert (result.rejected, result.ratings_added) == ([], sum(map(len, tasks))), layout
            found[layout, size] = outcome(project)
    first = found["table", 1]
    assert [key for key, other in found.items() if other != first] == []


@pytest.mark.parametrize("order", ["11155", "55111", "15151"])
def test_five_ratings_of_a_table_count_in_any_order(project: Project, order: str) -> None:
    rows = table("t", [(int(level) - 1, 2) for level in order])
    result = imported(project, task_row("t", responses=1), *rows)
    task = Task.objects.get()
    assert (result.ratings_added, task.state, task.done, task.open_slots) == (5, "complete", 5, 0)
    assert Label.objects.get().scores["helpfulness"] == 0


def test_more_ratings_than_a_task_asks_for_all_count(project: Project) -> None:
    imported(project, ratings_row("p", "a", [0, 0, 0, 4, 4, 4, 4]))
    assert not Assignment.objects.filter(counts=False).exists()
    assert Task.objects.get().consensus.annotators == 7


def test_a_melted_table_goes_in_as_it_is(project: Project) -> None:
    """All rows of one attribute, then all of the next one, as pandas writes them."""
    rows = table("t", [(3, 3), (2, 2), (4, 4)])
    rows.sort(key=lambda row: str(row["attribute"]))
    result = imported(project, *rows, task_row("t", responses=1))
    assert (result.rejected, result.ratings_added) == ([], 3)


def test_two_scores_of_one_person_for_one_thing_are_refused(project: Project) -> None:
    rows = table("t", [(3, 3), (2, 2)])
    again = {**rows[0], "value": 1}
    for of_file in (again, *rows), (*rows, again):
        (refused,) = imported(project, task_row("t", responses=1), *of_file).rejected
        assert "different scores of helpfulness" in refused.error
    assert Annotation.objects.count() == 1


def test_a_task_of_too_many_raters_gets_none_of_them(project: Project) -> None:
    rows = table("t", [(3, 3)] * 26)
    result = imported(project, task_row("t", responses=1), *rows)
    assert (result.rejected_total, result.ratings_added, Annotation.objects.count()) == (26, 0, 0)
    assert "has 26 raters, and at most 25 are accepted" in result.rejected[0].error


def test_ratings_of_several_files_add_up_to_the_limit(project: Project) -> None:
    rows = table("t", [(3, 3)] * 26)
    first, rest = rows[: 20 * 5], rows[20 * 5 :]
    assert imported(project, task_row("t", responses=1), *first).ratings_added == 20
    result = imported(project, *rest)
    assert (result.ratings_added, len(result.rejected)) == (0, 6)
    assert "would have 26 raters" in result.rejected[0].error


def test_people_keep_their_slots_when_a_file_comes(project: Project, cast: Cast) -> None:
    imported(project, task_row("t", responses=1))
    rate(project, cast.alice, 2)
    imported(project, *table("t", [(1, 2), (1, 2), (1, 2), (1, 2), (1, 2)]))
    task = Task.objects.get()
    assert (task.done, task.consensus.annotators, task.open_slots) == (6, 6, 0)
    assert Counter(Assignment.objects.values_list("counts", flat=True)) == {True: 6}


def test_ratings_by_excluded_raters_are_stored_and_said_not_to_count(project: Project, cast: Cast) -> None:
    imported(project, task_row("t", responses=1), task_row("u", responses=1), *table("t", [(1, 1), (2, 2)]))
    for rater in ImportedRater.objects.all()[:1]:
        Exclusion.objects.create(project=project, annotator=rater.user, reason="-", by=cast.carol, made_at=NOW)
    result = imported(project, *table("u", [(1, 1), (2, 2)]))
    assert (result.ratings_added, result.ratings_left_out, result.rejected_total) == (1, 1, 0)
    assert Task.objects.get(external_id="u").done == 1
