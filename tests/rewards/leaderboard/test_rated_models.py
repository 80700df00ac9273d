"""What people and the champion think of the models whose responses were rated: rows, page and REST."""

import csv
import io
from typing import Any

import pytest
from django.test import Client

from annotator.models import Adjudication, Label, Project, Response, Task
from annotator.stages import annotation
from annotator.stages.annotation.submissions import by_position
from rewards.leaderboard import rated_models
from rewards.leaderboard.model_ranking import Ranking
from rewards.leaderboard.rated_models import RatedModels, rows_of
from rewards.models import Score
from tests.builders import (
    ATTRIBUTES,
    NOW,
    claimed,
    imported,
    make_project,
    rate,
    submission,
    task_row,
)
from tests.conftest import Cast
from tests.rewards.scored import make_model

pytestmark = pytest.mark.django_db


def add_tasks(project: Project, *preferences: int | None, models: tuple[str, ...] = ("north", "south")) -> list[Task]:
    """Tasks whose responses are of these models, with imported preferences; the first response is the shorter one."""
    rows = []
    for _preference in preferences:
        row = task_row(responses=len(models))
        for number, (response, model) in enumerate(zip(row["responses"], models, strict=True)):
            response |= {"model": model, "text": f"It is so{'!' * number}"}
        rows.append(row)
    imported(project, *rows)
    tasks = list(Task.objects.filter(project=project, external_id__in=[row["id"] for row in rows]).order_by("pk"))
    for task, preference in zip(tasks, preferences, strict=True):
        Task.objects.filter(pk=task.pk).update(imported_preference=preference)
    return tasks


def label(task: Task, *levels: int) -> None:
    for response, level in zip(task.responses.order_by("position"), levels, strict=True):
        scores = dict.fromkeys(ATTRIBUTES, level)
        values = {"scores": scores, "means": scores, "made_at": NOW}
        Label.objects.create(project=task.project, response=response, source="imported", **values)


def read(project: Project) -> RatedModels:
    return rated_models.rated_models(project)


def wins(rated: RatedModels, ranked: Ranking) -> dict[str, float]:
    return {rated.names[standing.model]: standing.wins.value for standing in ranked.standings}


def test_preferences_are_counted_from_the_right_side_and_ties_as_halves(project: Project) -> None:
    """Negative: the first response, which is north's, is better."""
    add_tasks(project, -3, -1, 2, 0, None)
    rated = read(project)
    assert wins(rated, rated.people) == {"north": pytest.approx(2.5 / 4), "south": pytest.approx(1.5 / 4)}
    assert (rated.people.pairs, rated.people.ties) == (4, 1)


def test_means_are_those_of_the_labels_in_force(project: Project) -> None:
    first, second = add_tasks(project, None, None)
    label(first, 4, 1)
    label(second, 2, 1)
    means = read(project).means
    assert means["north"]["helpfulness"].value == 3
    assert (means["south"]["verbosity"].value, means["south"]["verbosity"].prompts) == (1, 2)


def test_the_reviewers_word_goes_before_the_imported_one(project: Project, cast: Cast) -> None:
    (task,) = add_tasks(project, -3)
    given = {"scores": {}, "reason": "other", "by": cast.carol, "made_at": NOW, "is_current": True}
    Adjudication.objects.create(task=task, preference=2, **given)
    rated = read(project)
    assert wins(rated, rated.people) == {"north": 0, "south": 1}


def test_rankings_make_pairs_and_ties(project: Project, cast: Cast) -> None:
    (task,) = add_tasks(project, None, models=("a", "b", "c"))
    one, two, three = task.responses.order_by("position").values_list("pk", flat=True)
    given = {"scores": {}, "reason": "other", "by": cast.carol, "made_at": NOW, "is_current": True}
    Adjudication.objects.create(task=task, ranking=[[three], [one, two]], **given)
    rated = read(project)
    assert wins(rated, rated.people) == {"c": 1, "a": 0.25, "b": 0.25}


def test_what_annotators_agree_on_is_counted(project: Project, cast: Cast) -> None:
    Project.objects.update(ask_preference=True)
    project.refresh_from_db()
    imported(project, task_row())
    for user in cast.annotators:
        held = claimed(project, user)
        # Sent for the order that was shown, which differs between annotators.
        preference = by_position(-2, held.response_order)
        annotation.submit(held.pk, submission(held.task, preference=preference, justification="Better."), now=NOW)
    rated = read(project)
    assert wins(rated, rated.people) == {"model-0": 1, "model-1": 0}


def test_the_champions_rewards_decide_within_a_task(project: Project) -> None:
    tasks = add_tasks(project, None, None)
    model = make_model(project, is_champion=True)
    for task, rewards in zip(tasks, ((0.1, 0.9), (0.5, 0.5)), strict=True):
        for response, reward in zip(task.responses.order_by("position"), rewards, strict=True):
            Score.objects.create(reward_model=model, response=response, scores={}, reward=reward)
    rated = read(project)
    assert wins(rated, rated.champion) == {"north": 0.25, "south": 0.75}
    assert rated.version == model.version


def test_a_model_is_not_compared_with_itself_nor_with_nobody(project: Project) -> None:
    add_tasks(project, -1, models=("north", "north"))
    add_tasks(project, -1, models=("north", ""))
    rated = read(project)
    assert rated.names == ["north"]
    assert rated.people.pairs == 0


@pytest.mark.parametrize("state", ["gold", "retired", "quarantined"])
def test_tasks_that_do_not_count_are_left_out(project: Project, state: str) -> None:
    add_tasks(project, -1)
    Task.objects.update(state=state)
    assert read(project).names == []


def test_dropped_tasks_have_no_say(project: Project, cast: Cast) -> None:
    imported(project, task_row())
    for user, level in zip(cast.annotators, (0, 0, 4), strict=True):
        rate(project, user, [level, 4 - level])
    rated = read(project)
    assert rated.people.pairs == 0
    assert not any(rated.means.values())


def test_only_some_tasks_of_a_large_project_are_read(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rated_models, "MOST_TASKS", 3)
    add_tasks(project, *[-1] * 5)
    rated = read(project)
    assert (rated.tasks, rated.partial) == (3, True)


def test_models_beyond_the_list_are_counted(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rated_models, "MOST_MODELS", 2)
    add_tasks(project, -1, -1)
    add_tasks(project, -1, models=("north", "rare"))
    rated = read(project)
    assert (rated.names, rated.left_out) == (["north", "south"], 1)


def test_another_projects_tasks_have_no_say(project: Project) -> None:
    add_tasks(make_project("other"), -1)
    assert read(project).names == []


# Page and REST ---------------------------------------------------------------------------------------------


@pytest.fixture
def page(client: Client, cast: Cast) -> Any:
    client.force_login(cast.carol)
    return lambda: " ".join(client.get("/projects/talk/models/ranking/").content.decode().split())


def test_it_says_who_is_ahead(page: Any, project: Project) -> None:
    add_tasks(project, *[-2] * 40, *[2] * 4)
    said = page()
    assert "At equal lengths, “north” is ahead of all others, by more than chance would explain." in said
    assert "90.9 %" in said
    assert 'data-chart="wins-people"' in said


def score(tasks: list[Task], *rewards: float, version: int = 1) -> None:
    model = make_model(tasks[0].project, is_champion=True)
    for task in tasks:
        for response, reward in zip(task.responses.order_by("position"), rewards, strict=True):
            Score.objects.create(reward_model=model, response=response, scores={}, reward=reward)


def test_one_table_has_both_orders_and_says_that_they_disagree(page: Any, project: Project) -> None:
    score(add_tasks(project, *[-2] * 12, *[2] * 4), 0.1, 0.9)
    orders = rated_models.both_orders(read(project))
    ranks = {name: [place and place.rank for place in places] for name, *places in orders.rows}
    assert ranks == {"north": [1, 2], "south": [2, 1]}
    assert (orders.correlation, orders.common, orders.disagree) == (-1, 2, True)
    assert "rank correlation of their orders over 2 models is \N{MINUS SIGN}1.00. Go by people" in page()


def test_orders_that_agree_are_no_warning(page: Any, project: Project) -> None:
    score(add_tasks(project, *[-2] * 12, *[2] * 4), 0.9, 0.1)
    assert not rated_models.both_orders(read(project)).disagree
    said = page()
    assert "is 1.00, over 2 models" in said
    assert "Go by people" not in said


def test_a_model_that_only_one_has_ranked_stands_in_the_table(page: Any, project: Project) -> None:
    add_tasks(project, -1, -1, 1)
    orders = rated_models.both_orders(read(project))
    assert [(name, champion) for name, _people, champion in orders.rows] == [("north", None), ("south", None)]
    assert (orders.correlation, orders.disagree) == (None, False)
    assert "Place by the reward model" in page()


def test_it_says_what_may_be_chance(page: Any, project: Project) -> None:
    add_tasks(project, -1, -1, 1)
    assert "this may be chance." in page()


def test_it_says_which_models_never_met(page: Any, project: Project) -> None:
    add_tasks(project, -1, 1)
    add_tasks(project, -1, 1, models=("east", "west"))
    said = page()
    assert "No comparison connects these sets of models" in said
    assert "ahead of all others" not in said


def test_it_says_why_there_is_nothing(page: Any, project: Project) -> None:
    assert "No response names the model that wrote it." in page()
    add_tasks(project, None)
    said = page()
    assert "No task has an agreed preference" in said
    assert "There is no champion yet that could score the responses." in said
    assert "No response has a label yet." in said


def test_hostile_names_stay_texts(page: Any, project: Project) -> None:
    add_tasks(project, *[-1] * 3, models=("<script>alert(1)</script>", "=1+1"))
    assert "<script>alert" not in page()
    assert all(row["model"] != "'=1+1" for row in rows_of(read(project)))


def test_rest_gives_the_same_numbers_as_json_and_csv(client: Client, project: Project, cast: Cast) -> None:
    add_tasks(project, -3, -1, 2, 0)
    label(add_tasks(project, None)[0], 4, 1)
    client.force_login(cast.carol)
    rows = client.get("/api/v1/projects/talk/model-ranking/").json()
    (won,) = (row["value"] for row in rows if (row["model"], row["measure"]) == ("north", "win rate"))
    assert won == 2.5 / 4
    assert {row["measure"] for row in rows} >= {"mean helpfulness", "length-controlled win rate"}
    text = client.get("/api/v1/projects/talk/model-ranking/?format=csv")
    lines = list(csv.DictReader(io.StringIO(b"".join(text.streaming_content).decode())))  # type: ignore[attr-defined]
    assert [line["model"] for line in lines] == [row["model"] for row in rows]
    assert client.get("/api/v1/projects/talk/model-ranking/?format=xml").status_code == 400


def test_a_name_that_looks_like_a_formula_is_guarded_in_csv(client: Client, project: Project, cast: Cast) -> None:
    add_tasks(project, *[-1] * 3, models=("=1+1", "south"))
    client.force_login(cast.carol)
    answer = client.get("/api/v1/projects/talk/model-ranking/?format=csv")
    text = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    assert "\n'=1+1," in text
    assert Response.objects.filter(model="=1+1").exists()
