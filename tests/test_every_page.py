"""Every page against every kind of reader: what a GET and a POST answer, in one's own project and in another one.

Whoever is no member of a project is a stranger there, whatever they are elsewhere. REST has a table of its own in
tests/annotator/api/test_roles.py.
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from html import unescape
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, resolve, reverse

from annotator.accounts import tokens
from annotator.infrastructure.db.clock import database_now
from annotator.managing import invitations, members, password_links
from annotator.managing.invitations import InvitationInput
from annotator.models import AuditEntry, Import, Project, Role, Task, User
from annotator.stages.gold import qualification
from annotator.stages.importing import jobs, kept_mappings
from annotator.stages.importing.mappings import read_mapping
from rewards.models import Evaluation, EvaluationJob, Snapshot, TrainingRun
from tests.annotator.models.test_constraints import make_model
from tests.builders import ATTRIBUTES, NOW, claimed, make_gold, make_member, make_project, make_task, make_user, rate
from tests.builders import pseudonym as pseudonym_of
from tests.conftest import Cast
from tests.rewards.policies.snapshots import make_policy

pytestmark = pytest.mark.slow


class Answers(NamedTuple):
    """What each reader gets: a status, or the name of the page to which a redirect leads.

    `stranger` manages another project, and nothing here. `annotator` holds the rows of the table. `staff` was let into
    the admin by hand, and is a member of no project; neither is `superuser`.
    """

    nobody: Any
    stranger: Any
    annotator: Any
    reviewer: Any
    manager: Any
    staff: Any
    superuser: Any


LOGIN, ADMIN_LOGIN, NO_ROW = "login", "admin-login", "admin:index"
HIDDEN, NO_RIGHT = 404, 403

EVERYBODY = Answers(*[200] * 7)
USERS = Answers(LOGIN, *[200] * 6)
CREATORS = Answers(LOGIN, 200, NO_RIGHT, NO_RIGHT, 200, 200, 200)
MANAGERS = Answers(LOGIN, HIDDEN, NO_RIGHT, NO_RIGHT, 200, HIDDEN, 200)
REVIEWERS = Answers(LOGIN, HIDDEN, NO_RIGHT, 200, 200, HIDDEN, 200)
MEMBERS = Answers(LOGIN, HIDDEN, 200, 200, 200, HIDDEN, HIDDEN)
HOLDER = Answers(LOGIN, HIDDEN, 200, HIDDEN, HIDDEN, HIDDEN, HIDDEN)
OWN_FILE = REVIEWERS._replace(reviewer=HIDDEN, superuser=HIDDEN)
"""An export that the manager has asked for."""
BY_USER_NAME = MANAGERS._replace(reviewer=HIDDEN)
"""A person under the name that managers see; for reviewers nobody is called so."""
BY_PSEUDONYM = REVIEWERS._replace(manager=HIDDEN, superuser=HIDDEN)

# Those who manage any project are staff as well.
STAFF = Answers(LOGIN, 200, ADMIN_LOGIN, ADMIN_LOGIN, 200, 200, 200)
ADMIN_DOOR = Answers(LOGIN, NO_ROW, NO_RIGHT, NO_RIGHT, NO_ROW, NO_ROW, NO_ROW)
SITE = STAFF._replace(nobody=ADMIN_LOGIN)  # which leads on to the one login page
ROW = STAFF._replace(stranger=NO_ROW, staff=NO_ROW)
ADMINISTRATORS = STAFF._replace(stranger=NO_RIGHT, manager=NO_RIGHT, staff=NO_RIGHT)
NEVER = ADMINISTRATORS._replace(superuser=NO_RIGHT)
BUTTON = STAFF._replace(stranger=HIDDEN, staff=HIDDEN)

GET: Mapping[str, Answers] = {
    # Of nobody in particular.
    "login": Answers(200, *["home"] * 6),
    "set_language": Answers(*["home"] * 7),
    "invitation": EVERYBODY,
    "new-password": EVERYBODY,
    "home": USERS,
    "settings": USERS,
    "password": USERS,
    "glossary": USERS,
    "worker": EVERYBODY,
    "metrics": Answers(*[HIDDEN] * 7),  # without METRICS_TOKEN
    "mine": USERS,
    "new-project": CREATORS,
    # One's own work.
    "guidelines": MEMBERS,
    "qualification": MEMBERS,
    "history": MEMBERS,
    "annotate": MEMBERS,
    "take-qualification": HOLDER,
    "explained-gold": HOLDER,
    "revise": HOLDER,
    "submit": HOLDER._replace(annotator="annotate"),
    "recut": HOLDER._replace(annotator="annotate"),
    "skip": HOLDER._replace(annotator="annotate"),
    "undo-skip": HOLDER._replace(annotator="annotate"),
    "undo-report": HOLDER._replace(annotator="annotate"),
    "report": HOLDER._replace(annotator="annotate"),
    # The workspace, in the order of its tabs.
    "overview": REVIEWERS,
    "data": REVIEWERS,
    "data-task": REVIEWERS,
    "export-data": REVIEWERS,
    "export-file": REVIEWERS,
    "export-files": REVIEWERS,
    "export-job-file": OWN_FILE._replace(manager="export-data"),  # it is not written yet
    "releases": MANAGERS,
    "release-list": MANAGERS,
    "release-file": MANAGERS._replace(manager="releases", superuser="releases"),  # it is not written yet
    "release-archive": MANAGERS._replace(manager="releases", superuser="releases"),
    "import-data": MANAGERS,
    "import-list": MANAGERS,
    "import-job": MANAGERS,
    "import-errors": MANAGERS,
    "take-back": MANAGERS,
    "quarantine": MANAGERS,
    "quarantined-task": MANAGERS,
    "change-tasks": MANAGERS,
    "bulk-changes": MANAGERS,
    "edits": MANAGERS,
    "people": MANAGERS,
    "person": BY_USER_NAME,
    "person by pseudonym": BY_PSEUDONYM,
    "exclude-person": MANAGERS,
    "readmit-person": MANAGERS,
    "exclusions": MANAGERS,
    "invitations": MANAGERS,
    "webhooks": MANAGERS,
    "webhook": MANAGERS,
    "webhook-deliveries": MANAGERS,
    "edit-guidelines": MANAGERS,
    "guideline-versions": MANAGERS,
    "rubric": MANAGERS,
    "review": REVIEWERS,
    "review-task": REVIEWERS,
    "review-submissions": REVIEWERS,
    "agreement": REVIEWERS,
    "annotators": REVIEWERS,
    "models": REVIEWERS,
    "model-version": REVIEWERS,
    "model-ranking": REVIEWERS,
    "start-run": MANAGERS,
    "policies": MANAGERS,
    "start-policy-run": MANAGERS,
    "policy": MANAGERS,
    "policy-file": MANAGERS._replace(manager="policy", superuser="policy"),  # its files are not there
    "policy-archive": MANAGERS._replace(manager="policy", superuser="policy"),
    "run": REVIEWERS,
    "run-live": REVIEWERS,
    "run-losses": REVIEWERS,
    "run-log": REVIEWERS,
    "model-file": MANAGERS._replace(manager="model-version", superuser="model-version"),  # its files are not there
    "model-archive": MANAGERS._replace(manager="model-version", superuser="model-version"),
    "comparison": REVIEWERS,
    "evaluation-jobs": REVIEWERS,
    "project-settings": MANAGERS,
    "delete-project": MANAGERS,
    # The admin, beside the pages of rows, which are in ROWS.
    "admin-login": ADMIN_DOOR,
    "admin-password": USERS,
    "admin:index": SITE,
    "admin:app_list": SITE,
    "admin:jsi18n": SITE,
    "admin:search": STAFF,
    "admin:password_change_done": SITE,
    "admin:autocomplete": NEVER._replace(nobody=ADMIN_LOGIN),
    "admin:view_on_site": BUTTON._replace(nobody=ADMIN_LOGIN, manager=HIDDEN, superuser=HIDDEN),
    "admin:auth_user_password_change": ADMINISTRATORS,
}

POST: Mapping[str, Answers] = {
    "login": EVERYBODY,
    "logout": EVERYBODY,
    "set_language": EVERYBODY,
    "invitation": EVERYBODY,
    "new-password": EVERYBODY,
    "settings": USERS,
    "tokens": USERS,
    "end-token": HOLDER,
    "password": USERS,
    "layout": USERS,
    "new-project": CREATORS,
    "offer": MEMBERS,
    "guidelines": MEMBERS,
    "begin-qualification": MEMBERS,
    "take-qualification": HOLDER,
    "draft-qualification": HOLDER,
    "revise": HOLDER,
    "submit": HOLDER,
    "draft": HOLDER,
    "recut": HOLDER,
    "heartbeat": HOLDER,
    "ahead": MEMBERS,
    "let-go": MEMBERS,
    "skip": HOLDER,
    "undo-skip": HOLDER,
    "undo-report": HOLDER,
    "silent": HOLDER,
    "report": HOLDER,
    "import-data": MANAGERS,
    "request-export": REVIEWERS,
    "delete-export": OWN_FILE,
    "releases": MANAGERS,
    "delete-release": MANAGERS,
    "take-back": MANAGERS,
    "start-import": MANAGERS,
    "cancel-import": MANAGERS,
    "keep-mapping": MANAGERS,
    "delete-mapping": MANAGERS,
    "quarantined-task": MANAGERS,
    "recut-task": MANAGERS,
    "edits": MANAGERS,
    "change-tasks": MANAGERS,
    "undo-change": MANAGERS,
    "people": MANAGERS,
    "person": MANAGERS,
    "person by pseudonym": BY_PSEUDONYM._replace(reviewer=NO_RIGHT),
    "dismiss-person": MANAGERS,
    "exclude-person": MANAGERS,
    "readmit-person": MANAGERS,
    "password-link": MANAGERS,
    "invitations": MANAGERS,
    "invite-list": MANAGERS,
    "revoke-invitation": MANAGERS,
    "webhooks": MANAGERS,
    "webhook": MANAGERS,
    "test-webhook": MANAGERS,
    "rotate-webhook": MANAGERS,
    "delete-webhook": MANAGERS,
    "retry-delivery": MANAGERS,
    "edit-guidelines": MANAGERS,
    "preview-guidelines": MANAGERS,
    "rubric": MANAGERS,
    "review-task": REVIEWERS,
    "verdict": REVIEWERS,
    "withdraw": REVIEWERS,
    "answer-gaps": REVIEWERS,
    "decide": MANAGERS,
    "promote-version": MANAGERS,
    "reject-version": MANAGERS,
    "verify-version": MANAGERS,
    "license-version": MANAGERS,
    "erase-version": MANAGERS,
    "start-run": MANAGERS,
    "start-policy-run": MANAGERS,
    "offer-policy": MANAGERS,
    "verify-policy": MANAGERS,
    "stop-run": MANAGERS,
    "repeat-run": MANAGERS,
    "evaluation-jobs": MANAGERS,
    "remove-evaluation-job": MANAGERS,
    "delete-evaluation": MANAGERS,
    "project-settings": MANAGERS,
    "archive-project": MANAGERS,
    "restore-project": MANAGERS,
    "delete-project": MANAGERS,
    "admin-logout": EVERYBODY,
    "admin-password": USERS,
    "send-test-mail": ADMINISTRATORS._replace(annotator=NO_RIGHT, reviewer=NO_RIGHT),
    "admin:auth_user_password_change": ADMINISTRATORS,
}


class AdminPages(NamedTuple):
    """The admin's pages of a kind of rows: the list, the form of a new one, one row, changing it and deleting it."""

    list: Answers
    add: Answers
    row: Answers
    change: Answers
    delete: Answers = NEVER


OF_ADMINISTRATORS = AdminPages(*[ADMINISTRATORS] * 5)
TO_READ = AdminPages(list=STAFF, add=NEVER, row=ROW, change=NEVER)
TO_CHANGE = TO_READ._replace(change=ROW)
ADMIN: Mapping[str, AdminPages] = {
    "annotator_user": OF_ADMINISTRATORS,
    "auth_group": OF_ADMINISTRATORS,
    "annotator_token": OF_ADMINISTRATORS._replace(add=NEVER, change=NEVER),
    "annotator_invitation": TO_READ._replace(list=ADMINISTRATORS, row=ADMINISTRATORS),
    "annotator_webhook": TO_READ._replace(list=ADMINISTRATORS, row=ADMINISTRATORS),
    "annotator_project": TO_READ,
    "annotator_membership": TO_READ,
    "annotator_exclusion": TO_READ,
    "annotator_task": TO_READ,
    "annotator_gold": TO_CHANGE,
    "annotator_annotation": TO_READ,
    "annotator_auditentry": TO_READ,
    "rewards_snapshot": TO_READ,
    "rewards_trainingrun": TO_READ,
    "rewards_rewardmodel": TO_READ,
    "rewards_policy": TO_READ,
    "rewards_score": TO_READ,
}


def admin_gets() -> Iterator[tuple[str, Answers]]:
    for name, pages in ADMIN.items():
        yield f"admin:{name}_changelist", pages.list
        yield f"admin:{name}_add", pages.add
        yield f"admin:{name}_change", pages.row
        yield f"admin:{name}_history", pages.row
        yield f"admin:{name}_delete", pages.delete


def admin_posts() -> Iterator[tuple[str, Answers]]:
    for name, pages in ADMIN.items():
        yield f"admin:{name}_changelist", pages.list
        yield f"admin:{name}_add", pages.add
        yield f"admin:{name}_change", pages.change
        yield f"admin:{name}_delete", pages.delete


ALL_GETS = {**GET, **dict(admin_gets())}
ALL_POSTS = {**POST, **dict(admin_posts())}


# The world -------------------------------------------------------------------------------------------------


@pytest.fixture
def readers(cast: Cast, project: Project) -> dict[str, Client]:
    """alice, rita and carol are members of Talk; dave manages Other, where erin annotates."""
    cast.erin.memberships.all().delete()
    other = make_project("other")
    for where, user in ((other, cast.erin), (other, cast.bob)):
        make_member(where, user)
    for where, user in ((project, cast.carol), (other, cast.dave)):
        user.memberships.filter(project=where).delete()
        members.appoint_founder(where, user)
    rita = make_user("rita")
    make_member(project, rita, role=Role.REVIEWER)
    people = {"stranger": cast.dave, "annotator": cast.alice, "reviewer": rita, "manager": cast.carol}
    people["staff"] = make_user("sam", is_staff=True)
    people["superuser"] = make_user("root", is_staff=True, is_superuser=True)
    return {"nobody": Client(), **{kind: logged_in(user) for kind, user in people.items()}}


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


class Place(NamedTuple):
    """A project with a row of every kind; `holder` annotates it and has whatever belongs to a person."""

    project: Project
    holder: User
    rows: Mapping[str, Any]

    def address(self, page: str, rows: Mapping[str, Any] | None = None) -> str:
        """The page's address with this place's rows, or with others under this project's slug."""
        name = page.removesuffix(" by pseudonym")
        known = {**self.rows, **(rows or {}), "slug": self.project.slug, "name": self.holder.username}
        if page.endswith(" by pseudonym"):
            known["name"] = pseudonym_of(self.holder, self.project)
        known["object_id"] = known.get(name.removeprefix("admin:").rpartition("_")[0], 0)
        known |= {part: known[kind] for part, kind in PARTS.get(name, {}).items()}
        place = reverse(name, kwargs={part: known[part] for part in parts_of(name)})
        return place + QUERIES.get(name, "").format(**known)


MODEL, RUN, WEBHOOK = {"pk": "rewards_rewardmodel"}, {"pk": "rewards_trainingrun"}, {"pk": "webhook_pk"}
POLICY = {"pk": "rewards_policy"}
# Which row a part of the address stands for, where it is not the one that the part is called after.
PARTS: Mapping[str, Mapping[str, str]] = {
    "revise": {"assignment_id": "rated_id"},
    "verdict": {"assignment_id": "rated_id"},
    "explained-gold": {"task_id": "gold_task_id"},
    "quarantined-task": {"task_id": "quarantined_id"},
    "decide": {"task_id": "quarantined_id"},
    "readmit-person": {"name": "excluded_name"},
    "export-job-file": {"job_id": "export_job"},
    "delete-export": {"job_id": "export_job"},
    "invitation": {"token": "invitation_secret"},
    "new-password": {"token": "password_secret"},
    "end-token": {"pk": "annotator_token"},
    "revoke-invitation": {"pk": "invitation_pk"},
    **dict.fromkeys(
        ("webhook", "webhook-deliveries", "test-webhook", "rotate-webhook", "delete-webhook", "retry-delivery"), WEBHOOK
    ),
    "model-version": MODEL,
    "model-file": MODEL,
    "model-archive": MODEL,
    "license-version": MODEL,
    "promote-version": MODEL,
    "reject-version": MODEL,
    "verify-version": MODEL,
    "erase-version": MODEL,
    **dict.fromkeys(("policy", "policy-file", "policy-archive", "offer-policy", "verify-policy"), POLICY),
    "run": RUN,
    "run-live": RUN,
    "run-losses": RUN,
    "run-log": RUN,
    "stop-run": RUN,
    "repeat-run": RUN,
    "remove-evaluation-job": {"pk": "evaluation_job"},
    "delete-evaluation": {"pk": "evaluation"},
    "admin:auth_user_password_change": {"id": "annotator_user"},
}
QUERIES = {
    "change-tasks": "?tasks=all&action=priority&priority=5&state=open",
    "export-file": "?layout=helpsteer2&format=jsonl",
}
FORMS: Mapping[str, Mapping[str, Any]] = {
    "verdict": {"decision": "accepted"},
    "decide": {"decision": "release"},
}


def place_of(project: Project, holder: User, manager: User, bob: User) -> Place:
    for _ in range(2):
        make_task(project)
    rated = rate(project, holder).annotation
    rate(project, bob)
    quarantined = make_task(project)
    held = claimed(project, holder)
    Task.objects.filter(pk=quarantined.pk).update(state=Task.State.QUARANTINED)
    golds = [make_gold(project, use="practice") for _ in range(2)]
    member = holder.memberships.get(project=project)
    practice = member.qualification_runs.create(kind="practice", number=1, started_at=NOW)
    scores = {response.pk: dict.fromkeys(ATTRIBUTES, 2) for response in golds[0].responses.all()}
    qualification.answer(practice, golds[0], scores, now=NOW)
    exclusion = project.exclusions.create(annotator=bob, reason="A bot.", by=manager, made_at=NOW)
    rows = {
        "assignment_id": held.pk,
        "rated_id": rated.assignment_id,
        "task_id": held.task_id,
        "quarantined_id": quarantined.pk,
        "gold_task_id": golds[0].pk,
        "run_id": practice.pk,
        "change_id": project.bulk_changes.create(action="retire", made_at=NOW, chosen=0, finished_at=NOW).pk,
        "excluded_name": bob.username,
        "excluded_id": bob.pk,
        "annotator_user": holder.pk,
        "auth_group": Group.objects.get_or_create(name="a group")[0].pk,
        "annotator_token": tokens.issue(holder)[0].pk,
        "annotator_project": project.pk,
        "annotator_membership": member.pk,
        "annotator_exclusion": exclusion.pk,
        "annotator_task": held.task_id,
        "annotator_gold": golds[0].gold.pk,
        "annotator_annotation": rated.pk,
        "content_type_id": ContentType.objects.get_for_model(Project).pk,
        "app_label": "annotator",
    }
    rows |= data_rows(project, manager) | link_rows(project, holder, manager) | model_rows(project, held.task)
    rows["annotator_auditentry"] = AuditEntry.objects.filter(project_id=project.pk).latest("pk").pk
    return Place(project, holder, rows)


def data_rows(project: Project, manager: User) -> dict[str, Any]:
    file = io.BytesIO(b"question,answer\nWhy?,So.\n")
    job = jobs.upload(project, file.read, file_name="a.csv", by=manager, now=NOW)
    mapping = read_mapping({"prompt": "question", "responses": [{"text": "answer"}]})
    return {
        "import_id": Import.objects.filter(project=project).latest("pk").pk,
        "job_id": job.pk,
        "mapping_id": kept_mappings.keep(project, "ours", mapping, by=manager).pk,
        "export_job": project.export_jobs.create(requested_by=manager, created_at=NOW).pk,
        "number": project.releases.create(number=project.pk, license="mit", created_at=NOW).number,
        "path": "README.md",
        "part": "all",
    }


def link_rows(project: Project, holder: User, manager: User) -> dict[str, Any]:
    now = database_now()
    invitation, invitation_secret = invitations.invite(project, InvitationInput(), by=manager, now=now)
    _, password_secret = password_links.make(holder, by=manager, project=project, now=now)
    webhook = project.webhooks.create(url="https://example.org/", secret="whsec_AAAA", created_at=NOW)
    return {
        "webhook_pk": webhook.pk,
        "annotator_webhook": webhook.pk,
        "annotator_invitation": invitation.pk,
        "delivery_id": webhook.deliveries.create(event="run.ended", data={}, state="failed").pk,
        "invitation_pk": invitation.pk,
        "invitation_secret": invitation_secret,
        "password_secret": password_secret,
    }


def model_rows(project: Project, task: Task) -> dict[str, Any]:
    model, policy = make_model(project, 1), make_policy(project)
    counts = dict.fromkeys(("train_tasks", "validation_tasks", "labels"), 1)
    snapshot = Snapshot.objects.create(
        project=project, content_hash=f"hash of {project}", path="-", manifest={}, marked_at=NOW, **counts
    )
    TrainingRun.objects.filter(pk=model.run_id).update(snapshot=snapshot)
    score = model.scores.create(response=task.responses.earliest("pk"), scores={}, reward=1)
    return {
        "evaluation": Evaluation.objects.create(reward_model=model, name="rb2", data_hash="c0ffee", metrics={}).pk,
        "evaluation_job": EvaluationJob.objects.create(reward_model=model, name="rb2", file_name="rb2.jsonl").pk,
        "rewards_snapshot": snapshot.pk,
        "rewards_trainingrun": model.run_id,
        "rewards_rewardmodel": model.pk,
        "rewards_policy": policy.pk,
        "policy_run": policy.run_id,
        "snapshot_job": project.snapshot_jobs.create().pk,
        "rewards_score": score.pk,
    }


@pytest.fixture
def talk(readers: dict[str, Client], project: Project, cast: Cast) -> Place:
    return place_of(project, cast.alice, cast.carol, cast.bob)


@pytest.fixture
def other(readers: dict[str, Client], cast: Cast) -> Place:
    return place_of(Project.objects.get(slug="other"), cast.erin, cast.dave, cast.bob)


# Asking ----------------------------------------------------------------------------------------------------


def patterns(resolver: URLResolver, space: str = "", place: str = "") -> Iterator[tuple[str, str, URLPattern]]:
    """Whatever has a name: its full name, its place and its pattern."""
    for pattern in resolver.url_patterns:
        below = place + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from patterns(pattern, f"{space}{pattern.namespace}:" if pattern.namespace else space, below)
        elif pattern.name:
            yield space + pattern.name, below, pattern


@cache
def pages() -> dict[str, URLPattern]:
    """Of two pages at one place the first is the one that is reached. REST is left out."""
    at: dict[str, tuple[str, URLPattern]] = {}
    for name, place, pattern in patterns(get_resolver()):
        if not place.startswith("api/"):
            at.setdefault(place, (name, pattern))
    return dict(at.values())


def parts_of(name: str) -> list[str]:
    pattern = pages()[name].pattern
    return [*pattern.converters, *(["app_label"] if name == "admin:app_list" else [])]


def answer(client: Client, method: str, address: str, form: Mapping[str, Any] | None = None) -> Any:
    """The status, or the name of the page to which a redirect leads; what the request changed is taken back."""
    cookies = deepcopy(client.cookies)
    with transaction.atomic():
        sent = client.get(address) if method == "get" else client.post(address, form or {})
        if sent.streaming:
            b"".join(sent)
        transaction.set_rollback(True)
    client.cookies = cookies  # of the session that a logout has ended and the rollback has brought back
    if sent.status_code not in (301, 302):
        return sent.status_code
    to = urlsplit(sent["Location"])
    name = resolve(to.path).view_name
    # Whoever is asked to log in is led back afterwards; whoever has logged out is not.
    return f"{name}, and not back" if name in (LOGIN, ADMIN_LOGIN) and "next=" not in to.query else name


REFUSED = {LOGIN, ADMIN_LOGIN, 401, 403, 404, 405}


def posted(client: Client, place: Place, page: str, rows: Mapping[str, Any] | None = None) -> Any:
    """200 for whatever is no refusal: what a form answers belongs to the tests of its page."""
    name = page.removesuffix(" by pseudonym")
    got = answer(client, "post", place.address(page, rows), FORMS.get(name))
    return got if got in REFUSED or (got == NO_ROW and name.startswith("admin:")) else 200


def different(table: Mapping[str, Answers], asked: Mapping[str, Answers]) -> dict[str, dict[str, tuple[Any, Any]]]:
    """What the table expects and what came, of the pages where they differ, by reader."""
    return {
        page: {
            who: (one, two)
            for who, one, two in zip(Answers._fields, table[page], asked[page], strict=True)
            if one != two
        }
        for page in table
        if table[page] != asked[page]
    }


def test_every_page_is_in_the_tables() -> None:
    known = {page.removesuffix(" by pseudonym") for page in (*ALL_GETS, *ALL_POSTS)}
    assert set(pages()) - known == set()
    assert known - set(pages()) == set()
    assert {f"{model._meta.app_label}_{model._meta.model_name}" for model in admin.site._registry} == set(ADMIN)


def asked(readers: Mapping[str, Client], pages: Iterable[str], ask: Callable[[Client, str], Any]) -> dict[str, Answers]:
    return {page: Answers(*(ask(client, page) for client in readers.values())) for page in pages}


def test_a_get_answers_each_reader(readers: dict[str, Client], talk: Place) -> None:
    answers = asked(readers, ALL_GETS, lambda client, page: answer(client, "get", talk.address(page)))
    assert different(ALL_GETS, answers) == {}


def test_a_post_refuses_each_reader_without_the_right(readers: dict[str, Client], talk: Place) -> None:
    answers = asked(readers, ALL_POSTS, lambda client, page: posted(client, talk, page))
    assert different(ALL_POSTS, answers) == {}


def test_pages_that_are_left_out_of_a_table_answer_405(readers: dict[str, Client], talk: Place) -> None:
    root = readers["superuser"]
    for method, table in (("get", ALL_GETS), ("post", ALL_POSTS)):
        left_out = [page for page in pages() if page not in table and not is_djangos_own(page)]
        others = {page: answer(root, method, talk.address(page)) for page in left_out}
        assert {page: status for page, status in others.items() if status != 405} == {}


@pytest.mark.parametrize("reader", ["nobody", "annotator", "manager"])
def test_no_page_is_kept(readers: dict[str, Client], talk: Place, reader: str) -> None:
    answers = {page: readers[reader].get(talk.address(page)) for page in ALL_GETS}
    kept = {page for page, one in answers.items() if "no-store" not in one.headers.get("Cache-Control", "")}
    assert kept == set()


@pytest.mark.parametrize("reader", Answers._fields)
def test_no_page_shows_its_reader_a_link_that_is_refused(readers: dict[str, Client], talk: Place, reader: str) -> None:
    """Of the pages, not of the lists of the admin, whose links are the rows of the table."""
    client, found = readers[reader], dict[str, str]()
    for page in GET:
        shown = client.get(talk.address(page))
        if shown.status_code == 200 and not shown.streaming and not page.startswith("admin:"):
            links = re.findall(r'href="(/[^"#]*)', shown.content.decode())
            found |= {unescape(link): page for link in links if not link.startswith("/static/")}
    answers = {f"{link} on {page}": answer(client, "get", link) for link, page in sorted(found.items())}
    refused = {NO_RIGHT, HIDDEN, 405, NO_ROW} | ({LOGIN, ADMIN_LOGIN} if reader != "nobody" else set())
    assert {link: got for link, got in answers.items() if got in refused} == {}


def is_djangos_own(page: str) -> bool:
    """Whether it is a page of the admin's that answers a POST like a GET, and changes nothing."""
    read = ("index", "app_list", "jsi18n", "search", "autocomplete", "view_on_site", "password_change_done")
    return page.startswith("admin:") and page.removeprefix("admin:").endswith((*read, "_history"))


# Another project -------------------------------------------------------------------------------------------


def elsewhere(here: Answers) -> Answers:
    """What the readers get in Other: dave manages it, and nobody else among them is a member."""
    if ADMIN_LOGIN in here:
        return here._replace(stranger=here.manager, manager=here.stranger)
    return here._replace(stranger=here.manager, annotator=here.stranger, reviewer=here.stranger, manager=here.stranger)


def of_a_project(table: Mapping[str, Answers]) -> dict[str, Answers]:
    """The pages whose address or query names a project or a row of one."""
    names = {page: page.removesuffix(" by pseudonym") for page in table}
    secret = {"invitation", "new-password"}
    return {
        page: table[page] for page, name in names.items() if (parts_of(name) or name in QUERIES) and name not in secret
    }


def held_by_erin(table: Mapping[str, Answers]) -> dict[str, Answers]:
    return {page: elsewhere(here) for page, here in of_a_project(table).items()}


def test_a_get_in_another_project_answers_as_to_a_stranger(readers: dict[str, Client], other: Place) -> None:
    expected = held_by_erin(ALL_GETS)
    holder = logged_in(other.holder)
    answers = asked(readers, expected, lambda client, page: answer(client, "get", other.address(page)))
    assert different(expected, answers) == {}
    theirs = {page: answer(holder, "get", other.address(page)) for page in expected}
    assert theirs == {page: ALL_GETS[page].annotator for page in expected}


def test_a_post_in_another_project_is_refused(readers: dict[str, Client], other: Place) -> None:
    expected = held_by_erin(ALL_POSTS)
    answers = asked(readers, expected, lambda client, page: posted(client, other, page))
    assert different(expected, answers) == {}


def refused_anyway(here: Answers) -> Answers:
    """What the readers get for a row that is not in the project: whoever might have seen it does not find it."""
    return Answers(*(got if got in (LOGIN, NO_RIGHT) else HIDDEN for got in here))


def with_a_row(table: Mapping[str, Answers]) -> dict[str, Answers]:
    """The pages whose address names a project and a row."""
    names = {page: parts_of(page.removesuffix(" by pseudonym")) for page in table}
    return {page: refused_anyway(table[page]) for page, parts in names.items() if "slug" in parts and len(parts) > 1}


@pytest.fixture
def mixed(talk: Place, other: Place) -> Place:
    """Talk's slug with rows and people of Other."""
    foreign = {kind: row for kind, row in other.rows.items() if not kind.endswith("_secret")}
    return talk._replace(holder=other.holder, rows=foreign | {"excluded_name": other.holder.username})


def test_rows_of_another_project_are_not_found_under_ones_own(readers: dict[str, Client], mixed: Place) -> None:
    gets, posts = with_a_row(ALL_GETS), with_a_row(ALL_POSTS)
    assert {"data-task", "import-job", "model-version"} <= set(gets)
    assert {"decide", "verdict", "promote-version"} <= set(posts)
    last = AuditEntry.objects.latest("pk").pk
    answers = asked(readers, gets, lambda client, page: answer(client, "get", mixed.address(page)))
    assert different(gets, answers) == {}
    answers = asked(readers, posts, lambda client, page: posted(client, mixed, page))
    assert different(posts, answers) == {}
    assert AuditEntry.objects.latest("pk").pk == last


def test_rest_finds_no_row_of_another_project_under_ones_own_slug(readers: dict[str, Client], mixed: Place) -> None:
    known = {
        **mixed.rows,
        "slug": mixed.project.slug,
        "username": mixed.holder.username,
        "pk": mixed.rows["invitation_pk"],
    }
    # An invitation of the other project may have the number of a webhook of this one.
    of_webhooks = {**known, "pk": mixed.rows["webhook_pk"]}
    # An import of the other project may have the number of an export of this one.
    of_exports = {**known, "job_id": mixed.rows["export_job"]}
    rows = {
        name: of_webhooks if "webhook" in place else of_exports if "export-jobs" in place else known
        for name, place, _ in patterns(get_resolver())
    }
    views = {
        name: (reverse(name, kwargs={part: rows[name][part] for part in pattern.pattern.converters}), pattern)
        for name, place, pattern in patterns(get_resolver())
        if place.startswith("api/") and {"slug"} < set(pattern.pattern.converters)
    }
    assert {"api:import-job", "api:one-import", "api:one-invitation", "api:member"} <= set(views)
    answers = {
        (who, name, method): readers[who].generic(method, address, "{}", "application/json").status_code
        for name, (address, pattern) in views.items()
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
        if hasattr(vars(pattern.callback)["cls"], method.lower())
        for who in ("manager", "superuser")
    }
    assert {asked: status for asked, status in answers.items() if status != HIDDEN} == {}


def test_ones_own_practice_explains_no_task_of_another_project(
    readers: dict[str, Client], talk: Place, other: Place
) -> None:
    address = talk.address("explained-gold")
    assert answer(readers["annotator"], "get", address) == 200
    foreign = reverse("explained-gold", args=[talk.rows["run_id"], other.rows["gold_task_id"]])
    assert answer(readers["annotator"], "get", foreign) == HIDDEN


@pytest.mark.parametrize("name", [name for name in ADMIN if ADMIN[name].list == STAFF])
def test_a_managers_lists_in_the_admin_hold_no_foreign_row(
    readers: dict[str, Client], talk: Place, other: Place, name: str
) -> None:
    listed = readers["manager"].get(talk.address(f"admin:{name}_changelist")).content.decode()
    assert talk.address(f"admin:{name}_change") in listed
    assert other.address(f"admin:{name}_change") not in listed
