"""ETag, If-None-Match, If-Match and `fields` at the addresses of single resources, and `fields` in lists."""

from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any

import pytest
from django.db import connection
from django.urls import URLPattern, URLResolver
from rest_framework.test import APIClient

from annotator.api.resources import Resource
from annotator.db.clock import database_now
from annotator.models import (
    ExportJob,
    ImportJob,
    ImportMapping,
    Membership,
    Project,
    Release,
    Token,
    User,
    Webhook,
)
from annotator.projects import archive
from annotator.urls import rest
from rewards.models import Evaluation, EvaluationJob
from tests.annotator.api.test_roles import TABLE
from tests.builders import make_task, rate
from tests.conftest import Cast
from tests.rewards.test_api import make_model

As = Callable[[User], APIClient]
RUBRIC = {"key": "tone", "name": "Tone", "attributes": [{"key": "tone", "name": "Tone", "levels": ["Rude", "Kind"]}]}
EDITS: dict[str, tuple[str, Any]] = {
    "projects/talk/": ("patch", {"name": "Other"}),
    "projects/talk/rubric/": ("put", RUBRIC),
    "projects/talk/members/alice/": ("patch", {"quota": 3}),
    "projects/talk/webhooks/{webhook}/": ("patch", {"active": False}),
    "projects/talk/import-mappings/{mapping}/": ("delete", None),
    "projects/talk/import-jobs/{import_job}/": ("delete", None),
    "projects/talk/export-jobs/{export_job}/": ("delete", None),
    "projects/talk/releases/1/": ("delete", None),
    "reward-models/{model}/": ("patch", {"license": "mit"}),
    "evaluations/{evaluation}/": ("delete", None),
    "evaluation-jobs/{evaluation_job}/": ("delete", None),
}
NOT_RESOURCES = {
    "one-token": "has no GET",
    "one-invitation": "has no GET",
    "one-import": "has no GET",
    "archive": "has no GET",
    "adjudication": "has no GET; the review of its task is one",
    "assignment": "has no GET",
    "annotation": "has no GET, and the latest revision of its only author is in force",
    "exclusions": "a list",
}


@pytest.fixture
def ids(project: Project, cast: Cast) -> dict[str, int]:
    hook = Webhook.objects.create(
        project=project, url="https://93.184.215.14/", secret="s", created_at=project.created_at
    )
    mapping = ImportMapping.objects.create(project=project, name="own", columns={}, changed_at=project.created_at)
    model, common = make_model(project), {"project": project, "created_at": project.created_at}
    Release.objects.create(**common, number=1)
    return {
        "webhook": hook.pk,
        "mapping": mapping.pk,
        "import_job": ImportJob.objects.create(**common, state="waiting", file_hash="a", file_bytes=1).pk,
        "export_job": ExportJob.objects.create(**common, requested_by=cast.carol, layout="wide", format="csv").pk,
        "model": model.pk,
        "evaluation": Evaluation.objects.create(reward_model=model, name="own", data_hash="a", metrics={}).pk,
        "evaluation_job": EvaluationJob.objects.create(reward_model=model, name="own", file_name="a").pk,
    }


def call(client: APIClient, method: str, path: str, body: Any = None, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return getattr(client, method)(f"/api/v1/{path}", body, headers=named)


def told(answer: Any) -> tuple[int, str]:
    assert set(answer.json()) == {"detail", "code", "errors"}
    return answer.status_code, answer.json()["code"]


def views() -> dict[str, type[Any]]:
    halves = [half for half in rest if isinstance(half, URLResolver)]
    patterns = [pattern for half in halves for pattern in half.url_patterns if isinstance(pattern, URLPattern)]
    return {str(pattern.name): vars(pattern.callback)["cls"] for pattern in patterns}


def test_everything_that_is_edited_is_a_resource() -> None:
    edited = {name for name, method in TABLE if method in {"put", "patch", "delete"}}
    assert {name for name in edited if not issubclass(views()[name], Resource)} == set(NOT_RESOURCES)


def test_every_edited_resource_names_what_an_edit_locks() -> None:
    edited = {name for name, method in TABLE if method in {"put", "patch", "delete"}} - set(NOT_RESOURCES)
    assert [name for name in edited if views()[name].rows is Resource.rows] == []


@pytest.mark.parametrize("path", EDITS)
def test_an_edit_goes_by_what_was_read(carol: APIClient, ids: dict[str, int], path: str) -> None:
    place, (method, body) = path.format(**ids), EDITS[path]
    read = call(carol, "get", place)
    assert told(call(carol, method, place, body, if_match='"other-one"')) == (412, "precondition_failed")
    assert call(carol, "get", place).json() == read.json()
    done = call(carol, method, place, body, if_match=read.headers["ETag"])
    assert done.status_code in {200, 204}
    if method != "delete":
        assert done.headers["ETag"] == call(carol, "get", place).headers["ETag"] != read.headers["ETag"]
        assert told(call(carol, method, place, body, if_match=read.headers["ETag"])) == (412, "precondition_failed")


@pytest.mark.parametrize("path", EDITS)
def test_an_edit_needs_no_etag(carol: APIClient, ids: dict[str, int], path: str) -> None:
    method, body = EDITS[path]
    assert call(carol, method, path.format(**ids), body).status_code in {200, 204}


@pytest.mark.parametrize("path", EDITS)
def test_who_has_it_already_gets_304(carol: APIClient, ids: dict[str, int], path: str) -> None:
    place = path.format(**ids)
    tag = call(carol, "get", place).headers["ETag"]
    again = call(carol, "get", place, if_none_match=f'"a", {tag}')
    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
    assert call(carol, "get", place, if_none_match='"a"').status_code == 200


def test_work_on_a_project_changes_its_etag_and_hinders_no_edit(project: Project, cast: Cast, carol: APIClient) -> None:
    make_task(project)
    tag = call(carol, "get", "projects/talk/").headers["ETag"]
    make_task(project, "two")
    assert call(carol, "get", "projects/talk/", if_none_match=tag).status_code == 200
    assert call(carol, "patch", "projects/talk/", {"name": "Other"}, if_match=tag).status_code == 200


def test_any_etag_will_do_for_a_star(project: Project, carol: APIClient) -> None:
    assert call(carol, "patch", "projects/talk/", {"name": "Other"}, if_match="*").status_code == 200


def test_a_project_is_deleted_by_what_was_read(project: Project, carol: APIClient) -> None:
    make_task(project)
    archive.archive(project, now=database_now())
    tag = call(carol, "get", "projects/talk/").headers["ETag"]
    assert call(carol, "delete", "projects/talk/?confirm=talk", if_match='"other-one"').status_code == 412
    assert call(carol, "delete", "projects/talk/?confirm=talk", if_match=tag).status_code == 204
    assert not Project.objects.exists()


def test_a_refused_edit_changes_nothing(project: Project, carol: APIClient) -> None:
    answer = call(carol, "patch", "projects/talk/", {"name": "Other", "keep": 0}, if_match="*")
    assert answer.status_code == 400
    assert Project.objects.get().name == project.name


def test_a_stranger_learns_nothing_by_if_match(project: Project, cast: Cast, as_user: As) -> None:
    dave = as_user(cast.dave)
    assert told(call(dave, "patch", "projects/talk/", {"name": "Other"}, if_match='"a"')) == (404, "not_found")


def test_an_annotator_edits_nothing_by_if_match(project: Project, cast: Cast, as_user: As) -> None:
    answer = call(as_user(cast.alice), "patch", "projects/talk/", {"name": "Other"}, if_match="*")
    assert told(answer) == (403, "permission_denied")


def test_a_dry_run_has_no_etag(project: Project, carol: APIClient) -> None:
    assert "ETag" not in call(carol, "patch", "projects/talk/?dry_run=1", {"keep": 3}).headers


@pytest.mark.django_db(transaction=True)
def test_of_simultaneous_editors_one_wins(project: Project, cast: Cast) -> None:
    token, start, answers = Token.objects.create(cast.carol)[1], Barrier(6), []
    clients = [APIClient(headers={"authorization": f"Token {token}"}) for _ in range(6)]
    tag = call(clients[0], "get", "projects/talk/members/alice/").headers["ETag"]

    def edit(client: APIClient, quota: int) -> None:
        start.wait()
        answer = call(client, "patch", "projects/talk/members/alice/", {"quota": quota}, if_match=tag)
        answers.append((answer.status_code, quota))
        connection.close()

    threads = [Thread(target=edit, args=(client, 10 + number)) for number, client in enumerate(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(status for status, _ in answers) == [200, *[412] * 5]
    assert Membership.objects.get(user=cast.alice).quota == dict(answers)[200]


# Fields ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["projects/talk/", "me/", "projects/talk/members/alice/", "projects/talk/agreement/"])
def test_a_resource_answers_the_named_fields(project: Project, carol: APIClient, path: str) -> None:
    whole = call(carol, "get", path).json()
    first, second, *_ = whole
    part = call(carol, "get", f"{path}?fields={second},{first}")
    assert part.json() == {first: whole[first], second: whole[second]}


def test_an_etag_of_some_fields_is_good_for_an_edit(project: Project, carol: APIClient) -> None:
    tag = call(carol, "get", "projects/talk/?fields=name").headers["ETag"]
    assert call(carol, "patch", "projects/talk/", {"name": "Other"}, if_match=tag).status_code == 200


@pytest.mark.parametrize("path", ["projects/talk/", "projects/", "projects/talk/imports/", "projects/talk/audit/"])
@pytest.mark.parametrize("fields", ["slug,nonsense", ",", "guidelines"])
def test_an_unknown_field_is_refused_with_the_known_ones(
    project: Project, carol: APIClient, path: str, fields: str
) -> None:
    answer = call(carol, "get", f"{path}?fields={fields}")
    assert told(answer) == (400, "invalid")
    assert list(answer.json()["errors"]) == ["fields"]
    assert {"projects/talk/": "name, slug", "projects/": "name, slug"}.get(path, "id, ") in answer.json()["detail"]


ADDRESSES = {
    "projects": "projects/",
    "rubrics": "rubrics/",
    "tokens": "tokens/",
    "reward-models": "reward-models/",
    "policies": "policies/",
    "evaluations": "evaluations/",
    "deliveries": "projects/talk/webhooks/{webhook}/deliveries/",
}
LISTS = [
    name
    for name, method in TABLE
    if method == "get" and hasattr(views().get(name), "paginate_queryset") and not issubclass(views()[name], Resource)
]


@pytest.mark.parametrize("name", LISTS)
def test_every_list_takes_fields(
    project: Project, cast: Cast, carol: APIClient, ids: dict[str, int], name: str
) -> None:
    make_task(project)
    rate(project, cast.alice)
    serializer: Any = views()[name].serializer_class
    field = next(name for name, kind in serializer().fields.items() if not kind.write_only)
    answer = call(carol, "get", ADDRESSES.get(name, f"projects/talk/{name}/").format(**ids) + f"?fields={field}")
    assert answer.status_code == 200
    assert all(list(row) == [field] for row in answer.json()["results"])
