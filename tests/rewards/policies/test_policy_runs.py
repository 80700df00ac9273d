"""How policy runs are asked for: over REST, by their settings, and when they are refused."""

from typing import Any

import pytest
from django.conf import LazySettings
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from rest_framework.test import APIClient

from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.background.heartbeats import QueueHealth
from annotator.infrastructure.storage.disk_space import DiskNearlyFull
from annotator.infrastructure.storage.hidden_paths import without_places
from annotator.launch import environment
from annotator.models import Project
from rewards.models import Policy, RunKind, RunState, Snapshot, TrainingRun
from rewards.policies import policy_runs
from rewards.runs import policy_settings, repeated_runs
from rewards.runs.policy_settings import SETTINGS
from rewards.runs.run_settings import UnusableConfig
from tests.conftest import As, Cast
from tests.refusals import refusal
from tests.rewards.policies.snapshots import make_policy, make_snapshot
from tests.rewards.scored import make_model

pytestmark = pytest.mark.django_db
CONFIG = {"policy": "small", "method": "dpo"}
RUNS = "/api/v1/projects/talk/policy-runs/"


@pytest.fixture(autouse=True)
def _listening(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    monkeypatch.setattr(heartbeats, "listening", lambda: dict.fromkeys(heartbeats.QUEUES, QueueHealth(1, 0.5)))
    settings.POLICY_BASES = {"small": "org/small", "own": "/models/secret/own"}


def asked(carol: APIClient, **body: Any) -> Any:
    return carol.post(RUNS, {"config": CONFIG, **body}, format="json")


def test_a_run_starts_from_the_snapshot_that_is_named(carol: APIClient, project: Project) -> None:
    snapshot = make_snapshot(project)
    answer = asked(carol, snapshot=snapshot.content_hash)
    assert (answer.status_code, answer.json()["state"]) == (202, "queued"), answer.json()
    assert answer.headers["Location"] == f"/api/v1/policy-runs/{answer.json()['id']}/"
    row = carol.get(answer.headers["Location"]).json()
    assert (row["snapshot"], row["config"], row["policy"]) == (snapshot.content_hash, CONFIG, None)
    assert [run["id"] for run in carol.get(RUNS).json()["results"]] == [row["id"]]
    assert carol.get("/api/v1/projects/talk/training-runs/").json()["results"] == []
    assert carol.get(f"/api/v1/training-runs/{row['id']}/").status_code == 404


def test_a_run_is_cancelled_and_retried_as_the_same_kind(carol: APIClient, project: Project) -> None:
    run = asked(carol, snapshot=make_snapshot(project).content_hash).json()["id"]
    assert carol.post(f"/api/v1/policy-runs/{run}/cancel/").json()["state"] == "cancelled"
    again = carol.post(f"/api/v1/policy-runs/{run}/retry/")
    assert again.status_code == 202
    kept = TrainingRun.objects.get(pk=again.json()["id"])
    assert (kept.kind, kept.config, kept.snapshot) == (RunKind.POLICY, CONFIG, Snapshot.objects.get())


def test_one_run_works_in_a_project_whatever_its_kind(carol: APIClient, project: Project) -> None:
    TrainingRun.objects.create(project=project, reason="a test", state=RunState.TRAINING)
    answer = asked(carol, snapshot=make_snapshot(project).content_hash)
    assert (answer.status_code, answer.json()["code"]) == (409, "already_running")


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"policy": "/etc", "method": "dpo"}, "policy must be one of these names: small, own"),
        ({"method": "dpo"}, "policy must be one of these names"),
        ({"policy": "small"}, "the configuration lacks method"),
        ({**CONFIG, "method": "ppo"}, "method must be one of"),
        ({**CONFIG, "beta": 0}, "beta must be greater than 0"),
        ({**CONFIG, "learning_rate": "fast"}, "learning_rate"),
        ({**CONFIG, "epochs": 10**9}, "epochs must be at most"),
        ({**CONFIG, "data": "/etc/passwd"}, "There is no setting data"),
        ({**CONFIG, "reference": "/etc"}, "There is no setting reference"),
        ({**CONFIG, "aspect_weights": {"clarity": -1}}, "must not be negative"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_at_once(carol: APIClient, config: dict[str, Any], says: str) -> None:
    answer = asked(carol, config=config)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_config")
    assert says in answer.json()["detail"]


def test_an_unknown_snapshot_is_refused(carol: APIClient, project: Project) -> None:
    answer = asked(carol, snapshot="c0ffee")
    assert (answer.status_code, set(answer.json()["errors"])) == (400, {"snapshot"})


def test_a_snapshot_with_texts_to_be_forgotten_is_refused(project: Project) -> None:
    snapshot = make_snapshot(project)
    snapshot.marked_at = timezone.now()
    with refusal("snapshot_unusable"):
        policy_runs.request(project, reason="a test", config=CONFIG, snapshot=snapshot)


def test_without_a_worker_it_says_so(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "listening", lambda: dict.fromkeys(heartbeats.QUEUES, QueueHealth(0, None)))
    with refusal("no_worker"):
        policy_runs.request(project, reason="a test", config=CONFIG, snapshot=make_snapshot(project))


def test_without_room_on_the_disk_no_run_starts(project: Project, settings: LazySettings) -> None:
    snapshot = make_snapshot(project)
    settings.DISK_RESERVE_MB = 10**9
    with pytest.raises(DiskNearlyFull):
        policy_runs.request(project, reason="a test", config=CONFIG, snapshot=snapshot)


def test_a_run_that_would_only_repeat_a_judged_policy_is_refused(project: Project) -> None:
    snapshot, config = make_snapshot(project), policy_settings.check_config(CONFIG)
    same = {"config_hash": policy_settings.identity(config), "code_version": policy_runs.code_version()}
    policy = make_policy(project)
    TrainingRun.objects.filter(pk=policy.run_id).update(snapshot=snapshot, **same)
    run = TrainingRun(project=project, kind=RunKind.POLICY, config=CONFIG, **same)
    policy_runs.refuse_repetition(run, snapshot)
    Policy.objects.update(judge=make_model(project))
    with pytest.raises(repeated_runs.NothingNew, match=f"since policy {policy.version}"):
        policy_runs.refuse_repetition(run, snapshot)


def test_the_base_policy_is_part_of_what_makes_a_policy() -> None:
    small, own = (policy_settings.check_config({**CONFIG, "policy": name}) for name in ("small", "own"))
    assert policy_settings.identity(small) != policy_settings.identity(own)


def test_no_page_names_the_folder_of_a_base_policy(settings: LazySettings) -> None:
    assert without_places("read /models/secret/own/config.json") == "read own/config.json"


def test_a_base_that_was_taken_from_the_list_is_not_used(settings: LazySettings) -> None:
    settings.POLICY_BASES = {"own": "/models/own"}
    with pytest.raises(UnusableConfig):
        policy_settings.for_aligner(CONFIG, levels=5, requested={})


def test_a_steered_policy_is_asked_for_the_highest_levels_unless_the_settings_say_otherwise() -> None:
    config = {**CONFIG, "method": "steerlm", "requested": {"verbosity": 1}}
    written = policy_settings.for_aligner(config, levels=5, requested={"helpfulness": 4, "verbosity": 4})
    assert written["requested"] == {"helpfulness": 4, "verbosity": 1}
    assert (written["policy"], written["levels"]) == ("org/small", 5)


def test_every_setting_has_words() -> None:
    assert all(words.label and words.help.endswith(".") for words in SETTINGS.values())


@pytest.mark.parametrize("value", ["small", '{"a b": "org/small"}', '{"small": 1}', "[1"])
def test_a_list_of_bases_that_cannot_be_read_stops_the_start(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLICY_BASES", value)
    with pytest.raises(ImproperlyConfigured, match="POLICY_BASES"):
        environment.policies("POLICY_BASES")


# Policies --------------------------------------------------------------------------------------------------


def test_policies_are_listed_by_project_and_state(carol: APIClient, project: Project) -> None:
    policy = make_policy(project)
    for query, found in (("project=talk", 1), ("project=other", 0), ("state=candidate", 1), ("state=offered", 0)):
        assert len(carol.get(f"/api/v1/policies/?{query}").json()["results"]) == found, query
    row = carol.get(f"/api/v1/policies/{policy.pk}/").json()
    assert (row["state"], row["judge"], row["lineage"]["base"]) == ("candidate", None, "small")


def test_an_offer_over_rest_needs_a_yes(carol: APIClient, project: Project) -> None:
    policy = make_policy(project)
    refused = carol.post(f"/api/v1/policies/{policy.pk}/offer/")
    assert (refused.status_code, refused.json()["code"]) == (409, "confirmation_needed")
    offered = carol.post(f"/api/v1/policies/{policy.pk}/offer/", {"confirm": True}, format="json")
    assert (offered.status_code, offered.json()["state"]) == (200, "offered")


def test_only_managers_are_shown_policies(cast: Cast, as_user: As, project: Project) -> None:
    cast.bob.memberships.update(role="reviewer")
    make_policy(project)
    for user, number in ((cast.carol, 1), (cast.bob, 0), (cast.dave, 0)):
        assert len(as_user(user).get("/api/v1/policies/").json()["results"]) == number


def test_a_policy_s_files_are_listed_with_their_hashes_and_sent(carol: APIClient, project: Project) -> None:
    policy = make_policy(project, manifest={"files": {"config.json": "c0"}}, artifact_hash="a1")
    policy.directory().mkdir(parents=True)
    (policy.directory() / "config.json").write_text("{}")
    (policy.directory() / "alignment.json").write_text('{"format": 1}')
    files = carol.get(f"/api/v1/policies/{policy.pk}/files/").json()
    assert [(file["path"], file["sha256"], file["size"]) for file in files] == [
        ("alignment.json", "a1", 13),
        ("config.json", "c0", 2),
    ]
    one = carol.get(f"/api/v1/policies/{policy.pk}/files/config.json")
    assert b"".join(one.streaming_content) == b"{}"  # type: ignore[attr-defined]
    archive = carol.get(f"/api/v1/policies/{policy.pk}/archive/")
    assert archive.headers["Content-Disposition"].endswith(f'"talk-policy-{policy.version}.tar"')
    assert carol.get(f"/api/v1/policies/{policy.pk}/files/other").status_code == 404
