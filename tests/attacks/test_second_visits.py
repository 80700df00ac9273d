"""What must be unique, and links that work once, visited a second time: an answer in words, and never an error 500."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.db.models import Model, UniqueConstraint
from django.test import Client
from rest_framework.test import APIClient

from annotator.analysis.agreement import totals
from annotator.analysis.quality import assessment
from annotator.infrastructure.background import failures
from annotator.infrastructure.db.clock import database_now
from annotator.managing import invitations, members, password_links
from annotator.managing.invitations import InvitationInput
from annotator.models import Annotation, BackgroundFailure, InvitationUse, Membership, Project, Rating, Role, Tally
from annotator.stages import annotation
from annotator.stages.gold import qualification
from annotator.stages.importing import import_rows
from annotator.stages.pii import scans
from rewards.evaluation import evaluation
from rewards.models import RewardModel, Snapshot
from rewards.scoring import pass_lanes, unlikely_ratings
from rewards.scoring.chunks import Chunk, score_chunk
from rewards.scoring.unlikely_ratings import Unlikely
from rewards.snapshots import snapshot_jobs
from tests.builders import (
    ATTRIBUTES,
    NOW,
    claimed,
    gold_row,
    json_lines,
    label_row,
    make_gold,
    make_member,
    make_project,
    make_task,
    make_user,
    rate,
    ratings_row,
    task_row,
)
from tests.conftest import Cast
from tests.rewards.scored import FakeScorer, make_model

pytestmark = pytest.mark.usefixtures("workers")

API = "/api/v1/projects/talk"
PASSWORD = "tall order 98 x"
RUBRIC = {"key": "tone", "name": "Tone", "attributes": [{"key": "t", "name": "T", "levels": ["a", "b"]}]}


@pytest.fixture
def carol(cast: Cast, project: Project) -> APIClient:
    members.appoint_founder(make_project("other"), cast.carol)
    return api_of(cast.carol)


def api_of(user: Any) -> APIClient:
    client = APIClient()
    client.force_authenticate(user)
    return client


def twice(call: Callable[[], Any]) -> None:
    """Makes a call that succeeds, and makes it again. What the views do not catch is raised here."""
    first, second = call(), call()
    assert first.status_code < 400, first.content
    assert second.status_code < 500


def accounts_and_members(carol: APIClient, project: Project, cast: Cast) -> None:
    body = {"username": "frank", "password": PASSWORD}
    twice(lambda: carol.post(f"{API}/members/", body))
    twice(lambda: carol.post("/api/v1/projects/other/members/", body))
    twice(lambda: carol.post(f"{API}/members/frank/password-link/"))


def projects_and_rubrics(carol: APIClient, project: Project, cast: Cast) -> None:
    cast.carol.is_staff = True
    cast.carol.save()
    twice(lambda: carol.post("/api/v1/projects/", {"slug": "mine", "name": "Mine"}))
    twice(lambda: carol.post("/api/v1/rubrics/", RUBRIC, format="json"))
    both = RUBRIC | {"key": "both", "attributes": RUBRIC["attributes"] * 2}  # type: ignore[operator]
    assert carol.post("/api/v1/rubrics/", both, format="json").status_code == 400
    twice(lambda: carol.put(f"{API}/rubric/", RUBRIC, format="json"))
    twice(lambda: carol.post(f"{API}/guidelines/", {"text": "Read twice."}))


def imports(carol: APIClient, project: Project, cast: Cast) -> None:
    rows = [task_row("t"), ratings_row("p", "r", [1, 2]), label_row("q", "r"), gold_row("g")]
    for _ in range(2):
        import_rows(project, json_lines(*rows), now=NOW)
    mapping = {"name": "mine", "mapping": {"prompt_text": "Read.", "responses": [{"text": "text"}]}}
    twice(lambda: carol.post(f"{API}/import-mappings/", mapping, format="json"))
    for _ in range(2):
        scans.scan_all(now=NOW)


def ratings(carol: APIClient, project: Project, cast: Cast) -> None:
    task = make_task(project)
    alice = api_of(cast.alice)
    twice(lambda: alice.post(f"{API}/next/"))
    held = claimed(project, cast.alice)
    for _ in range(2):
        annotation.note_gap(held.pk, attribute="helpfulness", now=database_now())
        annotation.save_draft(held.pk, {"justification": "Because."}, now=database_now())
    scores = [{"response": row.public_id, "scores": dict.fromkeys(ATTRIBUTES, 3)} for row in task.responses.all()]
    for preference in (1, -1):
        body = {"ratings": scores, "preference": preference, "justification": "Because."}
        twice(lambda body=body: alice.put(f"/api/v1/assignments/{held.pk}/annotation/", body, format="json"))  # type: ignore[misc]
    twice(lambda: carol.post(f"{API}/exclusions/", {"annotator": "alice", "reason": "Hasty."}))


def decisions(carol: APIClient, project: Project, cast: Cast) -> None:
    task = make_task(project)
    for user in cast.annotators:
        rate(project, user)
    decided = [{"response": row.public_id, "scores": dict.fromkeys(ATTRIBUTES, 3)} for row in task.responses.all()]
    body = {"ratings": decided, "preference": 1, "reason": "slip"}
    twice(lambda: carol.put(f"/api/v1/tasks/{task.public_id}/adjudication/", body, format="json"))
    change = {"action": "priority", "priority": 5, "tasks": [task.public_id] * 2}
    twice(lambda: carol.post(f"{API}/bulk-changes/", change, format="json"))
    Project.objects.update(ask_edit=True)
    Rating.objects.filter(annotation__assignment__annotator=cast.alice).update(edit="A better answer.")
    chosen = list(Rating.objects.exclude(edit="").values_list("pk", flat=True))
    twice(lambda: carol.post(f"{API}/edits/", {"edits": chosen * 2}, format="json"))


def qualifications(carol: APIClient, project: Project, cast: Cast) -> None:
    task = make_gold(project, use="practice")
    member = project.memberships.get(user=cast.alice)
    runs = [qualification.begin(member, "practice", now=NOW) for _ in range(2)]
    assert runs[0] == runs[1]
    alice = Client()
    alice.force_login(cast.alice)
    form = {f"score-{row.pk}-{key}": "3" for row in task.responses.all() for key in ATTRIBUTES}
    twice(lambda: alice.post(f"/qualification/{runs[0].pk}/", form, follow=True))


def work_of_workers(carol: APIClient, project: Project, cast: Cast) -> None:
    import_rows(project, json_lines(*(label_row(f"Question {n}?", f"Answer {n}.") for n in range(3))), now=NOW)
    for address in ("snapshots", "training-runs", "releases", "export-jobs"):
        twice(lambda address=address: carol.post(f"{API}/{address}/", {}, format="json"))  # type: ignore[misc]
    body = {"request_id": str(UUID(int=1))}
    for address in ("releases", "export-jobs", "invitations"):
        twice(lambda address=address: carol.post(f"{API}/{address}/", body, format="json"))  # type: ignore[misc]


def counts(carol: APIClient, project: Project, cast: Cast) -> None:
    """What the light worker counts anew, and people's second rating of a project."""
    for number in range(2):
        make_task(project, f"t-{number}")
        for user in cast.annotators:
            rate(project, user)
        twice(lambda: carol.get(f"{API}/agreement/"))
        assert Tally.objects.get(annotator=cast.alice, project=project).done == number + 1
        assessment.assess(project, now=database_now())
        totals.rebuild(project, now=database_now())
        failures.note("count", project, ValueError("no"))
    assert BackgroundFailure.objects.get().times == 2


def models_and_scores(carol: APIClient, project: Project, cast: Cast) -> None:
    """Two versions that take each other's place twice, and what workers write for one of them, twice."""
    make_task(project)
    rate(project, cast.alice)
    models = [make_model(project) for _ in range(2)]
    for model in [*models, *models]:
        twice(lambda model=model: carol.post(f"/api/v1/reward-models/{model.pk}/promote/"))  # type: ignore[misc]
        pass_lanes.wake(model, now=database_now(), anew=True)
        assert RewardModel.objects.get(is_champion=True) == model
    annotation_id = Annotation.objects.get().pk
    unlikely = Unlikely(annotation_id, project.tasks.get().pk, 3.0, [])
    for _ in range(2):
        score_chunk(Chunk(models[0], 0, 2**62), FakeScorer(), now=database_now())
        project.tasks.update(redacted_at=database_now() + timedelta(hours=1))  # its scores are made once more
        evaluation.record(models[0], {"data": {"sha256": "x"}}, name="rewardbench2")
        unlikely_ratings._write([unlikely], now=database_now())


def snapshots_of_the_same_labels(carol: APIClient, project: Project, cast: Cast) -> None:
    import_rows(project, json_lines(*(label_row(f"Question {n}?", f"Answer {n}.") for n in range(40))), now=NOW)
    for _ in range(2):
        assert carol.post(f"{API}/snapshots/").status_code == 202
        assert snapshot_jobs.build_waiting() == 1
    assert Snapshot.objects.count() == 1


def links(carol: APIClient, project: Project, cast: Cast) -> None:
    """An invitation after its person was removed, or has lost the role; a password link; a used and a revoked link."""
    frank, now = make_user("frank"), database_now()
    for places in (1, 3):
        row, secret = invitations.invite(
            project, InvitationInput(role=Role.REVIEWER, places=places), by=cast.carol, now=now
        )
        client = Client()
        client.force_login(frank)
        twice(lambda client=client, secret=secret: client.post(f"/invitation/{secret}/"))  # type: ignore[misc]
        Membership.objects.filter(user=frank).update(role=Role.ANNOTATOR)
        assert client.post(f"/invitation/{secret}/").status_code < 500
        members.dismiss(project.memberships.get(user=frank))
        for visit in (client.get, client.post, api_of(frank).post):
            address = "/api/v1/invitations/accept/" if visit is not client.get and visit is not client.post else ""
            answer = visit(address or f"/invitation/{secret}/", {"token": secret} if address else None)
            assert answer.status_code < 500
        assert InvitationUse.objects.filter(invitation=row).count() == 1
        assert not project.memberships.filter(user=frank).exists()
    make_member(project, frank)
    _row, secret = password_links.make(frank, by=cast.carol, project=project, now=now)
    chosen = {"password": PASSWORD, "again": PASSWORD}
    twice(lambda: Client().post(f"/new-password/{secret}/", chosen))
    assert Client().get(f"/new-password/{secret}/").status_code < 500


VISITS: dict[Callable[[APIClient, Project, Cast], None], set[str]] = {
    accounts_and_members: {"User.username", "one_role_per_user_and_project", "PasswordLink.account"},
    projects_and_rubrics: {
        "Project.slug",
        "offered_rubrics_have_their_own_keys",
        "rubric_version_once_per_project",
        "attribute_key_once_per_rubric",
        "guideline_version_once_per_project",
    },
    imports: {
        "task_external_id_once_per_project",
        "response_position_once_per_task",
        "one_imported_rater_per_place",
        "one_label_per_response_and_source",
        "one_import_mapping_of_a_name_per_project",
        "Gold.task",
        "ExpertRating.response",
        "pii_span_once",
    },
    ratings: {
        "one_assignment_per_annotator_and_task",
        "one_assignment_per_slot",
        "Draft.assignment",
        "one_gap_of_a_scale",
        "revision_once_per_assignment",
        "one_current_annotation_per_assignment",
        "one_rating_per_annotation_and_response",
        "one_exclusion_per_annotator_and_project",
        "one_pseudonym_per_person_and_project",
        "one_person_per_pseudonym_and_project",
    },
    decisions: {
        "one_current_adjudication_per_task",
        "Consensus.task",
        "task_once_per_bulk_change",
        "an_edit_becomes_a_response_once",
    },
    qualifications: {
        "qualification_run_number_once",
        "one_open_qualification_run",
        "one_answer_per_run_and_response",
    },
    work_of_workers: {
        "one_queued_snapshot_job_per_project",
        "one_active_run_per_project",
        "release_number_once_per_project",
        "a_release_is_made_once_for_a_request",
        "an_invitation_is_made_once_for_a_request",
        "an_export_is_made_once_for_a_request",
    },
    counts: {
        "one_total_of_each_kind",
        "one_tally_per_annotator",
        "one_quality_per_annotator_and_project",
        "one_failure_per_task_and_project",
    },
    models_and_scores: {
        "one_champion_per_project",
        "ScoringPass.reward_model",
        "lane_number_once_per_pass",
        "one_score_per_model_and_response",
        "evaluation_once_per_model_and_data",
        "UnlikelyAnnotation.annotation",
    },
    snapshots_of_the_same_labels: {"snapshot_content_once_per_project"},
    links: {"one_place_for_each_person"},
}
RANDOM = {"Invitation.digest", "PasswordLink.digest", "Token.digest"}
WITHOUT_A_SECOND_VISIT = {
    # The month's table goes in the transaction that writes the row, so that the next look finds no such month.
    # A run writes its version in the transaction that ends its training, and nothing later (LostRun). A project has
    # one run at a time (one_active_run_per_project).
    "RewardModel.run",
    "model_version_once_per_project",
    "Policy.run",
    "policy_version_once_per_project",
    # Put under the lock of its place, and again and again (tests/annotator/infrastructure/storage/test_store.py).
    "stored_file_once",
}
"""Rows that nobody can ask for twice, and that no repeated job reaches; the tests of these jobs run them twice."""


def unique(model: type[Model]) -> Iterator[str]:
    for field in model._meta.local_fields:
        if field.unique and not field.primary_key:
            yield f"{model.__name__}.{field.name}"
    yield from (one.name for one in model._meta.constraints if isinstance(one, UniqueConstraint))


def test_every_unique_constraint_is_visited_twice() -> None:
    ours = [model for model in apps.get_models() if model._meta.app_label in ("annotator", "rewards")]
    named = set().union(*VISITS.values(), RANDOM, WITHOUT_A_SECOND_VISIT)
    assert {name for model in ours for name in unique(model)} == named


@pytest.mark.parametrize("visit", VISITS, ids=lambda visit: visit.__name__)
def test_a_second_visit_is_answered(carol: APIClient, project: Project, cast: Cast, visit: Any) -> None:
    visit(carol, project, cast)
