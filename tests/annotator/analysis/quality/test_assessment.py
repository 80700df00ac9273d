"""From annotations in the database to what is stored about each annotator."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import numpy as np
import pytest
from django.db import connection

from annotator.analysis.agreement import totals
from annotator.analysis.quality import assessment
from annotator.analysis.quality.work_arrays import lengths, read
from annotator.management.commands.quality import Command
from annotator.models import Annotation, Assignment, Project, RaterQuality, Rating, Task, User
from annotator.stages import annotation
from tests.builders import ATTRIBUTES, NOW, claimed, imported, make_gold, make_task, rate, ratings_row, submission
from tests.conftest import Cast

LATER = NOW + timedelta(hours=2)


def of(project: Project, user: User) -> RaterQuality:
    return RaterQuality.objects.get(project=project, annotator=user)


def rated_by_all(project: Project, cast: Cast, tasks: int, levels: dict[str, int]) -> None:
    """Everybody rates every task; what is not given is what each task deserves."""
    for number in range(tasks):
        make_task(project)
        for user in cast.annotators:
            given = [levels[user.username]] * 2 if user.username in levels else [number % 5, (number + 2) % 5]
            rate(project, user, given, preference=-1, active_seconds=40)


@pytest.fixture
def small(project: Project, cast: Cast) -> Project:
    rated_by_all(project, cast, 2, {"erin": 4})
    return project


# Reading ---------------------------------------------------------------------------------------------------


def test_it_reads_each_annotation_as_it_was_made(project: Project, cast: Cast) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    shown_first = held.response_order[0]
    annotation.submit(held.pk, submission(held.task, [4, 1], preference=2, active_seconds=12.5), now=NOW)
    (made,) = read(project).annotations
    assert (made["task"], made["active"], made["first"]) == (held.task_id, 12.5, shown_first)
    assert (made["counts"], made["imported"], made["submitted"]) == (True, False, NOW.timestamp())


def test_it_reads_scores_in_the_order_of_the_responses(project: Project, cast: Cast) -> None:
    make_task(project)
    rate(project, cast.alice, [4, 1])
    assert read(project).ratings["scores"].tolist() == [[4] * 5, [1] * 5]


def test_only_the_current_revision_is_read(project: Project, cast: Cast) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    for level in (1, 3):
        annotation.submit(held.pk, submission(held.task, level), now=NOW)
    assert read(project).ratings["scores"].max() == read(project).ratings["scores"].min() == 3


@pytest.mark.parametrize("state", [Task.State.QUARANTINED, Task.State.RETIRED])
def test_what_is_set_aside_is_left_out(project: Project, cast: Cast, state: str) -> None:
    make_task(project)
    rate(project, cast.alice)
    Task.objects.update(state=state)
    assert len(read(project).annotations) == 0


def test_gold_tasks_are_left_out(project: Project, cast: Cast) -> None:
    gold = make_gold(project)
    held = Assignment.objects.create(task=gold, annotator=cast.alice, slot=1, leased_at=NOW, lease_expires_at=LATER)
    annotation.submit(held.pk, submission(gold), now=NOW)
    assert len(read(project).annotations) == 0


def test_a_missing_attribute_is_no_score(project: Project) -> None:
    imported(project, ratings_row("p", "a", [1, 2]))
    Rating.objects.update(scores={"helpfulness": 1})
    stored_scores = read(project).ratings["scores"]
    assert set(stored_scores[:, ATTRIBUTES.index("verbosity")].tolist()) == {-1}


def test_lengths_are_of_conversation_and_responses(project: Project) -> None:
    task = make_task(project, prompt="x" * 1000)
    assert 1000 < lengths(project, np.array([task.pk]))[task.pk] < 1200


# Storing ---------------------------------------------------------------------------------------------------


def test_everybody_who_rated_has_a_row(small: Project, cast: Cast) -> None:
    assert assessment.assess(small, now=NOW) == 3
    assert {row.annotator for row in RaterQuality.objects.all()} == set(cast.annotators)
    assert of(small, cast.alice).measures["speed"]["median_seconds"] == 40
    assert of(small, cast.alice).annotations == 2


def test_twice_is_the_same_as_once(small: Project) -> None:
    assessment.assess(small, now=NOW)
    before = list(RaterQuality.objects.order_by("annotator").values("annotator", "measures", "flags"))
    assessment.assess(small, now=NOW)
    assert list(RaterQuality.objects.order_by("annotator").values("annotator", "measures", "flags")) == before


def test_nothing_rated_is_nothing_stored(project: Project) -> None:
    assert assessment.assess(project, now=NOW) == 0


def test_whoever_has_no_work_left_has_no_row_left(small: Project, cast: Cast) -> None:
    assessment.assess(small, now=NOW)
    Assignment.objects.filter(annotator=cast.erin).delete()
    assessment.assess(small, now=LATER)
    assert not RaterQuality.objects.filter(annotator=cast.erin).exists()


def test_an_excluded_annotator_is_no_measure_and_still_checked(small: Project, cast: Cast) -> None:
    Assignment.objects.filter(annotator=cast.erin).update(counts=False, slot=None)
    assessment.assess(small, now=NOW)
    measured = of(small, cast.erin).measures
    assert measured["leaning"]["helpfulness"] is None
    assert measured["speed"]["median_seconds"] == 40
    assert of(small, cast.alice).measures["leaning"]["helpfulness"]["levels"] == pytest.approx(0, abs=0.05)


@pytest.mark.slow
def test_whoever_gives_fours_to_everything_is_flagged_with_examples(project: Project, cast: Cast) -> None:
    rated_by_all(project, cast, 25, {"erin": 4})
    totals.refresh(project, now=NOW)
    assessment.assess(project, now=NOW)
    kinds = {flag["kind"]: flag for flag in of(project, cast.erin).flags}
    assert "leaning" in kinds
    assert "position" in kinds
    assert set(kinds["leaning"]["examples"]) < set(project.tasks.values_list("pk", flat=True))
    assert len(kinds["leaning"]["examples"]) == 5
    assert not {flag["kind"] for flag in of(project, cast.alice).flags} & {"leaning", "disagreeing", "straight_lining"}


# When ------------------------------------------------------------------------------------------------------


def test_the_first_ratings_are_looked_into_at_once(small: Project) -> None:
    assert assessment.is_due(small, now=NOW)
    assert assessment.assess_due(now=NOW) == 3


def test_nothing_new_is_not_due(small: Project) -> None:
    totals.refresh(small, now=NOW)
    assessment.assess(small, now=NOW)
    assert not assessment.is_due(small, now=LATER)


def test_a_little_news_waits_for_the_hour(small: Project, cast: Cast) -> None:
    assessment.assess(small, now=NOW)
    make_task(small)
    rate(small, cast.alice)
    soon = NOW + timedelta(minutes=10)
    totals.refresh(small, now=soon)
    assert assessment.since(small) == 1
    assert not assessment.is_due(small, now=soon)
    assert assessment.is_due(small, now=LATER)


def test_much_news_does_not_wait(small: Project, monkeypatch: pytest.MonkeyPatch, cast: Cast) -> None:
    monkeypatch.setattr("annotator.analysis.quality.assessment.ENOUGH", 1)
    assessment.assess(small, now=NOW)
    make_task(small)
    rate(small, cast.alice)
    assert assessment.is_due(small, now=NOW + timedelta(minutes=2))


def test_a_few_ratings_are_much_news_in_a_small_project(small: Project, cast: Cast) -> None:
    assessment.assess(small, now=NOW)
    assert assessment.more_wanted(small) == 5
    for _ in range(5):
        make_task(small)
        rate(small, cast.alice)
    assert assessment.more_wanted(small) == 0
    assert assessment.is_due(small, now=NOW + timedelta(minutes=1))


def test_ratings_that_are_set_aside_do_not_keep_it_busy(small: Project) -> None:
    Task.objects.update(state=Task.State.RETIRED)
    assert not assessment.is_due(small, now=NOW)


def test_work_that_is_not_looked_at_is_no_news(small: Project) -> None:
    Task.objects.filter(pk=small.tasks.earliest("pk").pk).update(state=Task.State.RETIRED)
    assessment.assess(small, now=NOW)
    assert assessment.since(small) == 0


def test_a_project_without_ratings_is_left_alone(project: Project) -> None:
    assert assessment.assess_due(now=NOW) == 0


def test_preferences_without_ratings_do_not_keep_it_busy(project: Project) -> None:
    every = [{"strength": strength, "justification": ""} for strength in (2, 2, 3)]
    row = {"prompt": "Why?", "response_1": "A.", "response_2": "B.", "preference_strength": 2}
    imported(project, row | {"all_preferences_unprocessed": every})
    assert Annotation.objects.current().exists()
    assert not assessment.is_due(project, now=NOW)


def test_one_process_at_a_time_looks_into_a_project(small: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    def begin(*args: object, **kwargs: object) -> subprocess.CompletedProcess[str]:
        started.append(1)
        if len(started) < 3:
            # Another worker has a connection, and so a lock, of its own.
            with ThreadPoolExecutor(1) as other:
                assert other.submit(elsewhere).result() == 0
        return subprocess.CompletedProcess([], 0, stderr="")

    def elsewhere() -> int:
        try:
            return assessment.assess_apart(small, now=NOW)
        finally:
            connection.close()

    monkeypatch.setattr(subprocess, "run", begin)
    assessment.assess_apart(small, now=NOW)
    assert len(started) == 1


def test_a_slug_that_begins_with_a_hyphen_is_no_option(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    Project.objects.update(slug="-loud")
    project.refresh_from_db()
    commands: list[list[str]] = []

    def begin(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess([], 0, stderr="")

    monkeypatch.setattr(subprocess, "run", begin)
    assessment.assess_apart(project, now=NOW)
    understood = Command().create_parser("manage.py", "quality").parse_args(commands[0][3:])
    assert (understood.project, understood.background) == ("-loud", True)
