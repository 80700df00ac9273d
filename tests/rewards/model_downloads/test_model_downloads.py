"""A model leaves with a card, over REST, from its page, by command and to the Hub; no folder of the server is named."""

import hashlib
import io
import json
import re
import sys
import tarfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.test import Client
from rest_framework.test import APIClient

from annotator.models import AuditEntry, Project, User
from rewards.learning.data import Item, Turn
from rewards.learning.merged_reward import write_reward
from rewards.learning.model_files import save_checkpoint
from rewards.learning.score import load
from rewards.model_downloads import licenses
from rewards.models import Evaluation, RewardModel, Snapshot, TrainingRun
from rewards.registry import registry
from tests.builders import NOW
from tests.conftest import Cast
from tests.rewards.learning.conftest import decoder_directory, encoder_directory  # noqa: F401
from tests.rewards.learning.test_model_files import make_checkpoint

# An answer's end closes the connection, as in a server, which a transaction of the test would not outlive.
pytestmark = pytest.mark.django_db(transaction=True)
METRICS = {
    "rmse": 0.7,
    "pairwise": {"pairs": 40, "accuracy": 0.75, "longer_wins": 0.5},
    "attributes": {"helpfulness": {"n": 80, "rmse": 0.7, "mean_rmse": 0.9, "spearman": 0.6, "qwk": 0.5}},
}


def stored(project: Project, backbone: Path) -> RewardModel:
    """A model as a run leaves it: `model/` and `reward/` in the run's folder, and the row."""
    run = TrainingRun.objects.create(project=project, reason="a test", state="promoted", seed=4)
    save_checkpoint(run.directory() / "model", make_checkpoint(backbone))
    write_reward(run.directory() / "model", run.directory() / "reward")
    manifest = json.loads((run.directory() / "model" / registry.MANIFEST).read_bytes())
    model = RewardModel.objects.create(
        project=project,
        run=run,
        version=1,
        path=f"runs/{run.pk}/model",
        attributes=manifest["attributes"],
        attribute_weights=manifest["attribute_weights"],
        manifest=manifest,
    )
    Evaluation.objects.create(reward_model=model, name="validation", data_hash="c0", metrics=METRICS)
    return model


@pytest.fixture
def model(project: Project, decoder_directory: Path) -> RewardModel:  # noqa: F811
    return stored(project, decoder_directory)


@pytest.fixture
def rest(cast: Cast) -> APIClient:
    return rest_of(cast.carol)


def rest_of(user: User) -> APIClient:
    client = APIClient()
    client.force_authenticate(user)
    return client


def content_of(answer: Any) -> bytes:
    content = b"".join(answer) if answer.streaming else answer.content
    answer.close()
    return content


# The card --------------------------------------------------------------------------------------------------


def expected_reward(model: RewardModel) -> float:
    item = Item("i", (Turn("user", "Name a prime above 10."),), "11 is one.")
    return load(model.directory(), device="cpu", precision="fp32").score([item])[0].reward


@pytest.mark.parametrize("kind", ["decoder", "encoder"])
def test_the_program_on_the_card_gives_the_models_reward(
    kind: str,
    project: Project,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = stored(project, request.getfixturevalue(f"{kind}_directory"))
    call_command("export_model", model.pk, to=str(tmp_path / "taken"))
    (program,) = re.findall(r"```python\n(.*?)```", (tmp_path / "taken" / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path / "taken")
    variables: dict[str, Any] = {}
    exec(program, variables)  # ours, from the card
    assert variables["reward"] == pytest.approx(expected_reward(model), abs=1e-5)
    card = (tmp_path / "taken" / "README.md").read_text()
    (figure,) = re.findall(r"The `reward` of this example is (\S+), computed", card)
    assert variables["reward"] == pytest.approx(float(figure), abs=1e-4)


def test_the_card_has_figures_weights_and_origin(model: RewardModel, rest: APIClient) -> None:
    card = content_of(rest.get(f"/api/v1/reward-models/{model.pk}/files/README.md")).decode()
    assert card.startswith("---\nlicense: unknown\nlibrary_name: transformers\n")
    assert "pipeline_tag: text-classification" in card
    assert "in the order that people gave them" in card
    assert "| Helpfulness | 80 | 0.700 | 0.900 | 0.600 | 0.500 |" in card
    assert "| `verbosity` | Verbosity | 0 to 4 | -0.5 |" in card
    assert "No licence has been chosen." in card


def test_a_card_without_a_reward_folder_says_what_to_use_instead(model: RewardModel, rest: APIClient) -> None:
    (model.reward_directory() / registry.REWARD_MANIFEST).unlink()
    card = content_of(rest.get(f"/api/v1/reward-models/{model.pk}/files/README.md")).decode()
    assert f"manage.py write_reward {model.pk}" in card
    refused = rest.get(f"/api/v1/reward-models/{model.pk}/archive/?part=reward")
    assert (refused.status_code, refused.json()["code"]) == (409, "no_reward_folder")
    call_command("write_reward", model.pk)
    assert content_of(rest.get(f"/api/v1/reward-models/{model.pk}/archive/?part=reward"))


def test_nothing_that_leaves_names_a_folder_of_the_server(
    project: Project,
    decoder_directory: Path,  # noqa: F811
    rest: APIClient,
) -> None:
    model = stored(project, decoder_directory)
    assert model.manifest["backbone"] == str(decoder_directory)  # as earlier versions stored it
    archive = content_of(rest.get(f"/api/v1/reward-models/{model.pk}/archive/"))
    assert str(decoder_directory).encode() not in archive
    assert str(model.directory().parent).encode() not in archive


# Downloads -------------------------------------------------------------------------------------------------


def test_each_file_is_what_the_list_says(model: RewardModel, rest: APIClient) -> None:
    files = rest.get(f"/api/v1/reward-models/{model.pk}/files/").json()
    assert files[0]["path"] == "README.md"
    assert {file["path"].split("/")[0] for file in files} == {"README.md", "reward", "model"}
    for file in files:
        content = content_of(rest.get(f"/api/v1/reward-models/{model.pk}/files/{file['path']}"))
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file["size"], file["sha256"])


def test_the_archive_has_the_files_and_goes_on_where_it_broke_off(model: RewardModel, rest: APIClient) -> None:
    address = f"/api/v1/reward-models/{model.pk}/archive/?part=reward"
    whole = rest.get(address)
    content, tag = content_of(whole), whole["ETag"]
    rest_of_it = rest.get(address, headers={"Range": "bytes=700-", "If-Range": tag})
    assert rest_of_it.status_code == 206
    assert content_of(rest_of_it) == content[700:]
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        names = {Path(name).relative_to("talk-reward-model-1").as_posix() for name in tar.getnames()}
    listed = {file["path"] for file in rest.get(f"/api/v1/reward-models/{model.pk}/files/").json()}
    assert names == {path for path in listed if not path.startswith("model/")}


def test_an_unknown_file_and_a_way_out_of_the_folder_are_not_there(model: RewardModel, rest: APIClient) -> None:
    for path in ("nothing", "model/../config.json", "../config.json", "model/%2e%2e/metrics.json"):
        assert rest.get(f"/api/v1/reward-models/{model.pk}/files/{path}").status_code == 404


def test_an_erased_model_has_no_files(model: RewardModel, rest: APIClient) -> None:
    counts = dict.fromkeys(("train_tasks", "validation_tasks", "labels"), 1)
    snapshot = Snapshot.objects.create(
        project=model.project, content_hash="c0", path="-", manifest={}, marked_at=NOW, erased_at=NOW, **counts
    )
    TrainingRun.objects.filter(pk=model.run_id).update(snapshot=snapshot)
    refused = rest.get(f"/api/v1/reward-models/{model.pk}/files/")
    assert (refused.status_code, refused.json()["code"]) == (409, "files_erased")


def test_files_that_are_not_here_are_said_to_be(model: RewardModel, rest: APIClient) -> None:
    (model.directory() / "config.json").unlink()
    refused = rest.get(f"/api/v1/reward-models/{model.pk}/files/")
    assert (refused.status_code, refused.json()["code"]) == (503, "files_missing")


def test_a_changed_file_of_the_reward_is_found(model: RewardModel) -> None:
    (model.reward_directory() / "config.json").write_text("{}")
    assert any("reward/config.json" in problem for problem in registry.verify(model))


def test_a_licence_that_somebody_else_has_chosen_meanwhile_stays(
    model: RewardModel, cast: Cast, client: Client
) -> None:
    client.force_login(cast.carol)
    page = f"/projects/talk/models/{model.pk}/"
    seen = client.get(page).context["license_form"]["seen"].value()
    licenses.set_license(model, "mit")
    sent = client.post(f"{page}license/", {"license": "apache-2.0", "seen": seen}, follow=True)
    assert "meanwhile: “mit”. Yours was not saved: “apache-2.0”." in sent.content.decode()
    model.refresh_from_db()
    assert model.license == "mit"


def test_the_page_offers_the_files_and_states_the_licence(model: RewardModel, cast: Cast, client: Client) -> None:
    client.force_login(cast.carol)
    page = f"/projects/talk/models/{model.pk}/"
    assert "reward/model.safetensors" in client.get(page).content.decode()
    sent = client.post(f"{page}license/", {"license": "apache-2.0"}, follow=True)
    assert "states this licence now" in sent.content.decode()
    assert content_of(client.get(f"{page}files/README.md")).startswith(b"---\nlicense: apache-2.0\n")
    assert content_of(client.get(f"{page}archive/all/"))
    details = AuditEntry.objects.filter(action="model.downloaded").order_by("pk").values_list("details", flat=True)
    assert [entry.get("file") or entry["part"] for entry in details] == ["README.md", "all"]


def test_another_licence_needs_its_text(model: RewardModel, rest: APIClient) -> None:
    address = f"/api/v1/reward-models/{model.pk}/"
    refused = rest.patch(address, {"license": "other"}, format="json")
    assert (refused.status_code, list(refused.json()["errors"])) == (400, ["license_text"])
    stated = rest.patch(address, {"license": "other", "license_text": "Ask us."}, format="json").json()
    assert (stated["license"], stated["license_text"]) == ("other", "Ask us.")
    assert rest.get(address).json() == stated


# The Hub ---------------------------------------------------------------------------------------------------


class Hub:
    """A stand-in of `huggingface_hub`, which keeps what is taken there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files: dict[str, Any] = {}
        self.private: bool | None = None
        library, errors = ModuleType("huggingface_hub"), ModuleType("huggingface_hub.errors")
        vars(library).update(
            HfApi=lambda token, endpoint: self, CommitOperationAdd=lambda path, content: (path, content)
        )
        vars(errors).update(HfHubHTTPError=OSError, HFValidationError=ValueError)
        monkeypatch.setitem(sys.modules, "huggingface_hub", library)
        monkeypatch.setitem(sys.modules, "huggingface_hub.errors", errors)

    def create_repo(self, repository: str, *, private: bool, **options: Any) -> None:
        self.private = private

    def create_commit(self, *, operations: list[tuple[str, Any]], **options: Any) -> SimpleNamespace:
        self.files = dict(operations)
        return SimpleNamespace(commit_url="https://huggingface.co/ola/reward/commit/1")


def test_on_the_hub_the_reward_lies_at_the_top(
    model: RewardModel, monkeypatch: pytest.MonkeyPatch, settings: LazySettings, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.HF_TOKEN = "hf-secret-token"
    hub = Hub(monkeypatch)
    call_command("export_model", model.pk, push="ola/reward", license="mit")
    assert {"README.md", "config.json", "model.safetensors", "model/reward_model.json"} <= set(hub.files)
    assert hub.files["README.md"].startswith(b"---\nlicense: mit\n")
    assert hub.private
    assert capsys.readouterr().out.strip() == "https://huggingface.co/ola/reward/commit/1"


def test_the_command_says_what_is_missing(model: RewardModel, tmp_path: Path) -> None:
    (tmp_path / "full").write_text("")
    with pytest.raises(CommandError, match="Say where to take it"):
        call_command("export_model", model.pk)
    with pytest.raises(CommandError, match="is not empty"):
        call_command("export_model", model.pk, to=str(tmp_path))
    with pytest.raises(CommandError, match="HF_TOKEN"):
        call_command("export_model", model.pk, push="ola/reward")
