"""What the champion says about tasks, on the pages of the human half: for managers only."""

import io
import json

import pyarrow.parquet
import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from annotator.models import Project, Role, Task
from annotator.outputs.exporting.export_rows import export
from annotator.outputs.exporting.filters import EVERYTHING
from annotator.outputs.exporting.layouts import LAYOUTS
from annotator.reading.search import criteria
from annotator.reading.search.criteria import Criteria, matching
from rewards.models import RewardModel, Score
from rewards.scoring import champion_scores
from tests.builders import ATTRIBUTES, make_member, make_task, make_user
from tests.conftest import Cast
from tests.rewards.scored import make_model


@pytest.fixture
def champion(project: Project) -> RewardModel:
    """It has scored two tasks; an earlier model thought the opposite of them."""
    earlier, champion = make_model(project), make_model(project, is_champion=True)
    for name, rewards in {"low": [-1.0, 0.5], "high": [2.0, 3.5]}.items():
        for response, reward in zip(make_task(project, name).responses.all(), rewards, strict=True):
            given = {"response": response, "scores": dict.fromkeys(ATTRIBUTES, 1.0)}
            Score.objects.create(reward_model=champion, reward=reward, **given)
            Score.objects.create(reward_model=earlier, reward=-10 * reward, **given)
    return champion


@pytest.mark.usefixtures("champion")
@pytest.mark.parametrize("few", [0, 1_000])
@pytest.mark.parametrize(
    ("least", "most", "names"),
    [
        (3.0, None, ["high"]),
        (None, 0.0, ["low"]),
        (0.0, 2.0, ["low", "high"]),
        (3.5, 3.5, ["high"]),
        (4.0, None, []),
        (None, -5.0, []),
    ],
)
def test_its_rewards_narrow_the_list(
    project: Project,
    cast: Cast,
    few: int,
    least: float | None,
    most: float | None,
    names: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(champion_scores, "FEW", few)
    found = matching(project, Criteria(least_reward=least, most_reward=most), reader=cast.carol).tasks
    assert list(found.order_by("pk").values_list("external_id", flat=True)) == names


@pytest.mark.usefixtures("champion")
def test_a_manager_sees_its_rewards_and_a_reviewer_does_not(project: Project, cast: Cast, client: Client) -> None:
    rita = make_user("rita")
    make_member(project, rita, role=Role.REVIEWER)
    address = f"/projects/talk/data/tasks/{Task.objects.get(external_id='high').public_id}/"
    for page in ("/projects/talk/data/", address):
        client.force_login(cast.carol)
        assert "3.50" in client.get(page).content.decode()
        client.force_login(rita)
        shown = client.get(page).content.decode()
        assert "3.50" not in shown
        assert "model-1" not in shown


@pytest.mark.usefixtures("champion")
def test_a_reviewer_cannot_filter_by_what_they_do_not_see(project: Project, cast: Cast, client: Client) -> None:
    rita = make_user("rita")
    make_member(project, rita, role=Role.REVIEWER)
    client.force_login(rita)
    shown = client.get("/projects/talk/data/?reward_from=3&model=nobody").content.decode()
    assert ">high<" in shown
    assert ">low<" in shown


def test_without_a_champion_nothing_has_a_reward(project: Project, cast: Cast) -> None:
    task = make_task(project)
    assert criteria.champion_scores().rewards_of(project, [task.pk]) == {}
    assert not matching(project, Criteria(least_reward=-1e9), reader=cast.carol).tasks.exists()


def test_the_story_names_the_versions_that_scored_the_task(
    project: Project, cast: Cast, client: Client, champion: RewardModel
) -> None:
    client.force_login(cast.carol)
    task = Task.objects.get(external_id="low")
    shown = client.get(f"/projects/talk/data/tasks/{task.public_id}/").content.decode()
    assert f"Scored by model version {champion.version}" in shown


def test_the_champions_scores_are_exported(project: Project) -> None:
    task = make_task(project, "one")
    earlier, champion = make_model(project), make_model(project, is_champion=True)
    for response in task.responses.all():
        for model, reward in ((champion, 1.5), (earlier, -3.0)):
            scores = {"verbosity": 0.5, "helpfulness": 2.25, "gone": 1.0}
            Score.objects.create(reward_model=model, response=response, scores=scores, reward=reward)
    lines = b"".join(export(project, layout="scores", format="jsonl")).splitlines()
    rows = [json.loads(line) for line in lines]
    assert all(row.pop("scored_at") for row in rows)
    scores = {"helpfulness": 2.25, "verbosity": 0.5}
    assert rows == [
        {"task": "one", "response": name, "model": model, "reward": 1.5, "scores": scores, "version": champion.version}
        for name, model in (("1", "model-0"), ("2", "model-1"))
    ]
    table = pyarrow.parquet.read_table(io.BytesIO(b"".join(export(project, layout="scores", format="parquet"))))
    assert [row["scores"]["helpfulness"] for row in table.to_pylist()] == [2.25, 2.25]
    assert LAYOUTS["scores"].count(project, EVERYTHING) == 2


def test_a_recount_counts_the_scores_of_each_model(project: Project, champion: RewardModel) -> None:
    assert champion_scores.score_count_differences(project) == []
    RewardModel.objects.filter(pk=champion.pk).update(scored=7)
    (difference,) = champion_scores.score_count_differences(project)
    assert str(difference) == f"model version {champion.version}: scored is 7, recomputed 4"
    with pytest.raises(CommandError, match="1 differences"):
        call_command("recount", "talk", check=True)
    call_command("recount", "talk")
    assert champion_scores.score_count_differences(project) == []
