"""Every address under /api/v1/ against every kind of caller."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest
from django.db import transaction
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from rest_framework.test import APIClient

from annotator.models import Project, Role
from tests import builders
from tests.conftest import As, Cast
from tests.test_every_page import place_of


class Answers(NamedTuple):
    """The status for each kind of caller. `super` is a superuser who is no member."""

    nobody: int
    stranger: int
    annotator: int
    reviewer: int
    manager: int
    super: int


NOT_YOURS, NO_RIGHT = 404, 403
MANAGERS = Answers(401, NOT_YOURS, NO_RIGHT, NO_RIGHT, 200, 200)
REVIEWERS = Answers(401, NOT_YOURS, NO_RIGHT, 200, 200, 200)
MEMBERS = Answers(401, NOT_YOURS, 200, 200, 200, NOT_YOURS)
HOLDERS = Answers(401, NOT_YOURS, NOT_YOURS, NOT_YOURS, NOT_YOURS, NOT_YOURS)
"""The assignment belongs to none of the callers here; test_work has its holder."""
USERS = Answers(401, 200, 200, 200, 200, 200)
ALL = Answers(200, 200, 200, 200, 200, 200)
ABSENT = Answers(401, 404, 404, 404, 404, 404)
"""It is somebody else's, or there is none."""

TABLE: dict[tuple[str, str], Answers] = {
    ("token", "post"): Answers(*[400] * 6),
    ("tokens", "get"): USERS,
    ("tokens", "post"): Answers(401, *[201] * 5),
    ("one-token", "delete"): ABSENT,  # it is alice's
    ("me", "get"): USERS,
    ("projects", "get"): USERS,
    ("projects", "post"): Answers(401, 403, 403, 403, 400, 400),
    ("project", "get"): Answers(401, NOT_YOURS, 200, 200, 200, 200),
    ("project", "patch"): MANAGERS,
    ("project", "delete"): MANAGERS._replace(manager=409, super=409),
    ("archive", "post"): MANAGERS,
    ("archive", "delete"): MANAGERS,
    ("rubrics", "get"): USERS,
    ("rubrics", "post"): Answers(401, 403, 403, 403, 400, 400),
    ("rubric", "get"): Answers(401, NOT_YOURS, 200, 200, 200, 200),
    ("rubric", "put"): MANAGERS._replace(manager=400, super=400),
    ("members", "get"): MANAGERS,
    ("members", "post"): MANAGERS._replace(manager=400, super=400),
    ("member", "get"): MANAGERS,
    ("member", "patch"): MANAGERS,
    ("member", "delete"): MANAGERS._replace(manager=409, super=409),
    ("pause-member", "post"): MANAGERS,
    ("resume-member", "post"): MANAGERS,
    ("another-try", "post"): MANAGERS,
    ("qualify-member", "post"): MANAGERS,
    ("password-link", "post"): MANAGERS._replace(manager=403, super=201),  # the manager's own account
    ("invitations", "get"): MANAGERS,
    ("invitations", "post"): MANAGERS._replace(manager=201, super=201),
    ("one-invitation", "delete"): MANAGERS._replace(manager=204, super=204),
    ("webhooks", "get"): MANAGERS,
    ("webhooks", "post"): MANAGERS._replace(manager=400, super=400),
    ("webhook", "get"): MANAGERS,
    ("webhook", "patch"): MANAGERS,
    ("webhook", "delete"): MANAGERS._replace(manager=204, super=204),
    ("test-webhook", "post"): MANAGERS._replace(manager=503, super=503),
    ("rotate-webhook", "post"): MANAGERS,
    ("deliveries", "get"): MANAGERS,
    ("retry-delivery", "post"): MANAGERS._replace(manager=503, super=503),
    ("accept-invitation", "post"): Answers(*[400] * 6),
    ("guidelines", "get"): Answers(401, NOT_YOURS, 200, 200, 200, 200),
    ("guidelines", "post"): MANAGERS._replace(manager=400, super=400),
    ("offer", "post"): MEMBERS._replace(annotator=400, reviewer=400, manager=400),
    ("import", "post"): MANAGERS,
    ("imports", "get"): MANAGERS,
    ("one-import", "delete"): MANAGERS,
    ("import-jobs", "get"): MANAGERS,
    ("import-jobs", "post"): MANAGERS._replace(manager=503, super=503),  # no worker listens
    ("import-job", "get"): MANAGERS,
    ("import-job", "delete"): MANAGERS,
    ("start-import-job", "post"): MANAGERS._replace(manager=503, super=503),
    ("import-job-preview", "get"): MANAGERS,
    ("import-job-errors", "get"): MANAGERS,
    ("import-mappings", "get"): MANAGERS,
    ("import-mappings", "post"): MANAGERS._replace(manager=400, super=400),
    ("import-mapping", "get"): MANAGERS,
    ("import-mapping", "delete"): MANAGERS._replace(manager=204, super=204),
    ("export", "get"): REVIEWERS,
    ("export-jobs", "get"): REVIEWERS,
    ("export-jobs", "post"): REVIEWERS._replace(reviewer=503, manager=503, super=503),  # no worker listens
    ("export-job", "get"): REVIEWERS._replace(reviewer=404, super=404),
    ("export-job", "delete"): REVIEWERS._replace(reviewer=404, super=404, manager=204),
    ("export-job-file", "get"): REVIEWERS._replace(reviewer=404, super=404, manager=409),
    ("releases", "get"): MANAGERS,
    ("releases", "post"): MANAGERS._replace(manager=503, super=503),  # no worker listens
    ("release", "get"): MANAGERS,
    ("release", "delete"): MANAGERS._replace(manager=204, super=204),
    ("release-files", "get"): MANAGERS,
    ("release-file", "get"): MANAGERS._replace(manager=409, super=409),
    ("release-archive", "get"): MANAGERS._replace(manager=409, super=409),
    ("next", "post"): MEMBERS,
    ("ahead", "post"): MEMBERS._replace(annotator=400, reviewer=400, manager=400),
    ("ahead", "delete"): MEMBERS._replace(annotator=400, reviewer=400, manager=400),
    ("tasks", "get"): REVIEWERS,
    ("annotations", "get"): REVIEWERS,
    ("agreement", "get"): REVIEWERS,
    ("annotators", "get"): REVIEWERS,
    ("audit", "get"): MANAGERS,
    ("review", "get"): REVIEWERS,
    ("reviewed", "get"): REVIEWERS,
    ("answer-gaps", "post"): REVIEWERS._replace(reviewer=400, manager=400, super=400),
    ("adjudication", "put"): REVIEWERS._replace(reviewer=400, manager=400, super=400),
    ("adjudication", "delete"): REVIEWERS._replace(reviewer=204, manager=204, super=204),
    ("task-segments", "get"): MANAGERS,
    ("task-segments", "put"): MANAGERS._replace(manager=400, super=400),
    ("verdict", "post"): REVIEWERS._replace(reviewer=400, manager=400, super=400),
    ("bulk-changes", "get"): MANAGERS,
    ("edits", "get"): MANAGERS,
    ("edits", "post"): MANAGERS._replace(manager=400, super=400),
    ("bulk-changes", "post"): MANAGERS._replace(manager=400, super=400),
    ("undo-bulk-change", "post"): MANAGERS,
    ("exclusions", "get"): MANAGERS,
    ("exclusions", "post"): MANAGERS._replace(manager=400, super=400),
    ("exclusions", "delete"): MANAGERS._replace(manager=400, super=400),
    ("assignment", "delete"): HOLDERS,
    ("annotation", "put"): HOLDERS,
    ("skip", "post"): HOLDERS,
    ("report", "post"): HOLDERS,
    ("guideline-gaps", "post"): HOLDERS,
    ("heartbeat", "post"): HOLDERS,
    ("live", "get"): ALL,
    ("ready", "get"): ALL,
    ("schema", "get"): ALL,
    ("docs", "get"): ALL,
    ("snapshots", "get"): REVIEWERS,
    ("snapshots", "post"): MANAGERS._replace(manager=409, super=409),
    ("snapshot-job", "get"): REVIEWERS,
    ("training-runs", "get"): REVIEWERS,
    ("training-runs", "post"): MANAGERS._replace(manager=503, super=503),
    ("training-run", "get"): REVIEWERS,
    ("cancel-training-run", "post"): MANAGERS._replace(manager=409, super=409),
    ("retry-training-run", "post"): MANAGERS._replace(manager=409, super=409),
    ("reject-training-run", "post"): MANAGERS._replace(manager=409, super=409),
    ("erase-snapshot", "post"): MANAGERS,
    ("policy-runs", "get"): MANAGERS,
    ("policy-runs", "post"): MANAGERS._replace(manager=400, super=400),
    ("policy-run", "get"): MANAGERS,
    ("cancel-policy-run", "post"): MANAGERS._replace(manager=409, super=409),
    ("retry-policy-run", "post"): MANAGERS._replace(manager=409, super=409),
    ("policies", "get"): USERS,
    ("policy", "get"): MANAGERS,
    ("offer-policy", "post"): MANAGERS._replace(manager=409, super=409),
    ("policy-files", "get"): MANAGERS._replace(manager=503, super=503),
    ("policy-file", "get"): MANAGERS._replace(manager=503, super=503),
    ("policy-archive", "get"): MANAGERS._replace(manager=503, super=503),
    ("reward-models", "get"): USERS,
    ("reward-model", "get"): REVIEWERS,
    ("reward-model", "patch"): MANAGERS._replace(manager=400, super=400),
    ("model-files", "get"): MANAGERS._replace(manager=503, super=503),
    ("model-file", "get"): MANAGERS._replace(manager=503, super=503),
    ("model-archive", "get"): MANAGERS._replace(manager=503, super=503),
    ("promote", "post"): MANAGERS,
    ("verification", "get"): MANAGERS,
    ("score", "post"): Answers(401, 400, 400, 400, 400, 400),
    ("scoring-job", "get"): ABSENT,
    ("openrlhf", "post"): Answers(401, NOT_YOURS, NOT_YOURS, 409, 409, 409),
    ("comparison", "get"): REVIEWERS,
    ("model-ranking", "get"): REVIEWERS,
    ("evaluations", "get"): USERS,
    ("evaluation", "get"): REVIEWERS,
    ("evaluation", "delete"): MANAGERS._replace(manager=204, super=204),
    ("evaluation-jobs", "get"): REVIEWERS,
    ("evaluation-jobs", "post"): MANAGERS._replace(manager=415, super=415),  # a form with a file, and no JSON
    ("evaluation-job", "get"): REVIEWERS,
    ("evaluation-job", "delete"): MANAGERS._replace(manager=204, super=204),
}


def rest_views() -> Iterator[tuple[str, set[str]]]:
    """The name of every address under /api/v1/ and its methods."""
    for pattern, callback in _patterns(get_resolver(), ""):
        if pattern.startswith("api/v1/"):
            view: Any = vars(callback.callback)["cls"]
            allowed = {name for name in view.http_method_names if name in dir(view)} - {"options", "head"}
            yield str(callback.name), allowed


def _patterns(resolver: URLResolver, place: str) -> Iterator[tuple[str, URLPattern]]:
    for url_pattern in resolver.url_patterns:
        below = place + str(url_pattern.pattern)
        if isinstance(url_pattern, URLResolver):
            yield from _patterns(url_pattern, below)
        elif isinstance(url_pattern, URLPattern):
            yield below, url_pattern


RUN, MODEL, POLICY = "rewards_trainingrun", "rewards_rewardmodel", "rewards_policy"
ROWS = {
    **dict.fromkeys(("training-run", "cancel-training-run", "retry-training-run", "reject-training-run"), RUN),
    **dict.fromkeys(("reward-model", "model-files", "model-file", "model-archive", "promote", "verification"), MODEL),
    **dict.fromkeys(("policy", "offer-policy", "policy-files", "policy-file", "policy-archive"), POLICY),
    **dict.fromkeys(("policy-run", "cancel-policy-run", "retry-policy-run"), "policy_run"),
    "evaluation": "evaluation",
    "evaluation-job": "evaluation_job",
    "erase-snapshot": "rewards_snapshot",
    "snapshot-job": "snapshot_job",
    "one-token": "annotator_token",
    "one-invitation": "invitation_pk",
    **dict.fromkeys(("webhook", "test-webhook", "rotate-webhook", "deliveries", "retry-delivery"), "webhook_pk"),
    **dict.fromkeys(("export-job", "export-job-file"), "export_job"),
}
"""Whose row an address is about, by the names of `place_of`; others are called as in their addresses."""
OF_PEOPLE = {"slug", "assignment_id", "task_id", "username"}


def address(name: str, project: Project, assignment: int, task: int = 1, rows: Mapping[str, Any] = {}) -> str:
    known = {**rows, "slug": project.slug, "assignment_id": assignment, "task_id": task, "username": "carol"}
    if name in ROWS:
        known |= dict.fromkeys(("pk", "job_id"), rows.get(ROWS[name], assignment))
    for names in _arguments(name):
        return reverse(f"api:{name}", args=[known.get(argument, assignment) for argument in names])
    raise LookupError(name)


def _arguments(name: str) -> list[list[str]]:
    matching = (pattern for _, pattern in _patterns(get_resolver(), "") if pattern.name == name)
    rest = [pattern for pattern in matching if "cls" in vars(pattern.callback)]
    return [list(pattern.pattern.converters) for pattern in rest]


@pytest.fixture
def callers(project: Project, cast: Cast, as_user: As) -> dict[str, APIClient]:
    rita = builders.make_user("rita")
    builders.make_member(project, rita, role=Role.REVIEWER)
    users = {"stranger": cast.dave, "annotator": cast.bob, "reviewer": rita, "manager": cast.carol}
    users["super"] = builders.make_user("root", is_superuser=True)
    return {"nobody": APIClient(), **{kind: as_user(user) for kind, user in users.items()}}


def test_every_address_is_in_the_table() -> None:
    methods_found = {(name, method) for name, methods in rest_views() for method in methods}
    assert methods_found == set(TABLE)


@pytest.mark.parametrize(("name", "method"), TABLE, ids=str)
def test_each_caller_gets_what_is_theirs(
    callers: dict[str, APIClient], project: Project, cast: Cast, name: str, method: str
) -> None:
    builders.make_task(project)
    held = builders.claimed(project, cast.alice)
    has_rows = bool(set(_arguments(name)[0]) - OF_PEOPLE)
    rows = place_of(project, cast.alice, cast.carol, cast.erin).rows if has_rows else {}
    path = address(name, project, held.pk, held.task_id, rows)
    answers = {kind: called(client, method, path) for kind, client in callers.items()}
    assert {kind: answer.status_code for kind, answer in answers.items()} == TABLE[name, method]._asdict()
    refused = [answer.json() for answer in answers.values() if answer.status_code >= 400]
    assert all(set(answer) == {"detail", "code", "errors"} for answer in refused)


def called(client: APIClient, method: str, path: str) -> Any:
    """The answer, and all that the call changed taken back."""
    body: Any = {} if method in {"post", "put", "patch"} else None
    with transaction.atomic():
        answer = client.generic(method.upper(), path, json.dumps(body), content_type="application/json")
        transaction.set_rollback(True)
    return answer


def everything(client: APIClient, project: Project) -> list[Any]:
    """What every GET that the table opens to annotators says, and a lease."""
    names = [name for name, method in TABLE if method == "get" and name not in {"schema", "docs"}]
    answers = [client.get(address(name, project, 1)) for name in names]
    return [*answers, client.post(address("next", project, 1))]


def test_annotators_see_no_model_names_nor_others_work(project: Project, cast: Cast, as_user: As) -> None:
    builders.make_task(project, "one")
    builders.make_task(project, "two")
    builders.rate(project, cast.bob, 1, justification="Told only to reviewers.")
    said = b" ".join(answer.content for answer in everything(as_user(cast.alice), project))
    assert b"Answer 0 to" in said
    bob = builders.pseudonym(cast.bob, project).encode()
    for secret in (b"model-0", b"model-1", b'"scores"', b"Told only", bob, b'"bob"', b"gold_", b"training_config"):
        assert secret not in said


def test_reviewers_see_the_ratings_under_pseudonyms(project: Project, cast: Cast, as_user: As) -> None:
    builders.make_task(project)
    builders.rate(project, cast.bob, 1)
    builders.make_member(project, cast.dave, role=Role.REVIEWER)
    (row,) = as_user(cast.dave).get("/api/v1/projects/talk/annotations/").json()["results"]
    assert row["annotator"] == builders.pseudonym(cast.bob, project)
    assert row["ratings"][0]["scores"]["helpfulness"] == 1
