"""Of two people who edit the same thing at once, the second sees what the first has changed, at every page and call."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.db.models import Model
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.urls import URLResolver, get_resolver, reverse

from annotator.api.rubrics import answered
from annotator.infrastructure.db.clock import database_now
from annotator.managing import guidelines, members, project_settings, rubrics
from annotator.managing import webhooks as endpoints
from annotator.managing.preset_rubrics import AttributeText, RubricText
from annotator.managing.webhooks import WebhookInput
from annotator.models import (
    Adjudication,
    ExpertRating,
    Gold,
    ImportJob,
    ImportMapping,
    Membership,
    Project,
    Rubric,
    Task,
    User,
    Webhook,
)
from annotator.pages.projects.seen import SeenFieldsForm
from annotator.stages import annotation
from annotator.stages.importing import jobs, kept_mappings
from annotator.stages.importing.mappings import read_mapping
from annotator.stages.review import adjudicate
from tests.annotator.segmented import make_segmented_project, make_segmented_task
from tests.builders import ATTRIBUTES, NOW, make_gold, make_member, make_task, rate
from tests.conftest import As, Cast

Fields = dict[str, list[str]]


class Forms(HTMLParser):
    """The forms of a page as a browser sends them when nobody has touched them, by their actions."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms: list[tuple[str, Fields]] = []
        self.name, self.option, self.text = "", "", ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        given = dict(attributes)
        name, value = given.get("name", ""), given.get("value", "")
        if tag == "form":
            self.forms.append((given.get("action", ""), {}))
        elif tag == "input" and name and self.forms:
            is_box = given.get("type") in ("checkbox", "radio")
            if not is_box or "checked" in given:
                self.add(name, value or ("on" if is_box else ""))
        elif tag == "select":
            self.name = name
        elif tag == "option" and "selected" in given:
            self.add(self.name, value)
        elif tag == "textarea":
            self.name, self.text = name, ""

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self.name:
            self.add(self.name, self.text.removeprefix("\n"))
            self.name = ""

    def add(self, name: str, value: str) -> None:
        if name:
            self.forms[-1][1].setdefault(name, []).append(value)


@dataclass
class World:
    """A project whose two managers edit it: carol on the page, and somebody else meanwhile."""

    project: Project
    carol: User
    page: Client


@dataclass(frozen=True)
class Edit:
    """One form: the page it stands on, where it is sent, what carol writes, and what somebody else does meanwhile.

    `shows` holds texts of both sides that the refusal shows; `stands` says whether the other's edit still stands.
    """

    page: str
    action: str
    mine: Fields
    meanwhile: Callable[[World], object]
    shows: tuple[str, ...]
    stands: Callable[[World], bool]


MINE, THEIRS = (
    {"prompt": "question", "responses": [{"text": name}, {"text": "third"}]} for name in ("first", "second")
)
TONE = RubricText("mine", "Theirs", (AttributeText("tone", "Tone", ("rude", "plain", "kind")),))


def hook(world: World) -> Webhook:
    return Webhook.objects.get()


def settle(world: World, level: int) -> Adjudication:
    task = Task.objects.get(external_id="rated")
    scores = {response.pk: dict.fromkeys(ATTRIBUTES, level) for response in task.responses.all()}
    return adjudicate(task.pk, scores=scores, reason="other", by=world.carol, now=NOW)


def change_cuts(world: World) -> None:
    response = Task.objects.get(external_id="cut").responses.get(position=0)
    annotation.change_cuts(response.task_id, {response.pk: ["It rains. It pours.", "It ends."]})


EDITS = {
    "project-settings": Edit(
        "/projects/talk/settings/", "/projects/talk/settings/", {"name": ["Mine"]},
        lambda w: project_settings.change(w.project, {"quota": 50}),
        ("<ins>50</ins>", 'value="Mine"'), lambda w: Project.objects.get(slug="talk").quota == 50,
    ),
    "rubric": Edit(
        "/projects/talk/rubric/", "", {"do": ["publish"], "name": ["Ours"]},
        lambda w: rubrics.publish(w.project, TONE),
        ("Version 2 was published while you were writing", "2: plain", 'value="Ours"'),
        lambda w: Project.objects.get(slug="talk").rubric.name == "Theirs",
    ),
    "edit-guidelines": Edit(
        "/projects/talk/guidelines/edit/", "/projects/talk/guidelines/edit/", {"text": ["Be brief."]},
        lambda w: guidelines.publish(w.project, "Be kind."),
        ("Be kind.", "Be brief."), lambda w: w.project.current_guideline().text == "Be kind.",  # type: ignore[union-attr]
    ),
    "webhook": Edit(
        "/projects/talk/settings/webhooks/{hook}/", "", {"url": ["https://example.org/mine"]},
        lambda w: endpoints.change(hook(w), WebhookInput("https://example.org/theirs", active=False)),
        ("example.org/theirs", "example.org/mine"), lambda w: hook(w).url.endswith("theirs"),
    ),
    "person": Edit(
        "/projects/talk/people/bob/", "/projects/talk/people/bob/", {"quota": ["7"]},
        lambda w: members.limit(Membership.objects.get(user__username="bob"), quota=5, languages=["de", "en"]),
        ("<ins>5</ins>", 'value="7"', 'value="de en"'),
        lambda w: Membership.objects.get(user__username="bob").quota == 5,
    ),
    "review-task": Edit(
        "/projects/talk/review/{rated}/", "/projects/talk/review/{rated}/",
        {"reason": ["other"], **{f"{key}-{number}": ["1"] for key in ATTRIBUTES for number in ("R0", "R1")}},
        lambda w: settle(w, 3),
        ("Somebody else has settled this task meanwhile", "Change it"),
        lambda w: set(Adjudication.objects.get(is_current=True).scores.popitem()[1].values()) == {3},
    ),
    "keep-mapping": Edit(
        "/projects/talk/data/imports/{job}/?kept=ours", "/projects/talk/data/imports/{job}/mapping/",
        {"mapping": [json.dumps(MINE)]},
        lambda w: kept_mappings.keep(w.project, "ours", read_mapping(THEIRS), by=None),
        ("Somebody else has kept another mapping as ours meanwhile", "{&quot;text&quot;: &quot;second&quot;}",
         "{&quot;text&quot;: &quot;first&quot;}"),
        lambda w: ImportMapping.objects.get().columns["responses"][0] == {"text": "second"},
    ),
    "recut-task": Edit(
        "/projects/cut/data/tasks/{cut}/", "/projects/cut/data/tasks/{cut}/segments/",
        {"parts": ["It rains.\n-----\nIt pours. It ends."]},
        change_cuts,
        ("Somebody else has changed these segments meanwhile", "It pours. It ends."),
        lambda w: len(Task.objects.get(external_id="cut").responses.get(position=0).segments or ()) == 2,
    ),
}  # fmt: skip


@pytest.fixture
def world(project: Project, cast: Cast, client: Client) -> World:
    client.force_login(cast.carol)
    endpoints.make(project, WebhookInput("https://example.org/hook"), by=cast.carol, now=database_now())
    make_task(project, "rated")
    for user in cast.annotators:
        rate(project, user, 2)
    cut = make_segmented_project("cut")
    make_member(cut, cast.carol, "manager")
    make_segmented_task(cut, "cut")
    file = io.BytesIO(b"question,first,second,third\nWhy?,So.,No.,Yes.\n")
    jobs.upload(project, file.read, file_name="rows.csv", by=cast.carol, now=NOW)
    kept_mappings.keep(project, "ours", read_mapping({"prompt": "question", "responses": [{"text": "third"}]}), by=None)
    return World(project, cast.carol, client)


def filled(world: World, text: str) -> str:
    names = {task.external_id: task.public_id for task in Task.objects.all()}
    responses = list(Task.objects.get(external_id="rated").responses.order_by("position"))
    numbers = {f"R{place}": str(response.public_id) for place, response in enumerate(responses)}
    for name, number in numbers.items():
        text = text.replace(name, number)
    return text.format(**names, hook=hook(world).pk, job=ImportJob.objects.get().pk)


def begun(world: World, edit: Edit) -> Fields:
    """The form as the page shows it, with what carol writes."""
    address = filled(world, edit.page)
    page = world.page.get(address)
    assert page.status_code == 200, address
    wanted = filled(world, edit.action)
    form = form_for(page, wanted)
    return form | {filled(world, name): values for name, values in edit.mine.items()}


def form_for(page: Any, action: str) -> Fields:
    forms = Forms(page.content.decode()).forms
    return next(fields for address, fields in forms if address.partition("?")[0] == action and fields)


def send(world: World, edit: Edit, form: Fields) -> HttpResponse:
    answer: HttpResponse = world.page.post(filled(world, edit.action or edit.page), form)  # type: ignore[assignment]
    return answer


PAGES = sorted(EDITS)
OF_MODELS = {"license-version"}
"""Tested beside the models."""


@pytest.mark.parametrize("name", PAGES)
def test_the_second_of_two_edits_is_refused_with_both_texts_shown(world: World, name: str) -> None:
    edit = EDITS[name]
    form = begun(world, edit)
    edit.meanwhile(world)
    answer = send(world, edit, form)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert [text for text in edit.shows if text not in page] == []
    assert edit.stands(world)


@pytest.mark.parametrize("name", PAGES)
def test_an_edit_of_what_stands_still_is_made(world: World, name: str) -> None:
    edit = EDITS[name]
    assert send(world, edit, begun(world, edit)).status_code == 302


@pytest.mark.parametrize("name", sorted({"rubric", "webhook", "person", "review-task", "keep-mapping"}))
def test_who_has_seen_the_others_edit_may_send_the_form_again(world: World, name: str) -> None:
    edit = EDITS[name]
    form = begun(world, edit)
    edit.meanwhile(world)
    again = form_for(send(world, edit, form), filled(world, edit.action))
    answer = send(world, edit, again | ({"do": ["publish"]} if name == "rubric" else {}))
    assert answer.status_code == 302
    assert not edit.stands(world)


def gold_form(world: World) -> tuple[str, Fields]:
    gold = make_gold(world.project).gold
    address = f"/admin/annotator/gold/{gold.pk}/change/"
    page = world.page.get(address).content.decode()
    return address, next(fields for _action, fields in Forms(page).forms if "ratings-0-level_coherence" in fields)


@pytest.mark.parametrize("mine", ["helpfulness", "coherence"])
def test_an_experts_level_that_somebody_else_has_changed_stays(world: World, mine: str) -> None:
    """Another attribute's level can be changed all the same: only what a form changes is stored."""
    User.objects.filter(pk=world.carol.pk).update(is_staff=True, is_superuser=True)
    world.page.force_login(User.objects.get(pk=world.carol.pk))
    address, form = gold_form(world)
    rating = ExpertRating.objects.order_by("pk")[0]
    rating.scores["coherence"] = 0
    rating.save()
    place = next(n for n in (0, 1) if form[f"ratings-{n}-id"] == [str(rating.pk)])
    answer = world.page.post(address, form | {f"ratings-{place}-level_{mine}": ["1"]})
    rating.refresh_from_db()
    assert rating.scores["coherence"] == 0
    assert ("Somebody else has chosen" in answer.content.decode()) is (mine == "coherence")
    assert rating.scores["helpfulness"] == (1 if mine == "helpfulness" else rating.scores["helpfulness"])


# The admin -------------------------------------------------------------------------------------------------


@pytest.fixture
def root(world: World) -> User:
    User.objects.filter(pk=world.carol.pk).update(is_staff=True, is_superuser=True)
    root = User.objects.get(pk=world.carol.pk)
    world.page.force_login(root)
    Group.objects.create(name="helpers")
    make_gold(world.project)
    return root


def rows_of(world: World) -> dict[str, tuple[Model, dict[str, Any], dict[str, Any]]]:
    """A row of each model that the admin changes, with what carol writes and what somebody else does meanwhile."""
    return {
        "user": (User.objects.get(username="bob"), {"email": "m@x.org"}, {"email": "t@x.org", "first_name": "Bo"}),
        "group": (Group.objects.get(), {"name": "mine"}, {"name": "theirs"}),
        "gold": (Gold.objects.get(), {"use": "test"}, {"use": "practice"}),
    }


def opened_in_admin(world: World, row: Model) -> tuple[str, Fields]:
    address = f"/admin/{row._meta.app_label}/{row._meta.model_name}/{row.pk}/change/"
    return address, admin_form(world.page.get(address))


def admin_form(page: Any) -> Fields:
    return next(
        fields for _action, fields in Forms(page.content.decode()).forms if any("initial-" in n for n in fields)
    )


def sent_by(mine: dict[str, Any]) -> Fields:
    return {name: [str(value)] for name, value in mine.items()}


@pytest.mark.parametrize("name", ["user", "group", "gold"])
def test_the_admin_shows_what_somebody_else_has_changed_and_keeps_it(world: World, root: User, name: str) -> None:
    row, mine, theirs = rows_of(world)[name]
    (field, wanted), *_rest = mine.items()
    address, form = opened_in_admin(world, row)
    type(row)._default_manager.filter(pk=row.pk).update(**theirs)
    refused = world.page.post(address, form | sent_by(mine))
    row.refresh_from_db()
    assert refused.status_code == 200
    assert "Somebody else has chosen" in refused.content.decode()
    assert {key: getattr(row, key) for key in theirs} == theirs
    assert world.page.post(address, admin_form(refused)).status_code == 302
    row.refresh_from_db()
    assert {key: getattr(row, key) for key in theirs} == theirs | {field: wanted}


def test_every_form_of_the_admin_carries_what_its_page_showed(world: World, root: User, rf: RequestFactory) -> None:
    request = rf.get("/")
    request.user = root
    changing = {model: one for model, one in admin.site._registry.items() if one.has_change_permission(request)}
    rows = {model: row for model in changing if (row := model._default_manager.first())}
    forms = {model.__name__: changing[model].get_form(request, row, change=True) for model, row in rows.items()}
    assert {name for name, form in forms.items() if not issubclass(form, SeenFieldsForm)} == set()
    assert forms.keys() == {"User", "Group", "Gold"}


# Every form ------------------------------------------------------------------------------------------------

EDIT_NOTHING_READ = {
    # Make something new, begin something, or ask for a result.
    "begin-qualification", "evaluation-jobs", "import-data", "invitation", "invitations",
    "new-project", "new-password", "releases", "request-export", "start-import", "start-policy-run", "start-run",
    "repeat-run", "tokens", "password-link", "test-webhook", "retry-delivery", "verify-policy", "verify-version",
    "stop-run", "preview-guidelines", "login", "logout", "set_language", "webhooks",
    # A button that says where something is to go, whatever it was before; the second press changes nothing.
    "archive-project", "restore-project", "cancel-import", "end-token", "revoke-invitation", "dismiss-person",
    "exclude-person", "readmit-person", "people", "offer", "offer-policy", "promote-version", "reject-version",
    "rotate-webhook", "withdraw", "answer-gaps", "decide", "verdict", "quarantined-task", "guidelines", "invite-list",
    # Deletes.
    "delete-evaluation", "delete-export", "delete-mapping", "delete-project", "delete-release", "delete-webhook",
    "erase-version", "remove-evaluation-job", "take-back",
    # Many rows at once: a page of its own says what will change, and it can be undone.
    "change-tasks", "edits", "undo-change",
    # One's own, which nobody else edits; revisions of a rating are all kept.
    "ahead", "draft", "draft-qualification", "heartbeat", "layout", "let-go", "password", "recut", "report", "revise",
    "settings", "silent", "skip", "submit", "take-qualification", "undo-report", "undo-skip",
}  # fmt: skip


PLACES = {"slug": "talk", "name": "bob", "path": "x", "token": "x", "part": "x"}


def pages_of_people(resolver: URLResolver) -> dict[str, list[str]]:
    """The pages outside the admin, by name, with the names of their arguments."""
    found: dict[str, list[str]] = {}
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            found |= {} if entry.namespace or "admin" in str(entry.pattern) else pages_of_people(entry)
        elif entry.name and "admin" not in entry.name:
            found[entry.name] = list(entry.pattern.converters)
    return found


def takes_posts(world: World, name: str, arguments: list[str]) -> bool:
    task = Task.objects.get(external_id="rated")
    client = Client()
    client.force_login(world.carol)
    places = {key: PLACES.get(key, task.pk if key == "task_id" else 1) for key in arguments}
    return client.post(reverse(name, kwargs=places)).status_code != 405


def test_every_page_that_takes_a_form_is_known_here(world: World) -> None:
    """A new form either names what it was based on, or edits nothing that was read before."""
    pages = pages_of_people(get_resolver())
    takers = {name for name, arguments in pages.items() if takes_posts(world, name, arguments)}
    assert takers - EDITS.keys() - OF_MODELS - EDIT_NOTHING_READ == set()
    assert EDIT_NOTHING_READ - takers == set(), "no such pages"


# REST ------------------------------------------------------------------------------------------------------


def test_rest_refuses_a_rubric_that_changes_an_earlier_version(world: World, as_user: As) -> None:
    read = answered(world.project.rubric)
    rubrics.publish(world.project, TONE)
    answer = as_user(world.carol).put("/api/v1/projects/talk/rubric/", read, format="json")
    assert (answer.status_code, answer.json()["code"]) == (409, "newer_rubric")
    assert "Version 2" in answer.json()["detail"]
    read["version"] = 2
    assert as_user(world.carol).put("/api/v1/projects/talk/rubric/", read, format="json").json()["version"] == 3


def test_a_rubric_without_a_version_replaces_whichever_there_is(world: World, as_user: As) -> None:
    read = answered(world.project.rubric)
    del read["version"]
    rubrics.publish(world.project, TONE)
    assert as_user(world.carol).put("/api/v1/projects/talk/rubric/", read, format="json").status_code == 200


def test_the_same_rubric_twice_is_no_edit(world: World, as_user: As) -> None:
    read = answered(world.project.rubric)
    put = as_user(world.carol).put
    changed = read | {"name": "Another"}
    assert put("/api/v1/projects/talk/rubric/", changed, format="json").json()["version"] == 2
    assert put("/api/v1/projects/talk/rubric/", changed, format="json").json()["version"] == 2
    assert Rubric.objects.filter(project=world.project).count() == 1


def test_rest_refuses_a_mapping_that_replaces_another_one_than_was_read(world: World, as_user: As) -> None:
    client, address = as_user(world.carol), "/api/v1/projects/talk/import-mappings/"
    (read,) = client.get(address).json()["results"]
    kept_mappings.keep(world.project, "ours", read_mapping(THEIRS), by=None)
    answer = client.post(address, read | {"mapping": MINE}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (409, "newer_mapping")
    assert "second" in answer.json()["detail"]
    assert client.post(address, read | {"mapping": THEIRS}, format="json").status_code == 201
    new = {"name": "ours", "mapping": MINE}
    assert client.post(address, new | {"changed_at": None}, format="json").status_code == 409
    kept = client.post(address, new, format="json").json()
    assert client.post(address, kept | {"mapping": THEIRS}, format="json").status_code == 201


def test_rest_refuses_an_authoritative_rating_that_replaces_another_one_than_was_read(
    world: World, as_user: As
) -> None:
    task = Task.objects.get(external_id="rated")
    client, address = as_user(world.carol), f"/api/v1/tasks/{task.public_id}/adjudication/"

    def put(level: int, **based: int) -> Any:
        ratings = [
            {"response": row.public_id, "scores": dict.fromkeys(ATTRIBUTES, level)} for row in task.responses.all()
        ]
        return client.put(address, {"ratings": ratings, "reason": "other", **based}, format="json")

    first = put(1, based_on=0).json()
    refused = put(2, based_on=0)
    assert (refused.status_code, refused.json()["code"]) == (409, "settled_meanwhile")
    assert str(first["id"]) in refused.json()["errors"]["based_on"][0]
    assert put(2, based_on=first["id"]).status_code == 200
    assert put(3).status_code == 200
