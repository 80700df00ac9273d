"""Texts that cannot be stored, or that nobody has written: refused at the door, and refused once."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from annotator.infrastructure.limits import LARGEST_DRAFT
from annotator.infrastructure.refusals import Refusal
from annotator.models import Draft, Project, QualificationRun, Task
from annotator.stages import annotation
from annotator.stages.annotation import IncompleteRating, ResponseRating, Submission
from annotator.stages.review import exclude, judge
from tests.annotator.models.test_constraints import make_model
from tests.builders import ATTRIBUTES, NOW, claimed, make_gold, make_task, rate, submission
from tests.conftest import As, Cast
from tests.refusals import refusal

LONG = "x" * 20_001


@pytest.fixture
def run(cast: Cast, project: Project) -> QualificationRun:
    make_gold(project, use="practice")
    member = cast.alice.memberships.get()
    return QualificationRun.objects.create(member=member, kind="practice", number=1, started_at=NOW)


# NUL -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [{"justification": "a\0b"}, {"a\0": "b"}, {"changed": "\0"}])
def test_nul_in_a_draft_is_refused(alice_page: Client, project: Project, cast: Cast, form: dict[str, str]) -> None:
    make_task(project)
    assert alice_page.post(f"/assignments/{claimed(project, cast.alice).pk}/draft/", form).status_code == 400


def test_nul_in_a_draft_of_the_test_is_refused(alice_page: Client, run: QualificationRun) -> None:
    assert alice_page.post(f"/qualification/{run.pk}/draft/", {"a": "\0"}).status_code == 400


def test_a_form_with_nul_comes_back_as_a_page(alice_page: Client, project: Project, cast: Cast) -> None:
    make_task(project)
    answer = alice_page.post(f"/assignments/{claimed(project, cast.alice).pk}/skip/", {"reason": "other", "note": "\0"})
    assert answer.status_code == 400
    assert "a NUL character" in answer.content.decode()


@pytest.mark.parametrize(
    "address",
    [
        "comparison/?name=%00",
        "comparison/?format=%00",
        "evaluations/?project=%00",
        "tasks/?cursor=%00",
        "audit/?actor=%00",
    ],
)
def test_nul_in_a_query_is_refused_over_rest(cast: Cast, project: Project, as_user: As, address: str) -> None:
    path = address if address.startswith("evaluations") else f"projects/talk/{address}"
    answer = as_user(cast.carol).get(f"/api/v1/{path}")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")


@pytest.mark.parametrize(
    "address", ["review/?find=%00", "history/?before=%00", "agreement/?with=%00", "comparison/?of=%00"]
)
def test_nul_in_a_page_s_address_is_refused(cast: Cast, client: Client, address: str) -> None:
    client.force_login(cast.carol)
    assert client.get(f"/projects/talk/{address}").status_code == 400


def test_nul_in_the_admin_s_search_and_filters_is_refused(admin_client: Client) -> None:
    for query in ("q=%00", "state=%00", "project__id__exact=%00"):
        assert admin_client.get(f"/admin/annotator/task/?{query}").status_code == 400


def test_nul_in_a_cookie_is_refused(client: Client, db: None) -> None:
    client.cookies["sessionid"] = "\0" * 20
    assert client.get("/").status_code == 400


@pytest.mark.parametrize("sent", [{"query": 5}, {"query": "text"}, {"query": None, "prompts": 7}, {"query": {}}, [5]])
def test_a_trainer_s_odd_queries_are_refused(project: Project, cast: Cast, as_user: As, sent: Any) -> None:
    model = make_model(project, 1)
    answer = as_user(cast.carol).post(f"/api/v1/openrlhf/talk/?model={model.pk}", sent)
    assert answer.status_code == 400


def test_half_a_character_pair_names_no_project(db: None) -> None:
    with pytest.raises(CommandError, match="There is no project"):
        call_command("export_labels", "talk\udcff")


# Drafts ----------------------------------------------------------------------------------------------------


def test_a_large_draft_is_refused(alice_page: Client, project: Project, cast: Cast) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    answer = alice_page.post(f"/assignments/{held.pk}/draft/", {"justification": "x" * (LARGEST_DRAFT + 1)})
    assert (answer.status_code, Draft.objects.count()) == (413, 0)


def test_small_drafts_do_not_add_up_to_a_large_one(project: Project, cast: Cast) -> None:
    make_task(project)
    held, part = claimed(project, cast.alice), "x" * (LARGEST_DRAFT // 2)
    annotation.save_draft(held.pk, {"a": part}, changed=["a"], now=NOW)
    with refusal("too_large"):
        annotation.save_draft(held.pk, {"b": part}, changed=["b"], now=NOW)


def test_a_large_draft_of_the_test_is_refused(alice_page: Client, run: QualificationRun) -> None:
    assert alice_page.post(f"/qualification/{run.pk}/draft/", {"a": "x" * (LARGEST_DRAFT + 1)}).status_code == 413


def test_a_rating_that_stands_for_good_takes_no_draft(alice_page: Client, project: Project, cast: Cast) -> None:
    make_task(project)
    mine = rate(project, cast.alice).annotation.assignment_id
    for other in (cast.bob, cast.erin):
        rate(project, other)
    assert Task.objects.get().state == Task.State.COMPLETE
    answer = alice_page.post(f"/assignments/{mine}/draft/?revision=9", {"justification": "late"})
    assert (answer.status_code, Draft.objects.count()) == (409, 0)


def test_a_rating_that_may_be_revised_takes_a_draft(project: Project, cast: Cast) -> None:
    make_task(project)
    mine = rate(project, cast.alice).annotation.assignment_id
    annotation.save_draft(mine, {"justification": "better"}, revision=1, now=NOW)
    assert Draft.objects.get().form == {"justification": "better"}


# What a rating may hold ------------------------------------------------------------------------------------


def rating(task: Task, **fields: Any) -> Submission:
    scores = dict.fromkeys(ATTRIBUTES, 3)
    return Submission({response.pk: ResponseRating(scores, **fields) for response in task.responses.all()})


@pytest.mark.parametrize(
    "fields",
    [
        {"checks": ("repetitions",) * 100_000},
        {"checks": ("repetitions", "repetitions")},
        {"checks": tuple(str(number) for number in range(100_000))},
        {"safe": True, "unsafe_category": "bias"},
        {"unsafe_category": "bias"},
        {"safe": False},
    ],
)
def test_an_answer_that_contradicts_itself_is_refused_in_a_few_words(
    project: Project, cast: Cast, fields: dict[str, Any]
) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    with pytest.raises(IncompleteRating) as refused:
        annotation.submit(held.pk, rating(held.task, **fields), now=NOW)
    assert len(str(refused.value)) < 2_000


def test_rest_refuses_fifty_thousand_checks_twice(project: Project, cast: Cast, as_user: As) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    scores = dict.fromkeys(ATTRIBUTES, 3)
    ratings = [
        {"response": response.pk, "scores": scores, "checks": ["repetitions"] * 50_000}
        for response in held.task.responses.all()
    ]
    answer = as_user(cast.alice).put(f"/api/v1/assignments/{held.pk}/annotation/", {"ratings": ratings})
    assert answer.status_code == 400
    assert len(answer.content) < 2_000


def test_a_long_justification_is_refused_by_the_stage_itself(project: Project, cast: Cast) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    with pytest.raises(Refusal, match="too long"):
        annotation.submit(held.pk, submission(held.task, justification=LONG), now=NOW)


def test_long_notes_are_refused_by_their_stages(project: Project, cast: Cast) -> None:
    make_task(project)
    mine, held = rate(project, cast.bob).annotation.assignment_id, claimed(project, cast.alice)
    calls: list[Callable[[], Any]] = [
        lambda: annotation.skip(held.pk, reason="other", note=LONG, now=NOW),
        lambda: annotation.report(held.pk, category="bias", note=LONG, now=NOW),
        lambda: judge(mine, decision="rejected", comment=LONG, by=cast.carol, now=NOW),
        lambda: exclude(project, cast.bob, reason=LONG, by=cast.carol, now=NOW),
    ]
    for call in calls:
        with pytest.raises(Refusal, match="too long"):
            call()


def test_a_body_with_a_hostile_name_is_answered(project: Project, cast: Cast, as_user: As) -> None:
    body = json.dumps({"na\ud800me": "x", "\0": 1})
    answer = as_user(cast.carol).post("/api/v1/projects/", body, content_type="application/json")
    assert answer.status_code == 400
