"""The scores of champions that were replaced long ago go; those that a project may still need stay."""

from datetime import timedelta

import pytest
from django.conf import LazySettings

from annotator.models import Project, Response
from rewards.models import RewardModel, Score, ScoringPass
from rewards.promotion import promotion
from rewards.scoring import former_scores, pass_lanes
from rewards.scoring.former_scores import thin
from tests.builders import ATTRIBUTES, NOW, make_project, make_task
from tests.rewards.scored import make_model

DAY = timedelta(days=1)


@pytest.fixture
def versions(project: Project) -> list[RewardModel]:
    """Five versions that were the champion one after the other, a day each, and one that never was."""
    return [*champions_of(project), scored(make_model(project))]


def champions_of(project: Project) -> list[RewardModel]:
    make_task(project)
    days = range(10, 5, -1)
    made = [make_model(project, promoted_at=NOW - day * DAY, is_champion=day == days[-1]) for day in days]
    return [scored(model) for model in made]


def scored(model: RewardModel) -> RewardModel:
    for response in Response.objects.filter(task__project=model.project):
        Score.objects.create(
            reward_model=model, response=response, scores=dict.fromkeys(ATTRIBUTES, 1.0), reward=float(model.version)
        )
    ScoringPass.objects.create(reward_model=model, handed_out=10**6, began_at=NOW)
    return model


def with_scores(models: list[RewardModel]) -> list[bool]:
    return [Score.objects.filter(reward_model=model).exists() for model in models]


def test_the_champion_and_the_two_before_it_keep_their_scores(versions: list[RewardModel]) -> None:
    assert thin(now=NOW) == 4
    assert with_scores(versions) == [False, False, True, True, True, True]
    # The pass goes with the scores: who is promoted again begins at the first task.
    assert [ScoringPass.objects.filter(reward_model=model).exists() for model in versions] == with_scores(versions)
    assert thin(now=NOW) == 0


@pytest.mark.parametrize(("kept", "deleted"), [(0, 8), (1, 6), (4, 0), (9, 0)])
def test_the_setting_says_how_many_are_kept(
    versions: list[RewardModel], settings: LazySettings, kept: int, deleted: int
) -> None:
    settings.SCORES_OF_FORMER_CHAMPIONS = kept
    assert thin(now=NOW) == deleted
    assert with_scores(versions)[-2:] == [True, True]


def test_large_numbers_go_in_small_portions(versions: list[RewardModel], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(former_scores, "BATCH", 1)
    assert thin(now=NOW) == 4
    assert with_scores(versions) == [False, False, True, True, True, True]


def test_nothing_goes_on_the_day_of_a_promotion(versions: list[RewardModel]) -> None:
    promotion.promote(versions[0], now=NOW)
    assert thin(now=NOW + DAY / 2) == 0
    # The order of promotions counts: the first version is the champion now, the second and third were so long ago.
    assert thin(now=NOW + 2 * DAY) == 4
    assert with_scores(versions) == [True, False, False, True, True, True]


def test_a_version_that_is_promoted_again_scores_from_the_first_task_on(versions: list[RewardModel]) -> None:
    thin(now=NOW)
    promotion.promote(versions[0], now=NOW)
    assert pass_lanes.start_due(now=NOW) == 1
    assert ScoringPass.objects.get(reward_model=versions[0]).handed_out == 0


def test_each_project_has_its_own(versions: list[RewardModel]) -> None:
    others = champions_of(make_project("others"))
    assert thin(now=NOW) == 8
    assert with_scores(others) == with_scores(versions)[:5] == [False, False, True, True, True]


def test_a_project_without_a_champion_keeps_everything(versions: list[RewardModel]) -> None:
    RewardModel.objects.update(is_champion=False)
    assert thin(now=NOW) == 0
    assert all(with_scores(versions))


def counts_hold() -> bool:
    return all(model.scored == model.scores.count() for model in RewardModel.objects.all())


def test_each_model_knows_the_number_of_its_scores(versions: list[RewardModel]) -> None:
    assert RewardModel.objects.filter(scored=2).count() == len(versions)
    thin(now=NOW)
    assert RewardModel.objects.filter(scored=0).count() == 2
    assert counts_hold()


def test_the_scores_of_a_response_are_counted_out_when_it_goes(versions: list[RewardModel]) -> None:
    Response.objects.all()[0].delete()
    assert RewardModel.objects.filter(scored=1).count() == len(versions)
    assert counts_hold()
