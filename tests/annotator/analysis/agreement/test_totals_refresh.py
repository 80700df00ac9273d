"""The totals follow whatever happens to ratings, to tasks and to projects."""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

import numpy as np
import pytest
from django.db import connection, transaction
from django.db.models import Model, QuerySet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotator import tasks
from annotator.analysis.agreement import totals
from annotator.analysis.agreement.reports import report
from annotator.analysis.agreement.totals import ENTRY
from annotator.models import (
    PREFERENCES,
    AgreementState,
    AgreementTotal,
    Assignment,
    CountedTask,
    Project,
    StaleAgreement,
    Task,
)
from annotator.models.rubric import attributes_by_version
from annotator.stages import annotation, assignment, consensus
from annotator.stages.annotation import Submission
from annotator.stages.assignment import free_slot
from tests.annotator.analysis.agreement.samples import import_samples
from tests.builders import NOW, claimed, imported, make_task, rate, ratings_row, submission
from tests.conftest import Cast

Row = TypeVar("Row", bound=Model)
Totals = dict[tuple[str, int, int, int], list[tuple[int, int]]]


def stored_totals(project: Project) -> Totals:
    """Everything that is stored, in the open."""
    rows = AgreementTotal.objects.filter(project=project)
    return {
        (row.kind, row.one, row.other, row.shared): sorted(np.frombuffer(row.cells, ENTRY).tolist()) for row in rows
    }


def refreshed(project: Project) -> Totals:
    totals.refresh(project, now=NOW)
    return stored_totals(project)


def rebuilt(project: Project) -> Totals:
    totals.rebuild(project, now=NOW)
    return stored_totals(project)


# Whatever happens ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scene:
    """A project in which things happen, each to something at random."""

    project: Project
    cast: Cast
    dice: random.Random

    def moment(self) -> datetime:
        return NOW + timedelta(days=self.dice.randrange(20))

    def one(self, rows: QuerySet[Row]) -> Row | None:
        stored_rows = list(rows.order_by("pk"))
        return self.dice.choice(stored_rows) if stored_rows else None

    def submission(self, task: Task) -> Submission:
        filled = submission(task, [self.dice.randrange(5) for _ in task.responses.all()])
        said = {pk: self.dice.random() < 0.7 for pk in filled.ratings}
        kinds = {pk: "" if is_safe else "harmful" for pk, is_safe in said.items()}
        safe = {pk: replace(rating, safe=said[pk], unsafe_category=kinds[pk]) for pk, rating in filled.ratings.items()}
        return replace(filled, ratings=safe, preference=self.dice.choice(PREFERENCES) if len(safe) == 2 else None)

    def settle(self, task: Task) -> None:
        consensus.settle([task], project=self.project, now=NOW)


def a_file_comes(scene: Scene) -> None:
    levels = [scene.dice.randrange(5) for _ in range(scene.dice.randint(1, 4))]
    imported(scene.project, ratings_row(f"prompt {scene.dice.random()}", "a", levels))


def somebody_rates(scene: Scene) -> None:
    held = assignment.claim(scene.project, scene.dice.choice(scene.cast.annotators), now=scene.moment()).assignment
    if held:
        annotation.submit(held.pk, scene.submission(held.task), now=scene.moment())


def somebody_revises(scene: Scene) -> None:
    rated = Assignment.objects.submitted().filter(task__state="open", annotator__in=scene.cast.annotators)
    if held := scene.one(rated):
        annotation.submit(held.pk, scene.submission(held.task), now=scene.moment())


def a_rating_stops_to_count_or_counts_again(scene: Scene) -> None:
    if held := scene.one(Assignment.objects.submitted()):
        slot = None if held.counts else free_slot(held.task)
        Assignment.objects.filter(pk=held.pk).update(counts=slot is not None, slot=slot)
        scene.settle(held.task)


def a_task_is_set_aside_or_brought_back(scene: Scene) -> None:
    if task := scene.one(Task.objects.all()):
        Task.objects.filter(pk=task.pk).update(state=scene.dice.choice(Task.State.values))


def a_task_is_deleted(scene: Scene) -> None:
    if task := scene.one(Task.objects.all()):
        task.delete()


def the_protocol_changes(scene: Scene) -> None:
    scene.project.keep = scene.dice.randint(1, 3)
    scene.project.save(update_fields=["keep"])
    assignment.recount(scene.project, now=scene.moment())


def some_is_counted(scene: Scene) -> None:
    totals._count_batch(scene.project, now=NOW, most=scene.dice.randint(1, 4))


HAPPENINGS = (
    somebody_rates,
    a_file_comes,
    somebody_revises,
    a_rating_stops_to_count_or_counts_again,
    a_task_is_set_aside_or_brought_back,
    a_task_is_deleted,
    the_protocol_changes,
    some_is_counted,
)


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None)
@given(happenings=st.lists(st.sampled_from(HAPPENINGS), min_size=10, max_size=30), seed=st.integers(0, 99))
def test_the_totals_are_what_counting_from_scratch_gives(
    project: Project, cast: Cast, happenings: list[Callable[[Scene], None]], seed: int
) -> None:
    with transaction.atomic():
        Project.objects.update(allow_ties=True)
        scene = Scene(project, cast, random.Random(seed))
        for _ in range(4):
            make_task(project)
        for happen in (*[somebody_rates] * 8, some_is_counted, *happenings):
            happen(scene)
        assert refreshed(project) == rebuilt(project)
        transaction.set_rollback(True)


# One by one ------------------------------------------------------------------------------------------------


def test_there_is_one_row_an_owner(project: Project) -> None:
    import_samples(project, [[1, 2, 3], [0, 0, 4]])
    kinds = [kind for kind, *_ in refreshed(project)]
    assert (kinds.count("project"), kinds.count("week"), kinds.count("rater"), kinds.count("pair")) == (1, 1, 3, 3)
    assert CountedTask.objects.count() == 2
    assert not StaleAgreement.objects.exists()


def test_counting_twice_changes_nothing(project: Project) -> None:
    import_samples(project, [[1, 2, 3], [0, 0, 4]])
    before = refreshed(project)
    task = Task.objects.earliest("pk")
    StaleAgreement.objects.bulk_create(StaleAgreement(project=project, task=task) for _ in range(3))
    assert refreshed(project) == before


def test_of_what_nobody_rates_nothing_is_left(project: Project) -> None:
    import_samples(project, [[1, 2, 3]])
    refreshed(project)
    Task.objects.update(state=Task.State.RETIRED)
    assert refreshed(project) == {}
    assert not CountedTask.objects.exists()


def test_a_deleted_task_is_taken_out(project: Project) -> None:
    import_samples(project, [[1, 2, 3], [0, 0, 4]])
    refreshed(project)
    Task.objects.earliest("pk").delete()
    assert refreshed(project) == rebuilt(project) != {}


def test_a_deleted_project_leaves_nothing(project: Project) -> None:
    import_samples(project, [[1, 2, 3]])
    refreshed(project)
    import_samples(project, [[4, 3]])
    project.delete()
    totals.refresh_all(now=NOW)
    left = (AgreementTotal, CountedTask, AgreementState, StaleAgreement)
    assert [model.objects.count() for model in left] == [0, 0, 0, 0]


def test_another_attribute_is_counted_from_the_start(project: Project) -> None:
    import_samples(project, [[1, 2, 3], [0, 0, 4]])
    assert list(report(project, now=NOW).all)[-1] == "verbosity"
    project.rubric.attributes.filter(key="verbosity").delete()
    attributes_by_version.cache_clear()
    estimates = report(Project.objects.get(pk=project.pk), now=NOW).all
    assert (list(estimates)[-1], estimates["complexity"].samples) == ("complexity", 2)


def test_a_page_leaves_much_work_to_the_worker(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals, "AT_ONCE", 1)
    import_samples(project, [[1, 2, 3], [0, 0, 4]])
    late = totals.up_to_date(project, now=NOW)
    assert (late.as_of, late.pending) == (None, 2)
    tasks.refresh_agreement()
    fresh = totals.up_to_date(project, now=NOW)
    assert (fresh.as_of, fresh.pending) == (NOW, 0)


# At the same time ------------------------------------------------------------------------------------------


def in_a_thread(work: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_two_who_count_at_once_count_once(project: Project) -> None:
    import_samples(project, [[level, 4 - level, 2] for level in (0, 1, 2, 3, 4) * 4])
    counted: list[int] = []
    threads = [in_a_thread(lambda: counted.append(totals.refresh(project, now=NOW, at_once=3))) for _ in range(3)]
    for thread in threads:
        thread.join()
    assert sum(counted) == 20
    assert stored_totals(project) == rebuilt(project)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_change_that_is_committed_while_its_task_is_counted_is_not_lost(project: Project, cast: Cast) -> None:
    task = make_task(project)
    rate(project, cast.alice, 1)
    held = claimed(project, cast.bob)
    stored, counted = threading.Event(), threading.Event()

    def submit_slowly() -> None:
        with transaction.atomic():
            annotation.submit(held.pk, submission(task, 4), now=NOW)
            stored.set()
            counted.wait(10)

    thread = in_a_thread(submit_slowly)
    stored.wait(10)
    assert totals.refresh(project, now=NOW) == 1  # alice's; bob's is still to come
    counted.set()
    thread.join()
    assert totals.refresh(project, now=NOW) == 1
    assert stored_totals(project) == rebuilt(project) != {}
