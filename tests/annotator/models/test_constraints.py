"""What must never be false is refused by PostgreSQL itself, whatever the code does."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import F

from annotator.models import (
    LONGEST_ACTIVE_SECONDS,
    Adjudication,
    Annotation,
    Assignment,
    ExpertRating,
    Label,
    Membership,
    PiiSpan,
    Project,
    Pseudonym,
    QualificationAnswer,
    QualificationRun,
    Rating,
    Tally,
    Task,
    User,
)
from rewards.models import RewardModel, TrainingRun
from tests.builders import ATTRIBUTES, NOW, make_gold, make_task, make_user, rate
from tests.conftest import Cast


def refused(name: str, broken: Callable[[], Any]) -> None:
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        broken()


def take_slot(task: Task, user: User, slot: int | None, **fields: Any) -> Assignment:
    leased = {"leased_at": NOW, "lease_expires_at": NOW} | fields
    return Assignment.objects.create(task=task, annotator=user, slot=slot, **leased)


def test_a_sixth_slot_is_refused(project: Project, cast: Cast) -> None:
    task = make_task(project)
    Task.objects.update(slots_wanted=5, open_slots=5)
    for slot in range(1, 6):
        take_slot(task, make_user(f"rater-{slot}"), slot)
    refused("is more than task", lambda: take_slot(task, cast.alice, 6))
    refused("one_assignment_per_slot", lambda: take_slot(task, cast.alice, 5))


def test_a_second_assignment_of_one_person_is_refused(project: Project, cast: Cast) -> None:
    task = make_task(project)
    take_slot(task, cast.alice, 1)
    refused("one_assignment_per_annotator_and_task", lambda: take_slot(task, cast.alice, 2))


def test_a_second_current_annotation_is_refused(project: Project, cast: Cast) -> None:
    make_task(project)
    done = rate(project, cast.alice).annotation
    again = Annotation(assignment=done.assignment, revision=2, content_hash="x", submitted_at=NOW)
    refused("one_current_annotation_per_assignment", again.save)


@pytest.mark.parametrize("seconds", [-1, 1e39, float("inf"), float("nan"), LONGEST_ACTIVE_SECONDS + 1])
def test_seconds_that_no_clock_has_measured_are_refused(project: Project, cast: Cast, seconds: float) -> None:
    make_task(project)
    rate(project, cast.alice)
    refused("active_seconds_within_a_week", lambda: Annotation.objects.update(active_seconds=seconds))


@pytest.mark.parametrize("score", [7, -1, 2.5, "3", None, [3], True, {"a": 1}])
def test_a_score_off_the_scale_is_refused(project: Project, cast: Cast, score: object) -> None:
    make_task(project)
    rate(project, cast.alice)
    refused("scores_are_whole_and_on_a_scale", lambda: Rating.objects.update(scores={"helpfulness": score}))


def test_scores_that_are_no_object_are_refused(project: Project, cast: Cast) -> None:
    make_task(project)
    rate(project, cast.alice)
    refused("scores_are_whole_and_on_a_scale", lambda: Rating.objects.update(scores=[3, 3]))


def test_whole_numbers_on_the_scale_are_stored(project: Project, cast: Cast) -> None:
    make_task(project)
    rate(project, cast.alice)
    assert Rating.objects.update(scores=dict(zip(ATTRIBUTES, range(5), strict=True))) == 2


def test_a_mean_beyond_the_scale_is_refused(project: Project, cast: Cast) -> None:
    response = make_task(project).responses.all()[0]
    means = {"helpfulness": 6.1}
    label = Label(project=project, response=response, source="imported", scores={}, means=means, made_at=NOW)
    refused("label_means_are_on_a_scale", label.save)


@pytest.mark.parametrize("preference", [-4, 4, -99])
def test_a_preference_off_the_scale_is_refused(project: Project, cast: Cast, preference: int) -> None:
    make_task(project)
    rate(project, cast.alice)
    refused("preference_on_the_scale", lambda: Annotation.objects.update(preference=preference))


def test_a_lease_without_a_slot_is_refused(project: Project, cast: Cast) -> None:
    take_slot(make_task(project), cast.alice, 1)
    refused("a_lease_holds_a_slot", lambda: Assignment.objects.update(slot=None))


def test_more_open_slots_than_wanted_are_refused(project: Project) -> None:
    make_task(project)
    refused("open_slots_within_wanted", lambda: Task.objects.update(open_slots=4))


def make_model(project: Project, version: int, **fields: Any) -> RewardModel:
    run = TrainingRun.objects.create(project=project, reason="a test", state="promoted")
    return RewardModel.objects.create(
        project=project, run=run, version=version, path="-", attributes=[], attribute_weights={}, manifest={}, **fields
    )


def test_two_champions_are_refused(project: Project) -> None:
    make_model(project, 1, is_champion=True)
    refused("one_champion_per_project", lambda: make_model(project, 2, is_champion=True))


def test_two_active_runs_are_refused(project: Project) -> None:
    TrainingRun.objects.create(project=project, reason="one")
    refused("one_active_run_per_project", lambda: TrainingRun.objects.create(project=project, reason="two"))


def test_a_pause_has_a_time(cast: Cast) -> None:
    refused("a_reason_needs_a_pause", lambda: cast.alice.memberships.update(pause_reason="gold"))


@pytest.mark.parametrize("score", [7, 2.5, "3", None])
def test_an_experts_score_off_the_scale_is_refused(project: Project, score: object) -> None:
    make_gold(project)
    refused(
        "expert_scores_are_whole_and_on_a_scale", lambda: ExpertRating.objects.update(scores={"helpfulness": score})
    )


def test_a_second_run_of_one_kind_at_once_is_refused(project: Project, cast: Cast) -> None:
    member = cast.alice.memberships.get()
    run = QualificationRun.objects.create(member=member, kind="test", number=1, started_at=NOW)
    another = QualificationRun(member=member, kind="test", number=2, started_at=NOW)
    refused("one_open_qualification_run", another.save)
    run.pk = None
    run.finished_at = NOW
    refused("qualification_run_number_once", run.save)


def test_a_second_answer_of_a_run_is_refused(project: Project, cast: Cast) -> None:
    member = cast.alice.memberships.get()
    run = QualificationRun.objects.create(member=member, kind="test", number=1, started_at=NOW)
    response = make_gold(project, use="test").responses.all()[0]
    answer = QualificationAnswer(run=run, response=response, answered_at=NOW, scores={"helpfulness": 7})
    refused("answer_scores_are_whole_and_on_a_scale", answer.save)
    answer.scores = {"helpfulness": 3}
    answer.save()
    answer.pk = None
    refused("one_answer_per_run_and_response", answer.save)


def make_span(task: Task, **fields: Any) -> PiiSpan:
    first = {"turn": 0, "start": 0, "end": 4, "kind": "email", "source": "detected", "created_at": NOW}
    return PiiSpan.objects.create(task=task, **first | fields)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("a_pii_span_is_not_empty", {"start": 4}),
        ("a_pii_span_is_not_empty", {"start": 5}),
        ("start_check", {"start": -1}),
        ("a_pii_span_stands_in_one_text", {"turn": None}),
        ("a_pii_span_is_marked_by_annotators_only", {"source": "annotator"}),
    ],
)
def test_a_span_that_makes_no_sense_is_refused(project: Project, name: str, fields: dict[str, Any]) -> None:
    task = make_task(project)
    refused(name, lambda: make_span(task, **fields))


def test_a_span_of_a_turn_and_a_response_at_once_is_refused(project: Project) -> None:
    task = make_task(project)
    refused("a_pii_span_stands_in_one_text", lambda: make_span(task, response=task.responses.first()))


def test_a_detected_span_is_marked_by_nobody(project: Project, cast: Cast) -> None:
    task = make_task(project)
    refused("a_pii_span_is_marked_by_annotators_only", lambda: make_span(task, marked_by=cast.alice))


def test_a_span_twice_is_refused(project: Project) -> None:
    task = make_task(project)
    make_span(task)
    refused("pii_span_once", lambda: make_span(task))


@pytest.mark.parametrize("before", Assignment.State.values)
@pytest.mark.parametrize("after", Assignment.State.values)
def test_only_steps_of_the_table_are_taken(project: Project, cast: Cast, before: str, after: str) -> None:
    slots = {"leased": 1, "submitted": 1}
    held = take_slot(make_task(project), cast.alice, slots.get(before), state=before)
    step = Assignment.objects.filter(pk=held.pk)
    if before == after or after in Assignment.TRANSITIONS[Assignment.State(before)]:
        assert step.update(state=after, slot=slots.get(after)) == 1
    else:
        refused("legal_transition", lambda: step.update(state=after, slot=slots.get(after)))


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("max_annotators_reach_base", {"max_annotators": 2}),
        ("no_task_asks_for_a_crowd", {"max_annotators": 26}),
        ("no_task_asks_for_a_crowd", {"keep": 26}),
        ("spreads_lie_on_the_scale", {"escalate_above": 7}),
        ("spreads_lie_on_the_scale", {"drop_above": 7}),
        ("settings_lie_within_their_bounds", {"validation_share": 0.9}),
        ("settings_lie_within_their_bounds", {"gold_threshold": 2}),
        ("only_the_archived_are_deleted", {"deleted_at": NOW}),
    ],
)
def test_settings_out_of_bounds_are_refused(project: Project, name: str, fields: dict[str, Any]) -> None:
    refused(name, lambda: Project.objects.update(**fields))


def test_an_offer_of_what_one_has_is_refused(project: Project, cast: Cast) -> None:
    refused("nobody_is_offered_what_they_have", lambda: Membership.objects.update(offered_role=F("role")))


def test_a_pseudonym_names_one_person_in_a_project(project: Project, cast: Cast) -> None:
    refused("one_person_per_pseudonym_and_project", lambda: Pseudonym.objects.update(name="r-same"))


def test_whoever_has_rated_has_a_pseudonym(project: Project) -> None:
    """Members get theirs with the membership; a superuser who rates is none."""
    root = make_user("root")
    Tally.objects.create(annotator=root, project=project)
    assert Pseudonym.objects.get(user=root).name.startswith("r-")


# Rankings --------------------------------------------------------------------------------------------------


@pytest.fixture
def ranked(project: Project, cast: Cast) -> list[int]:
    """The ids of three responses that alice has ranked as they stand."""
    ids = [response.pk for response in make_task(project, responses=3).responses.all()]
    rate(project, cast.alice, ranking=[[response] for response in ids])
    return ids


def test_a_ranking_with_ties_is_stored(ranked: list[int]) -> None:
    first, second, third = ranked
    assert Annotation.objects.update(ranking=[[third], [first, second]]) == 1


@pytest.mark.parametrize("places", [[[0], [1]], [[0], [1], [2], [2]], [[0], [1, 1], [2]], [[0, 1, 2, 0]], []])
def test_a_ranking_that_names_not_each_response_once_is_refused(ranked: list[int], places: list[list[int]]) -> None:
    broken = [[ranked[place] for place in tier] for tier in places]
    refused("ranking_of_every_response", lambda: Annotation.objects.update(ranking=broken))


def test_a_ranking_of_a_foreign_response_is_refused(ranked: list[int], project: Project) -> None:
    foreign = make_task(project).responses.all()[0].pk
    broken = [[ranked[0]], [ranked[1]], [foreign]]
    refused("ranking_of_every_response", lambda: Annotation.objects.update(ranking=broken))


@pytest.mark.parametrize("broken", [{}, "abc", 3, [1, 2, 3], [[1], []], [["1"]], [[1.5]], [[0]], [[None]], [[[1]]]])
@pytest.mark.usefixtures("ranked")
def test_a_ranking_that_is_no_list_of_tiers_is_refused(broken: object) -> None:
    refused("ranking_is_tiers_of_ids", lambda: Annotation.objects.update(ranking=broken))


def test_a_ranking_of_two_responses_is_refused(project: Project, cast: Cast) -> None:
    ids = [[response.pk] for response in make_task(project).responses.all()]
    rate(project, cast.alice)
    refused("ranking_of_every_response", lambda: Annotation.objects.update(ranking=ids))


@pytest.mark.usefixtures("ranked")
def test_a_preference_beside_a_ranking_is_refused() -> None:
    refused("a_preference_or_a_ranking", lambda: Annotation.objects.update(preference=1))


def test_an_authoritative_ranking_keeps_to_the_same(ranked: list[int], cast: Cast) -> None:
    task = Task.objects.get()
    made = Adjudication(task=task, scores={}, reason="other", by=cast.carol, made_at=NOW)
    made.ranking = [[response] for response in ranked[:2]]
    refused("ranking_of_every_response", made.save)
    made.ranking = [[]]
    refused("settled_ranking_is_tiers_of_ids", made.save)
    made.ranking, made.preference = [ranked], 1
    refused("a_settled_preference_or_a_ranking", made.save)


_BEGINNINGS = """
SELECT shorter.indexrelid::regclass::text
FROM pg_index shorter JOIN pg_index longer USING (indrelid)
WHERE shorter.indexrelid <> longer.indexrelid AND NOT shorter.indisunique AND longer.indpred IS NULL
    AND shorter.indpred IS NULL AND shorter.indexprs IS NULL AND longer.indexprs IS NULL
    AND starts_with(longer.indkey::text || ' ', shorter.indkey::text || ' ')
    AND shorter.indclass[0] = longer.indclass[0] AND indrelid::regclass::text ~ '^(annotator|rewards)_'
    AND NOT starts_with(shorter.indexrelid::regclass::text, 'annotator_user_')
    AND NOT starts_with(shorter.indexrelid::regclass::text, 'rewards_score_reward_model_id')
"""
"""Indexes with which another one begins, without those of Django's own tables and of searches by a text's beginning.

Scores of a model lie together in their table, and counting a million of them by an index in another order takes ten
times as long.
"""


@pytest.mark.django_db
def test_no_index_is_the_beginning_of_another_one() -> None:
    with connection.cursor() as cursor:
        cursor.execute(_BEGINNINGS)
        assert cursor.fetchall() == []
