"""Untouched tasks by the champion's uncertainty."""

import pytest
from django.utils import timezone

from annotator.models import Project, Response, Task
from rewards import uncertainty_order
from rewards.models import RewardModel, Score, ScoringLane, ScoringPass
from tests.builders import claimed, imported, task_row
from tests.conftest import Cast
from tests.rewards.scored import make_model

TASKS = 20


@pytest.fixture
def project(project: Project) -> Project:
    project.queue_order = Project.QueueOrder.UNCERTAIN
    project.save()
    return project


def make_scored(project: Project, *, number: int = TASKS, uncertain: bool = True) -> RewardModel:
    """The later a task was imported, the less certain the champion is of its second response."""
    RewardModel.objects.update(is_champion=False)
    model = make_model(project, is_champion=True)
    imported(project, *(task_row() for _ in range(number)))
    score(model, uncertain=uncertain)
    last = Task.objects.order_by("pk").last()
    assert last
    ScoringPass.objects.create(reward_model=model, began_at=timezone.now(), handed_out=last.pk)
    return model


def score(model: RewardModel, *, uncertain: bool = True) -> None:
    for response in Response.objects.exclude(model_scores__reward_model=model):
        certain = 0.1 if response.position == 0 else 0.2 + response.task_id
        Score.objects.create(
            reward_model=model, response=response, scores={}, reward=1.0, uncertainty=certain if uncertain else None
        )


def doubts() -> list[int]:
    return list(Task.objects.order_by("pk").values_list("doubt", flat=True))


def test_tasks_are_parted_into_tenths(project: Project) -> None:
    make_scored(project)
    assert uncertainty_order.order_queues() == TASKS - 1, "the first stays where it is"
    assert doubts() == [min(number // 2, 9) for number in range(1, TASKS + 1)]


def test_the_least_certain_comes_first(project: Project, cast: Cast) -> None:
    make_scored(project)
    uncertainty_order.order_queues()
    assert claimed(project, cast.alice).task.doubt == 9


def test_a_second_time_nothing_is_done(project: Project) -> None:
    make_scored(project)
    uncertainty_order.order_queues()
    assert uncertainty_order.order_queues() == 0


def test_new_tasks_go_by_the_same_edges(project: Project) -> None:
    model = make_scored(project)
    uncertainty_order.order_queues()
    imported(project, task_row("new"))
    score(model)
    newest = Task.objects.get(external_id="new")
    ScoringPass.objects.update(handed_out=newest.pk)
    assert uncertainty_order.order_queues() == 1
    newest.refresh_from_db()
    assert newest.doubt == 9


def test_while_scoring_goes_on_it_waits(project: Project) -> None:
    model = make_scored(project)
    ScoringLane.objects.create(scoring_pass=model.scoring_pass, number=1, moved_at=timezone.now())
    assert uncertainty_order.order_queues() == 0


def test_by_priority_again_all_are_alike(project: Project) -> None:
    make_scored(project)
    uncertainty_order.order_queues()
    Project.objects.update(queue_order=Project.QueueOrder.PRIORITY)
    assert [uncertainty_order.order_queues() for _ in range(2)] == [TASKS - 1, 0]
    assert set(doubts()) == {0}


def test_by_priority_nothing_is_moved(project: Project) -> None:
    Project.objects.update(queue_order=Project.QueueOrder.PRIORITY)
    make_scored(project)
    assert uncertainty_order.order_queues() == 0


def test_a_new_champion_s_doubts_replace_the_old_one_s(project: Project) -> None:
    make_scored(project)
    uncertainty_order.order_queues()
    before = doubts()
    newer = make_scored(project, number=0)
    Score.objects.filter(reward_model=newer, response__position=1).update(uncertainty=0.3)
    Score.objects.filter(reward_model=newer, response__task=Task.objects.earliest("pk")).update(uncertainty=5.0)
    assert uncertainty_order.order_queues()
    assert doubts()[0] == 9
    assert before[0] == 0


def test_a_model_that_does_not_say_moves_nothing(project: Project) -> None:
    make_scored(project, uncertain=False)
    assert uncertainty_order.order_queues() == 0
