"""The tab Models: what its pages show to whom, and what managers do there."""

import dataclasses
import json
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.background.heartbeats import QueueHealth
from annotator.models import AuditEntry, Project, Response, Role, Task, User
from annotator.models.annotation import NEITHER_VALID
from annotator.models.public_ids import response_of
from annotator.models.splits import is_held_out
from annotator.stages.review import adjudicate
from rewards import scoring
from rewards.evaluation import largest_errors
from rewards.learning.config import PATH_SETTINGS, TrainConfig
from rewards.learning.data import Response as Scored
from rewards.learning.data import Task as Row
from rewards.models import RewardModel, RunKind, RunState, ScoringPass, Snapshot, TrainingRun
from rewards.reasons import coded, in_words
from rewards.reports import run_progress
from rewards.runs import new_labels
from rewards.runs.setting_texts import SETTINGS
from tests.builders import ATTRIBUTES, NOW, claimed, make_gold, make_member, make_project, make_task, make_user, rate
from tests.conftest import As, Cast
from tests.rewards.evaluated import make_evaluation, noisy_metrics
from tests.rewards.labelled import labelled_project, preferred_project
from tests.rewards.scored import make_model

pytestmark = pytest.mark.django_db
AGAINST = {
    "promote": False,
    "reason": coded("reaches_zero", prompts=40, gain=0.05),
    "against": "the champion",
    "gain": 0.01,
    "low": -0.1,
    "high": 0.12,
    "prompts": 40,
}
PAGES = ("models/", "models/{model}/", "models/runs/{run}/", "models/runs/{run}/live/", "models/runs/{run}/losses/")
LOG = "models/runs/{run}/log/"
POSTS = (
    "models/runs/{run}/stop/",
    "models/runs/{run}/repeat/",
    "models/{model}/promote/",
    "models/{model}/reject/",
    "models/{model}/verify/",
    "models/{model}/erase/",
)


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "listening", lambda: dict.fromkeys(heartbeats.QUEUES, QueueHealth(0, None)))


@pytest.fixture
def carol(cast: Cast, client: Client, workers: None) -> Client:
    """The manager's browser."""
    client.force_login(cast.carol)
    return client


def judged_model(project: Project, **fields: Any) -> RewardModel:
    model = make_model(project, **fields)
    make_evaluation(model, metrics=noisy_metrics(1, 0.8, list(ATTRIBUTES)))
    return model


def waiting_model(project: Project) -> RewardModel:
    model = judged_model(project)
    TrainingRun.objects.filter(pk=model.run_id).update(state=RunState.AWAITING_PROMOTION)
    return model


def text(client: Client, address: str) -> str:
    answer = client.get(f"/projects/talk/{address}")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


@pytest.mark.parametrize("address", [*PAGES, LOG])
def test_each_page_is_for_reviewers_and_managers(
    client: Client, project: Project, cast: Cast, rita: User, workers: None, address: str
) -> None:
    model = judged_model(project)
    path = f"/projects/talk/{address.format(model=model.pk, run=model.run_id)}"
    assert client.get(path).headers["Location"].startswith("/login/")
    for user, status in ((cast.dave, 404), (cast.alice, 403), (rita, 200), (cast.carol, 200)):
        client.force_login(user)
        assert client.get(path).status_code == status, user


@pytest.mark.parametrize("address", [*PAGES[1:], LOG, *POSTS])
def test_rows_of_another_project_are_not_found(carol: Client, project: Project, cast: Cast, address: str) -> None:
    other = labelled_project("other", tasks=1)
    make_member(other, cast.carol, Role.MANAGER)
    model = judged_model(other)
    path = f"/projects/talk/{address.format(model=model.pk, run=model.run_id)}"
    assert (carol.post if address in POSTS else carol.get)(path).status_code == 404


# At a glance -----------------------------------------------------------------------------------------------


def test_the_champion_is_shown_in_words(carol: Client, project: Project) -> None:
    judged_model(project, is_champion=True, promoted_at=NOW)
    page = text(carol, "models/")
    assert "80.0 % of 8 pairs of responses in the order that people gave them" in page
    assert "levels off (root mean square). Predicting the mean of each attribute would be" in page


def test_a_queue_without_a_worker_is_named_at_once(cast: Cast, client: Client, project: Project, silent: None) -> None:
    client.force_login(cast.carol)
    page = text(client, "models/")
    assert "No training worker is running (queue “train”)" in page
    assert "no worker listens to the queue “score”" in page


def test_nothing_is_named_while_all_queues_are_served(carol: Client) -> None:
    assert "no worker listens" not in text(carol, "models/")


def test_a_waiting_candidate_leads_to_its_page(carol: Client, project: Project) -> None:
    model = waiting_model(project)
    page = text(carol, "models/")
    assert f"Version {model.version} waits for your decision" in page
    assert "Start a training run" not in page


def test_a_reviewer_sees_no_button_and_no_name(
    client: Client, project: Project, cast: Cast, rita: User, workers: None
) -> None:
    run = TrainingRun.objects.create(project=project, reason="requested by carol", requested_by=cast.carol)
    client.force_login(rita)
    for address in ("models/", f"models/runs/{run.pk}/"):
        page = text(client, address)
        assert "carol" not in page
        assert '<button class="risky"' not in page
        assert "Start a training run" not in page


def test_long_lists_are_paged(
    carol: Client, project: Project, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    models = [make_model(project) for _ in range(20)]
    with django_assert_max_num_queries(20):
        page = text(carol, "models/")
    assert f"Run {models[-1].run_id}<" in page
    assert f"Run {models[0].run_id}<" not in page
    older = text(carol, f"models/?runs={models[5].run_id}&versions={models[5].pk}")
    assert f"Run {models[0].run_id}<" in older
    assert f"Version {models[0].version}<" in older
    assert text(carol, "models/?runs=none&versions=99999999999999999999")


# A run -----------------------------------------------------------------------------------------------------


def make_run(project: Project, state: RunState, **fields: Any) -> TrainingRun:
    return TrainingRun.objects.create(project=project, state=state, reason="a test", **fields)


def steps(count: int, *, seconds: float = 2.0) -> list[dict[str, Any]]:
    return [
        {"event": "step", "time": 1000 + seconds * n, "stage": "regression", "step": n, "steps": 100, "loss": 1 / n}
        for n in range(1, count + 1)
    ]


def test_a_working_run_says_how_far_it_is(carol: Client, project: Project) -> None:
    losses = steps(40)
    run = make_run(project, RunState.TRAINING, losses=losses, progress=losses[-1], started_at=NOW, log="one\ntwo\n")
    page = text(carol, f"models/runs/{run.pk}/")
    assert '<progress value="40" max="100"' in page
    assert "At this pace the steps take 2 min more." in page
    assert 'hx-trigger="every 3s"' in page
    assert "two</pre>" in page


def test_the_page_stops_asking_when_the_run_has_ended(carol: Client, project: Project) -> None:
    run = make_run(project, RunState.TRAINING)
    path, header = f"/projects/talk/models/runs/{run.pk}/live/", {"HX-Request": "true"}
    assert "HX-Refresh" not in carol.get(path, headers=header).headers
    TrainingRun.objects.update(state=RunState.FAILED)
    assert carol.get(path, headers=header).headers["HX-Refresh"] == "true"
    assert "hx-get" not in text(carol, f"models/runs/{run.pk}/")


def test_a_failed_run_shows_its_error_and_the_end_of_its_log(carol: Client, project: Project) -> None:
    log = "\n".join(f"line {n}." for n in range(100))
    run = make_run(project, RunState.FAILED, error="The trainer was killed.", log=log, finished_at=NOW)
    page = text(carol, f"models/runs/{run.pk}/")
    assert "<strong>The trainer was killed.</strong>" in page
    assert "line 99." in page
    assert "line 3." not in page
    assert "Try again" in page
    answer = carol.get(f"/projects/talk/models/runs/{run.pk}/log/")
    assert answer.content.decode() == log
    assert answer.headers["Content-Disposition"] == f'attachment; filename="talk-run-{run.pk}.log"'


def test_a_cancelled_run_explains_itself(carol: Client, project: Project) -> None:
    run = make_run(project, RunState.CANCELLED, finished_at=NOW)
    page = text(carol, f"models/runs/{run.pk}/")
    assert "Somebody cancelled this run before it ended." in page
    assert "It has made no model, and the champion is the one from before." in page
    dropped = make_run(project, RunState.CANCELLED, error="Nothing has changed since version 3.", finished_at=NOW)
    page = text(carol, f"models/runs/{dropped.pk}/")
    assert "Nothing has changed since version 3." in page
    assert "Somebody cancelled" not in page


def test_a_manager_cancels_and_tries_again(carol: Client, project: Project) -> None:
    run = make_run(project, RunState.TRAINING)
    carol.post(f"/projects/talk/models/runs/{run.pk}/stop/")
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED
    answer = carol.post(f"/projects/talk/models/runs/{run.pk}/repeat/")
    again = TrainingRun.objects.get(state=RunState.QUEUED)
    assert answer.headers["Location"] == f"/projects/talk/models/runs/{again.pk}/"


def test_hostile_texts_of_a_run_stay_texts(carol: Client, project: Project) -> None:
    evil = "<script>alert(1)</script>"
    run = make_run(project, RunState.FAILED, error=evil, log=evil, progress={"event": evil, "step": "x", "steps": []})
    for address in ("models/", f"models/runs/{run.pk}/"):
        assert "<script>alert" not in text(carol, address)


# A version -------------------------------------------------------------------------------------------------


def test_the_page_of_a_version_shows_figures_with_intervals_and_charts(carol: Client, project: Project) -> None:
    model = judged_model(project)
    page = text(carol, f"models/{model.pk}/")
    assert page.count('data-chart="predicted-') == len(ATTRIBUTES)
    assert '<span class="interval">' in page
    assert "<dt>Language model</dt>" in page


def test_every_number_says_of_which_prompts_and_labels_it_is(carol: Client, project: Project) -> None:
    model = judged_model(project)
    counts = {
        "train_prompts": 33, "validation_prompts": 26, "train_labels": 66, "validation_labels": 52,
    }  # fmt: skip
    tasks = dict.fromkeys(("train_tasks", "validation_tasks"), 1)
    snapshot = Snapshot.objects.create(
        project=project, content_hash="c0ffee", path="none", manifest={"counts": counts}, labels=118, **tasks
    )
    verdict = AGAINST | {"prompts": 59}
    TrainingRun.objects.filter(pk=model.run_id).update(
        snapshot=snapshot, verdict=verdict, state=RunState.AWAITING_PROMOTION
    )
    listed = " ".join(text(carol, "models/").split())
    assert '66<span class="interval">52 held out</span>' in listed
    for address in (f"models/{model.pk}/", f"models/runs/{model.run_id}/"):
        assert "Of these 59 prompts, 26 are held out" in text(carol, address)
    assert "(66 to learn from, 52 held out)" in text(carol, f"models/runs/{model.run_id}/")
    assert re.search(r"Measured on \d+ held-out prompts", text(carol, f"models/{model.pk}/"))


def test_a_champion_that_is_no_better_than_length_says_so_plainly(carol: Client, project: Project) -> None:
    model = judged_model(project)
    RewardModel.objects.filter(pk=model.pk).update(is_champion=True)
    evaluation = model.evaluations.latest("pk")
    evaluation.metrics["pairwise"] = {"pairs": 117, "accuracy": 0.769, "longer_wins": 0.769}
    evaluation.save()
    for address in ("models/", f"models/{model.pk}/"):
        assert '<p class="message warning">It orders pairs no better than by their length' in text(carol, address)


def test_no_prediction_on_a_page_leaves_the_scale(project: Project) -> None:
    response = make_task(project).responses.all()[0]
    attributes = project.attributes_for()[:2]
    values = {attributes[0].key: [4.2, 4.0], attributes[1].key: [-0.3, 1.0]}
    kept = [{"response": response.public_id, "values": values}]
    (miss,) = largest_errors.misses(kept, project, attributes, reader=make_user("rita"))
    assert [(predicted, people) for _name, predicted, people in miss.values] == [(5.0, 5.0), (1.0, 2.0)]


def test_figures_by_language_stand_on_the_page_of_a_version(carol: Client, project: Project) -> None:
    model = judged_model(project)
    evaluation = model.evaluations.latest("pk")
    pairs = {"pairs": 4, "accuracy": 0.5}
    parts = {name: {"n": n, "rmse": 1.25, "pairwise": pairs} for name, n in (("de", 8), ("en", 40))}
    evaluation.metrics["slices"] = {"language": parts}
    evaluation.save()
    page = text(carol, f"models/{model.pk}/")
    assert page.index('<th scope="row" translate="no">en</th>') < page.index('<th scope="row" translate="no">de</th>')
    assert "1.250" in page


def test_a_model_that_the_gate_turned_down_repeats_its_words_and_asks(carol: Client, project: Project) -> None:
    model = judged_model(project)
    TrainingRun.objects.filter(pk=model.run_id).update(state=RunState.REJECTED, verdict=AGAINST)
    page = text(carol, f"models/{model.pk}/")
    assert "No evidence that it is better" in page
    assert 'name="confirm" required' in page
    carol.post(f"/projects/talk/models/{model.pk}/promote/")
    model.refresh_from_db()
    assert not model.is_champion
    carol.post(f"/projects/talk/models/{model.pk}/promote/", {"confirm": "on"})
    model.refresh_from_db()
    assert model.is_champion
    assert AuditEntry.objects.get(action="model.promoted").details["overruled"] == in_words(AGAINST["reason"])


def test_the_gates_words_are_said_in_the_language_of_the_reader(
    carol: Client, project: Project, german: Mapping[str, str]
) -> None:
    model = judged_model(project)
    TrainingRun.objects.filter(pk=model.run_id).update(state=RunState.REJECTED, verdict=AGAINST | {"look": 2})
    page = carol.get(f"/projects/talk/models/{model.pk}/", headers=german).content.decode()
    assert "Kein Beleg dafür, dass es besser ist" in page
    assert "einen Gewinn von etwa 0,050 oder mehr zeigen" in page
    assert "sinkt gegenüber dem Champion um 0,010 (95-%-Intervall −0,100 bis 0,120, 40 Prompts)" in page
    assert "Es ist der 2. Vergleich mit dem Champion" in page


def test_a_manager_rejects_what_waits(carol: Client, project: Project) -> None:
    model = waiting_model(project)
    carol.post(f"/projects/talk/models/{model.pk}/reject/")
    model.run.refresh_from_db()
    assert model.run.state == RunState.REJECTED


def test_a_manager_checks_the_files(carol: Client, project: Project) -> None:
    model = make_model(project)
    shown = carol.post(f"/projects/talk/models/{model.pk}/verify/", follow=True).content.decode()
    assert "message error" in shown, "there are no files"


def test_only_what_holds_erased_texts_is_erased(carol: Client, project: Project) -> None:
    model = make_model(project)
    address = f"/projects/talk/models/{model.pk}/"
    assert carol.post(f"{address}erase/").status_code == 404
    counts = dict.fromkeys(("train_tasks", "validation_tasks", "labels"), 1)
    snapshot = Snapshot.objects.create(project=project, content_hash="c0ffee", path="none", manifest={}, **counts)
    TrainingRun.objects.update(snapshot=snapshot)
    assert "Erase its files" not in carol.get(address).content.decode()
    assert "message error" in carol.post(f"{address}erase/", follow=True).content.decode()
    Snapshot.objects.update(marked_at=NOW)
    assert "Erase its files and models" in carol.get(address).content.decode()
    assert "Its files were erased" in carol.post(f"{address}erase/", follow=True).content.decode()
    assert Snapshot.objects.get().erased_at


def test_a_former_champion_comes_back(carol: Client, project: Project) -> None:
    first = judged_model(project, promoted_at=NOW - timedelta(days=1))
    second = judged_model(project, is_champion=True, promoted_at=NOW)
    assert f"Roll back to version {first.version}" in text(carol, "models/")
    assert "confirm" not in text(carol, f"models/{first.pk}/")
    carol.post(f"/projects/talk/models/{first.pk}/promote/")
    assert RewardModel.objects.get(is_champion=True) == first
    assert "It is a former champion" in text(carol, f"models/{second.pk}/")


# The start of a run ----------------------------------------------------------------------------------------


def start(client: Client, slug: str = "labelled", **fields: Any) -> Any:
    return client.post(f"/projects/{slug}/models/runs/start/", fields)


@pytest.fixture
def labelled(cast: Cast, carol: Client) -> Project:
    made = labelled_project(tasks=12)
    make_member(made, cast.carol, Role.MANAGER)
    return made


FORM = {"backbone": "minilm", "stages": "regression", "method": "fine_tune", "epochs": "2"}
CHOSEN = {"targets": "mean", "schedule": "constant", "device": "auto", "precision": "auto"}


def test_a_run_starts_with_what_was_changed(carol: Client, labelled: Project) -> None:
    answer = start(carol, **FORM | CHOSEN | {"epochs": "3", "seed": "7", "learning_rate": "0.001"})
    run = TrainingRun.objects.get()
    assert answer.headers["Location"] == f"/projects/labelled/models/runs/{run.pk}/"
    assert run.config == {"backbone": "minilm", "epochs": 3, "seed": 7, "learning_rate": 0.001}


def test_the_quick_way_fine_tunes_nothing(carol: Client, labelled: Project) -> None:
    start(carol, **FORM | CHOSEN | {"method": "quick"})
    assert TrainingRun.objects.get().config["epochs"] == 0


def test_the_page_says_what_it_will_learn_from(carol: Client, labelled: Project) -> None:
    page = " ".join(carol.get("/projects/labelled/models/runs/start/").content.decode().split())
    assert "<dt>Labelled responses</dt><dd>24</dd>" in page
    assert "A run cannot start yet" not in page


def test_the_page_says_why_it_cannot_start(carol: Client, project: Project) -> None:
    assert "There are no labels and no preferences in Talk yet." in text(carol, "models/runs/start/")
    assert "There is nothing to learn from yet." in text(carol, "models/runs/start/")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"seed": "-1"}, "greater than or equal to 0"),
        ({"epochs": "99999999"}, "less than or equal to 10000"),
        ({"alphas": "1, two"}, "Write numbers, separated by commas."),
        ({"alphas": "-1"}, "alphas must be a list of positive numbers"),
        ({"alphas": ",".join(["1"] * 201)}, "the number of alphas must be at most 200, not 201"),
        ({"dev_share": "2"}, "dev_share must lie between 0 and 1"),
        ({"learning_rate": "nan"}, "Enter a number."),
        ({"max_hours": "8000"}, "max_hours must be at most"),
        ({"backbone": "/etc"}, "Select a valid choice"),
        ({"weight-helpfulness": "1"}, "Fill in the weights of all attributes, or none."),
    ],
)
def test_a_wrong_setting_is_shown_at_its_field(
    carol: Client, labelled: Project, fields: dict[str, str], words: str
) -> None:
    answer = start(carol, **FORM | CHOSEN | fields)
    assert answer.status_code == 422
    page = answer.content.decode()
    (name,) = fields
    wrong = f'id="id_{name}_error"' if name != "weight-helpfulness" else 'id="id_weight-correctness_error"'
    assert wrong in page
    assert words in page
    assert not TrainingRun.objects.exists()


def test_a_second_run_is_refused_with_a_reason(carol: Client, labelled: Project) -> None:
    start(carol, **FORM | CHOSEN)
    answer = start(carol, **FORM | CHOSEN)
    assert answer.status_code == 422
    assert "is in progress. Wait for it or cancel it." in answer.content.decode()
    assert TrainingRun.objects.count() == 1


def test_a_refused_run_is_explained_in_the_language_of_the_reader(
    carol: Client, labelled: Project, german: Mapping[str, str]
) -> None:
    start(carol, **FORM | CHOSEN)
    answer = carol.post("/projects/labelled/models/runs/start/", FORM | CHOSEN, headers=german)
    run = TrainingRun.objects.get()
    assert f"Lauf {run.pk} von {labelled} ist im Gange. Warten Sie auf ihn" in answer.content.decode()


def test_a_wrong_setting_is_explained_in_the_language_of_the_reader(
    carol: Client, labelled: Project, german: Mapping[str, str]
) -> None:
    wrong = FORM | CHOSEN | {"alphas": "-1"}
    page = carol.post("/projects/labelled/models/runs/start/", wrong, headers=german).content.decode()
    assert 'id="id_alphas_error"' in page
    assert "Einstellungen ablehnen: alphas muss eine Liste positiver Zahlen sein." in page


# What stands behind the pages ------------------------------------------------------------------------------


def test_every_setting_of_the_trainer_has_its_words() -> None:
    fields = {field.name for field in dataclasses.fields(TrainConfig) if field.name not in PATH_SETTINGS}
    assert set(SETTINGS) == fields


def test_rest_describes_every_setting(carol: Client) -> None:
    schema = json.loads(carol.get("/api/v1/schema/", headers={"Accept": "application/vnd.oai.openapi+json"}).content)
    address = schema["paths"]["/api/v1/projects/{slug}/training-runs/"]["post"]
    name = address["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    config = schema["components"]["schemas"][name]["properties"]["config"]
    assert config["properties"]["seed"]["description"] == SETTINGS["seed"].help


def test_the_material_is_split_as_a_snapshot_splits_it(labelled: Project) -> None:
    hashes = {task.prompt_hash for task in labelled.tasks.all()}
    held_out = {prompt for prompt in hashes if is_held_out(prompt, labelled.validation_share)}
    counted = new_labels.material(labelled)
    assert (counted.labels, counted.held_out_prompts, counted.train_prompts) == (
        24,
        len(held_out),
        len(hashes) - len(held_out),
    )
    assert counted.suffices


def test_preferences_without_labels_are_material(cast: Cast) -> None:
    counted = new_labels.material(preferred_project(tasks=12))
    assert (counted.labels, counted.preferences) == (0, 12)
    assert counted.train_prompts + counted.held_out_prompts == 12


def test_a_reviewers_preference_is_material_in_place_of_the_annotators(project: Project, cast: Cast) -> None:
    Project.objects.update(base_annotators=1, max_annotators=1, keep=1, ask_preference=True)
    tasks = [make_task(project) for _ in range(3)]
    for preference in (1, 1, NEITHER_VALID):
        rate(project, cast.alice, preference=preference)
    assert new_labels.material(project).preferences == 2
    for task, preference in zip(tasks[1:], (NEITHER_VALID, -2), strict=True):
        scores = {response.pk: dict.fromkeys(ATTRIBUTES, 2) for response in task.responses.all()}
        adjudicate(task.pk, scores=scores, preference=preference, reason="slip", by=cast.carol, now=NOW)
        assert new_labels.material(project).preferences == (1 if preference == NEITHER_VALID else 2)


def test_material_beyond_the_limit_is_said_to_be_more(labelled: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_labels, "MOST_TASKS", 5)
    counted = new_labels.material(labelled)
    assert counted.at_least
    assert counted.labels < 24


def kept_errors(model: RewardModel, *responses: Response) -> None:
    errors = [
        {"response": response.public_id, "error": 4.0, "values": {"helpfulness": [3.2, 1.0]}} for response in responses
    ]
    TrainingRun.objects.filter(pk=model.run_id).update(metrics={"largest_errors": errors})


def test_the_largest_errors_lead_to_their_tasks(carol: Client, project: Project) -> None:
    task, model = make_task(project), judged_model(project)
    kept_errors(model, *task.responses.all())
    page = text(carol, f"models/{model.pk}/")
    assert f"/projects/talk/review/{task.public_id}/" in page
    assert "4.2 <span" in page
    assert "people: 2.0" in page


def test_errors_on_gold_on_tasks_that_one_rates_and_elsewhere_stay_unseen(
    carol: Client, project: Project, cast: Cast
) -> None:
    held, gold = make_task(project), make_gold(project)
    other = make_task(make_project("other"))
    model = judged_model(project)
    kept_errors(model, *(response for task in (held, gold, other) for response in task.responses.all()))
    Task.objects.filter(pk=held.pk).update(priority=9)
    claimed(project, cast.carol)
    page = text(carol, f"models/{model.pk}/")
    assert "There is nothing to show here." in page
    assert "/review/" + str(held.public_id) not in page


def test_rest_leaves_out_single_responses(project: Project, cast: Cast, as_user: As) -> None:
    model = judged_model(project)
    kept_errors(model, *make_task(project).responses.all())
    answer = as_user(cast.carol).get(f"/api/v1/training-runs/{model.run_id}/").json()
    assert "largest_errors" not in answer["metrics"]


def test_the_largest_errors_are_those_of_the_held_out_rows(tmp_path: Path) -> None:
    rows = [
        Row(
            f"t-{n}",
            str(n),
            (),
            tuple(Scored(str(2 * n + place), "", {"helpfulness": 2.0}, {}, ()) for place in (0, 1)),
            None,
        )
        for n in range(3)
    ]
    guesses = {"0": 2.0, "1": 4.5, "2": 1.0, "3": 2.1, "4": 2.0, "99": 9.0}
    predictions = tmp_path / "predictions.jsonl"
    predictions.write_text(
        "".join(json.dumps({"id": name, "scores": {"helpfulness": value}}) + "\n" for name, value in guesses.items())
    )
    kept = largest_errors.largest(rows, predictions)
    assert [response_of(error["response"]) for error in kept[:3]] == [1, 2, 3]
    assert kept[0]["error"] == 2.5**2
    assert len(kept) == 5


@pytest.mark.parametrize(("handed_out", "share"), [(0, 0), (2, 50), (3, 75), (4, 100), (9, 100)])
def test_the_position_of_a_scoring_pass(project: Project, handed_out: int, share: int) -> None:
    tasks = [make_task(project) for _ in range(4)]
    model = make_model(project, is_champion=True)
    at = tasks[0].pk - 1 + handed_out
    ScoringPass.objects.create(reward_model=model, handed_out=at, began_at=NOW)
    assert scoring.position(model).share == share


def test_nothing_to_score_is_no_error(project: Project) -> None:
    assert scoring.position(make_model(project, is_champion=True)).share == 0


def test_the_losses_are_thinned_and_each_stage_has_its_line() -> None:
    events = [{"event": "step", "stage": "a", "step": n, "loss": 1.0} for n in range(1, 301)]
    events += [{"event": "step", "stage": "b", "step": n, "loss": 2.0} for n in range(301, 501)]
    events += [{"event": "epoch", "stage": "b", "step": 500, "validation_loss": 3.0}]
    chart = run_progress.losses_chart(events)
    assert chart
    assert len(chart.places) == run_progress.POINTS_DRAWN
    assert [series.name for series in chart.series] == [
        "a: training loss",
        "b: training loss",
        "b: loss on the dev part",
    ]
    assert {value for value in chart.series[0].values if value is not None} == {1.0}
    assert chart.series[2].values[-1] == 3.0
    assert run_progress.losses_chart(events[:1]) is None
    of_policy = [*events[:2], {"event": "epoch", "step": 2, "loss": 3.0}]
    aligned = run_progress.losses_chart([{**event, "stage": ""} for event in of_policy])
    assert aligned
    assert [(series.name, series.values) for series in aligned.series] == [
        ("training loss", [1.0, 1.0]),
        ("loss on the measured part", [None, 3.0]),
    ]


ALIGNED = "The policy is aligned. It and its base answer held-out prompts"


@pytest.mark.parametrize(
    ("kind", "state", "event", "words", "counted"),
    [
        (RunKind.REWARD, RunState.TRAINING, "encode", "It turns the texts into tokens.", "responses"),
        (RunKind.REWARD, RunState.TRAINING, "features", "The language model reads the responses once", "responses"),
        (RunKind.REWARD, RunState.TRAINING, "predict", "The model predicts the scores of held-out", "responses"),
        (RunKind.REWARD, RunState.EVALUATING, "predict", "It is now judged on the held-out prompts.", "responses"),
        (RunKind.POLICY, RunState.TRAINING, "encode", "It turns the texts into tokens.", "examples"),
        (RunKind.POLICY, RunState.TRAINING, "reference", "The reference reads the examples once", "examples"),
        (RunKind.POLICY, RunState.TRAINING, "measure", "The policy is measured on the examples.", "examples"),
        (RunKind.POLICY, RunState.EVALUATING, "answer", ALIGNED, "prompts"),
    ],
)
def test_a_run_that_reads_texts_says_how_far_it_is(
    carol: Client, project: Project, kind: RunKind, state: RunState, event: str, words: str, counted: str
) -> None:
    newest = {"event": event, "done": 250, "total": 1_000}
    run = make_run(project, state, kind=kind, progress=newest, started_at=NOW)
    page = text(carol, f"models/runs/{run.pk}/").replace("\N{NO-BREAK SPACE}", " ")
    assert words in page
    assert f"250 of 1,000 {counted} (25 %)." in page
    assert '<progress value="250" max="1000"' in page


def test_a_run_says_which_pairs_it_has_left_out(carol: Client, project: Project) -> None:
    alike = {"pairs": 12, "same_text": 0, "cut": 12, "hidden": 0, "max_length": 512, "apart_at": 530, "most": 0}
    run = make_run(project, RunState.REJECTED, metrics={"data": {"fit": {"alike": alike}}})
    page = text(carol, f"models/runs/{run.pk}/")
    assert "12 of 12 pairs are the same once cut to 512 tokens" in page
    assert "A max_length of 530 would keep them apart." in page


def test_a_run_that_waits_says_for_which_run(project: Project, carol: Client) -> None:
    busy = TrainingRun.objects.create(
        project=make_project("other"), reason="a test", state=RunState.TRAINING, worker="train@gpu-1", started_at=NOW
    )
    run = TrainingRun.objects.create(project=project, reason="a test")
    page = carol.get(f"/projects/{project.slug}/models/runs/{run.pk}/").content.decode()
    said = f"The worker train@gpu-1 is busy with run {busy.pk} of another project."
    assert said in page
    TrainingRun.objects.filter(pk=busy.pk).update(state=RunState.FAILED)
    assert said not in carol.get(f"/projects/{project.slug}/models/runs/{run.pk}/").content.decode()


def test_a_run_with_nothing_new_is_asked_for_twice(carol: Client, labelled: Project) -> None:
    assert start(carol, **FORM | CHOSEN).status_code == 302
    config = TrainingRun.objects.get().config
    TrainingRun.objects.all().delete()
    make_model(labelled)
    TrainingRun.objects.update(created_at=NOW + timedelta(days=36_500), config=config)
    asked = start(carol, **FORM | CHOSEN)
    assert asked.status_code == 422
    assert "Tick the box below" in asked.content.decode()
    assert TrainingRun.objects.filter(state=RunState.QUEUED).count() == 0
    assert start(carol, **FORM | CHOSEN | {"confirm": "on"}).status_code == 302
    assert TrainingRun.objects.filter(state=RunState.QUEUED).count() == 1


def test_other_settings_need_nothing_new(carol: Client, labelled: Project) -> None:
    make_model(labelled)
    TrainingRun.objects.update(created_at=NOW + timedelta(days=36_500))
    assert start(carol, **FORM | CHOSEN | {"epochs": "3"}).status_code == 302


def test_a_run_with_nothing_new_is_said_before_it_starts(carol: Client) -> None:
    project = Project.objects.get(slug="talk")
    version = make_model(project).version
    said = f"Nothing has been labelled since version {version} was trained."
    assert said in carol.get("/projects/talk/models/runs/start/").content.decode()
    TrainingRun.objects.update(created_at=NOW - timedelta(days=365))
    task = make_task(project, "t-new")
    for user in User.objects.filter(memberships__project=project, memberships__role=Role.ANNOTATOR):
        rate(project, user)
    assert task.pk
    assert said not in carol.get("/projects/talk/models/runs/start/").content.decode()
