"""A creating call that is sent again with its Idempotency-Key is done once and answered the same."""

import json
import re
import signal
import subprocess
import sys
from datetime import timedelta
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import IntegrityError, connection
from django.urls import URLPattern, URLResolver, reverse
from rest_framework.test import APIClient

from annotator.accounts import idempotency
from annotator.api.idempotency import Idempotent
from annotator.background import heartbeats
from annotator.db.clock import database_now
from annotator.models import BulkChange, ExportJob, IdempotentCall, ImportJob, Invitation, Project, Rubric, Token
from annotator.tasks import forget_old_answers
from annotator.urls import rest
from tests.builders import make_task, make_user
from tests.celery_workers import environment
from tests.conftest import As, Cast
from tests.rewards.test_api import make_model

WITHOUT = {
    "token": "no account is known before it, and a second token does no harm",
    "accept-invitation": "without an account; a second call is refused",
    "import": "the same file again changes nothing",
    "next": "the same lease is answered until it ends",
    "skip": "sets a state",
    "report": "sets a state",
    "heartbeat": "sets a time",
    "verdict": "sets a state",
    "archive": "sets a state",
    "offer": "sets a state",
    "pause-member": "sets a state",
    "resume-member": "sets a state",
    "another-try": "acts on a member who has failed, once",
    "qualify-member": "sets a state",
    "password-link": "its answer is a secret, and a new link replaces a lost one",
    "rotate-webhook": "its answer is a secret, and a new one replaces a lost one",
    "retry-delivery": "sets a state; receivers know a message by its id",
    "undo-bulk-change": "sets a state",
    "start-import-job": "sets a state",
    "cancel-training-run": "sets a state",
    "cancel-policy-run": "sets a state",
    "offer-policy": "sets a state",
    "reject-training-run": "sets a state",
    "erase-snapshot": "sets a state",
    "promote": "sets a state",
    "openrlhf": "keeps nothing",
}
"""The calls with POST that take no key, and why they need none."""


def post(client: APIClient, path: str, body: Any = None, key: str = "one", **more: Any) -> Any:
    return client.post(f"/api/v1/{path}", body, headers={"idempotency-key": key}, **more)


def is_replay(answer: Any) -> bool:
    return bool(answer.headers.get("Idempotency-Replayed") == "true")


def told(answer: Any) -> tuple[int, str]:
    assert set(answer.json()) == {"detail", "code", "errors"}
    return answer.status_code, answer.json()["code"]


def calls() -> list[URLPattern]:
    halves = [half for half in rest if isinstance(half, URLResolver)]
    return [pattern for half in halves for pattern in half.url_patterns if isinstance(pattern, URLPattern)]


def keyed(*, in_one_transaction: bool) -> list[URLPattern]:
    """The calls that take a key, those of one transaction or the others."""
    views = {pattern: vars(pattern.callback)["cls"] for pattern in calls()}
    of_key = {pattern: view for pattern, view in views.items() if issubclass(view, Idempotent)}
    return [pattern for pattern, view in of_key.items() if view.in_one_transaction == in_one_transaction]


def test_every_creating_call_takes_a_key() -> None:
    views = {str(pattern.name): vars(pattern.callback)["cls"] for pattern in calls()}
    posts = {name for name, view in views.items() if hasattr(view, "post")}
    assert {name for name in posts if not issubclass(views[name], Idempotent)} == set(WITHOUT)


def test_the_same_call_again_gets_the_same_answer(carol: APIClient) -> None:
    body = {"slug": "mine", "name": "Mine"}
    first, again = (post(carol, "projects/", body) for _ in range(2))
    assert (first.status_code, again.status_code, again.json()) == (201, 201, first.json())
    assert (is_replay(first), is_replay(again)) == (False, True)
    assert Project.objects.filter(slug="mine").count() == 1


def test_the_address_of_what_was_made_is_answered_again(
    project: Project, carol: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    health = dict.fromkeys(heartbeats.QUEUES, heartbeats.QueueHealth(1, 0.5))
    monkeypatch.setattr(heartbeats, "listening", lambda: health)
    first, again = (post(carol, "projects/talk/export-jobs/", {}) for _ in range(2))
    assert first.status_code == again.status_code == 202
    assert first.headers["Location"] == again.headers["Location"]
    assert ExportJob.objects.count() == 1


def test_another_key_makes_another(project: Project, carol: APIClient) -> None:
    for key in ("one", "two"):
        assert post(carol, "projects/talk/invitations/", {}, key).status_code == 201
    assert Invitation.objects.count() == 2


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("projects/talk/invitations/", {"places": 2}),
        ("projects/talk/invitations/?x=1", {"places": 1}),
        ("projects/talk/webhooks/", {"places": 1}),
    ],
)
def test_another_request_with_the_key_is_refused(project: Project, carol: APIClient, path: str, body: Any) -> None:
    post(carol, "projects/talk/invitations/", {"places": 1})
    assert told(post(carol, path, body)) == (422, "idempotency_key_reused")


def test_a_key_belongs_to_its_account(project: Project, carol: APIClient, as_user: As) -> None:
    post(carol, "projects/talk/invitations/", {})
    root = as_user(make_user("root", is_superuser=True))
    assert not is_replay(post(root, "projects/talk/invitations/", {}))
    assert Invitation.objects.count() == 2


OF_NOBODY_ELSE = {"tokens", "rubrics"}
"""Calls with a key whose answers are about the caller alone."""


def test_an_answer_is_not_given_again_to_somebody_who_has_lost_access(
    project: Project, cast: Cast, as_user: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = '{"slug": "talk", "detail": "theirs"}'
    stored = IdempotentCall(user=cast.dave, key="one", status=201, body=body, location="")
    monkeypatch.setattr(idempotency, "claim", lambda request, now: stored)
    statuses = {}
    for pattern in (*keyed(in_one_transaction=True), *keyed(in_one_transaction=False)):
        words = ["talk" if name == "slug" else 1 for name in pattern.pattern.converters]
        path = reverse(f"api:{pattern.name}", args=words).removeprefix("/api/v1/")
        form = {"format": "multipart"} if pattern.name == "evaluation-jobs" else {}
        statuses[pattern.name] = post(as_user(cast.dave), path, {}, **form).status_code
    assert {name for name, status in statuses.items() if status == 201} == OF_NOBODY_ELSE
    assert statuses.pop("score") == 400  # of this empty body nobody knows which model it means
    assert set(statuses.values()) == {201, 404}


def test_a_call_that_is_still_running_is_refused(project: Project, carol: APIClient) -> None:
    post(carol, "projects/talk/invitations/", {})
    IdempotentCall.objects.update(status=None)
    answer = post(carol, "projects/talk/invitations/", {})
    assert told(answer) == (409, "idempotency_key_in_use")
    assert answer.headers["Retry-After"] == "1"


def test_a_call_whose_process_has_died_is_done_again(project: Project, carol: APIClient) -> None:
    post(carol, "projects/talk/invitations/", {})
    IdempotentCall.objects.update(status=None, lost_at=database_now())
    assert not is_replay(post(carol, "projects/talk/invitations/", {}))
    assert Invitation.objects.count() == 2


def test_who_was_taken_for_dead_stores_no_answer(project: Project, cast: Cast) -> None:
    asked = idempotency.Request(cast.carol, "one", "a", timedelta(0))
    first = idempotency.claim(asked, now=database_now())
    second = idempotency.claim(asked, now=database_now())
    idempotency.store(first, idempotency.Answer(201, "1"))
    idempotency.free(first)
    assert IdempotentCall.objects.get().attempt == second.attempt
    assert IdempotentCall.objects.get().status is None


def test_a_refused_call_leaves_its_key_free(project: Project, carol: APIClient) -> None:
    assert post(carol, "projects/talk/invitations/", {"days": 0}).status_code == 400
    assert post(carol, "projects/talk/invitations/", {"days": 1}).status_code == 201


def test_a_failed_call_leaves_its_key_free(project: Project, carol: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("annotator.projects.invitations.invite", fail)
    with pytest.raises(RuntimeError):
        post(carol, "projects/talk/invitations/", {})
    assert not IdempotentCall.objects.exists()


@pytest.mark.parametrize("key", ["", "a b", "x" * 129, "ä", '"', "'; --", '""'])
def test_what_is_no_key_is_refused(project: Project, carol: APIClient, key: str) -> None:
    assert told(post(carol, "projects/talk/invitations/", {}, key)) == (400, "invalid_idempotency_key")
    assert not Invitation.objects.exists()


def test_a_key_may_stand_in_quotation_marks(project: Project, carol: APIClient) -> None:
    post(carol, "projects/talk/invitations/", {}, '"8e03978e"')
    assert is_replay(post(carol, "projects/talk/invitations/", {}, "8e03978e"))


def test_a_call_without_a_key_is_not_kept(project: Project, carol: APIClient) -> None:
    carol.post("/api/v1/projects/talk/invitations/", {})
    assert not IdempotentCall.objects.exists()


@pytest.mark.parametrize(
    ("path", "body", "secrets"),
    [
        ("tokens/", {"name": "script"}, {"token"}),
        ("projects/talk/invitations/", {}, {"token", "link"}),
        ("projects/talk/webhooks/", {"url": "https://93.184.215.14/"}, {"secret"}),
    ],
)
def test_secrets_are_answered_once_and_not_stored(
    project: Project, carol: APIClient, path: str, body: Any, secrets: set[str]
) -> None:
    first, again = post(carol, path, body).json(), post(carol, path, body).json()
    assert again == {name: value for name, value in first.items() if name not in secrets}
    stored = str(IdempotentCall.objects.values().get())
    assert all(first[name] not in stored for name in secrets)


def test_a_password_is_not_stored(project: Project, carol: APIClient) -> None:
    body = {"username": "frank", "password": "tall order 98 x"}
    assert post(carol, "projects/talk/members/", body).status_code == 201
    assert is_replay(post(carol, "projects/talk/members/", body))
    assert "tall order" not in str(IdempotentCall.objects.values().get())


def test_a_sent_file_is_part_of_the_request(
    project: Project, carol: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    health = dict.fromkeys(heartbeats.QUEUES, heartbeats.QueueHealth(1, 0.5))
    monkeypatch.setattr(heartbeats, "listening", lambda: health)
    model = make_model(project)

    def send(content: bytes) -> Any:
        body = {"model": model.pk, "file": SimpleUploadedFile("rows.jsonl", content)}
        return post(carol, "projects/talk/evaluation-jobs/", body, format="multipart")

    first, again, other = send(b"{}"), send(b"{}"), send(b"[]")
    assert (first.status_code, is_replay(again), other.status_code) == (202, True, 422)


def test_a_streamed_file_is_told_by_its_content(project: Project, carol: APIClient) -> None:
    def send(content: bytes) -> Any:
        arrived: dict[str, Any] = {
            "wsgi.input": BytesIO(content),
            "content_type": "application/x-ndjson",
        }  # as our server has it
        return post(carol, "projects/talk/import-jobs/?start=0", content, **arrived)

    first, again, other = send(b'{"id": 1}'), send(b'{"id": 1}'), send(b'{"id": 2}')
    assert (first.status_code, is_replay(again), other.status_code) == (202, True, 422)
    assert ImportJob.objects.get().file_hash == sha256(b'{"id": 1}').hexdigest()


def test_a_form_with_a_file_has_another_boundary_each_time(project: Project, carol: APIClient) -> None:
    def send(boundary: str) -> Any:
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n'
        body = f'{head}{{"id": 1}}\r\n--{boundary}--\r\n'.encode()
        media = f"multipart/form-data; boundary={boundary}"
        return post(carol, "projects/talk/import-jobs/?start=0", body, content_type=media)

    first, again = send("one"), send("two")
    assert (first.status_code, is_replay(again)) == (202, True)
    assert ImportJob.objects.get().file_hash == sha256(b'{"id": 1}').hexdigest()


def test_a_streamed_file_that_cannot_be_read_twice_is_told_by_its_length(
    project: Project, carol: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    health = dict.fromkeys(heartbeats.QUEUES, heartbeats.QueueHealth(1, 0.5))
    monkeypatch.setattr(heartbeats, "listening", lambda: health)
    sent = {"content_type": "application/x-ndjson"}
    path = "projects/talk/import-jobs/?start=0"
    first, again = (post(carol, path, b'{"id": 1}', **sent) for _ in range(2))
    assert (first.status_code, is_replay(again)) == (202, True)
    assert post(carol, path, b'{"id": 11}', **sent).status_code == 422
    assert ImportJob.objects.count() == 1


def test_a_file_of_unknown_length_takes_no_key(project: Project, carol: APIClient) -> None:
    answer = post(carol, "projects/talk/import-jobs/?start=0", b"", content_type="application/x-ndjson")
    assert told(answer) == (400, "invalid_idempotency_key")


def test_keys_are_kept_for_a_day(project: Project, carol: APIClient) -> None:
    post(carol, "projects/talk/invitations/", {})
    IdempotentCall.objects.update(begun_at=database_now() - timedelta(hours=23))
    assert (forget_old_answers(), IdempotentCall.objects.count()) == (0, 1)
    IdempotentCall.objects.update(begun_at=database_now() - timedelta(hours=24))
    assert not is_replay(post(carol, "projects/talk/invitations/", {"places": 3}))
    IdempotentCall.objects.update(begun_at=database_now() - timedelta(hours=24))
    assert (forget_old_answers(), IdempotentCall.objects.count()) == (1, 0)


def test_one_call_per_account_and_key(cast: Cast) -> None:
    idempotency.claim(idempotency.Request(cast.carol, "one", "a", timedelta(1)), now=database_now())
    row = IdempotentCall.objects.get()
    row.pk = None
    with pytest.raises(IntegrityError, match="one_call_per_account_and_key"):
        row.save()


def test_only_done_calls_are_answered_again(cast: Cast) -> None:
    idempotency.claim(idempotency.Request(cast.carol, "one", "a", timedelta(1)), now=database_now())
    with pytest.raises(IntegrityError, match="only_done_calls_are_answered_again"):
        IdempotentCall.objects.update(status=404)


@pytest.mark.django_db(transaction=True)
def test_of_simultaneous_calls_one_does_the_work(project: Project, cast: Cast) -> None:
    cast.carol.is_staff = True
    cast.carol.save()
    token = Token.objects.create(cast.carol)[1]
    body = {"key": "tone", "name": "Tone", "attributes": [{"key": "t", "name": "T", "levels": ["a", "b"]}]}
    before, start, answers = Rubric.objects.count(), Barrier(8), []

    def send() -> None:
        client = APIClient(SERVER_NAME="localhost", headers={"authorization": f"Token {token}"})
        start.wait()
        answers.append(post(client, "rubrics/", body).status_code)
        connection.close()

    threads = [Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(answers) <= {201, 409}
    assert 201 in answers
    assert Rubric.objects.count() == before + 1
    assert IdempotentCall.objects.get().status == 201


# Killed ----------------------------------------------------------------------------------------------------

KILLED = """
import json, os, signal, sys
import django
django.setup()
from rest_framework.test import APIClient
from annotator.accounts import idempotency
idempotency.store = lambda call, answer: os.kill(os.getpid(), signal.SIGKILL)
client = APIClient(SERVER_NAME="localhost", headers={"authorization": f"Token {sys.argv[1]}", "idempotency-key": "one"})
print(client.post("/api/v1/" + sys.argv[2], json.loads(sys.argv[3]), format="json").content)
"""


def kill_in(path: str, body: dict[str, Any], token: str, folder: Path) -> None:
    """A process does the call's work, and is killed where it would store the answer."""
    alive = environment(folder, DJANGO_SETTINGS_MODULE="annotator.settings", SECRET_KEY=settings.SECRET_KEY)
    words = [sys.executable, "-c", KILLED, token, path, json.dumps(body)]
    done = subprocess.run(words, env=alive, cwd=settings.BASE_DIR, check=False)
    assert done.returncode == -signal.SIGKILL
    assert IdempotentCall.objects.get().status is None
    IdempotentCall.objects.update(lost_at=database_now())


@pytest.mark.django_db(transaction=True)
def test_a_call_that_is_killed_before_its_answer_has_done_nothing(
    project: Project, cast: Cast, carol: APIClient, tmp_path: Path
) -> None:
    kill_in("projects/talk/invitations/", {}, Token.objects.create(cast.carol)[1], tmp_path)
    assert not Invitation.objects.exists()
    assert post(carol, "projects/talk/invitations/", {}).status_code == 201
    assert Invitation.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_change_of_many_tasks_that_is_killed_is_there_without_its_answer(
    project: Project, cast: Cast, tmp_path: Path
) -> None:
    body = {"action": "priority", "priority": 5, "tasks": [make_task(project, "t-1").public_id]}
    kill_in("projects/talk/bulk-changes/", body, Token.objects.create(cast.carol)[1], tmp_path)
    assert BulkChange.objects.get().changed == 1


def test_calls_that_are_no_transaction_are_named_to_their_readers() -> None:
    named = {str(pattern.pattern).rpartition("/")[0].rpartition("/")[2] for pattern in keyed(in_one_transaction=False)}
    page = Path(settings.BASE_DIR, "docs", "rest.md").read_text()
    (sentence,) = re.findall(r"Only\s(`[^.]*?) may\s+have done their work", page)
    assert set(re.findall(r"`([a-z-]+)/`", sentence)) == named


def test_who_was_taken_for_dead_undoes_the_work(
    project: Project, carol: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "store", lambda call, answer: False)
    assert told(post(carol, "projects/talk/invitations/", {})) == (409, "idempotency_key_in_use")
    assert not Invitation.objects.exists()
