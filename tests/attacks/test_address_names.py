"""Names of people's choice in addresses: none is one that a browser rewrites, whatever door it came by."""

from collections.abc import Callable, Iterator
from importlib import import_module

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.test import APIClient

from annotator.managing import invitations
from annotator.managing.invitations import InvitationInput
from annotator.models import Invitation, Project, Rubric, User
from annotator.models.account_names import require_addressable
from tests.builders import NOW, make_project
from tests.conftest import Cast

PASSWORD = "tall order 92"
NAMES = [".", "..", "...", "..a", "-", "-a", "_", "_a", "@a", "+1"]
FROM_PEOPLE = {"name": (User, "username"), "username": (User, "username"), "slug": (Project, "slug")}
"""The parameters of addresses that hold such names, and where these are stored."""
OTHERS = {"token", "part", "app_label", "id"}
"""Secrets, parts of a model that we name, and the admin's own parameters."""


def parameters(resolver: URLResolver) -> Iterator[tuple[str, str]]:
    for pattern in resolver.url_patterns:
        for name, converter in pattern.pattern.converters.items():
            yield name, type(converter).__name__
        if isinstance(pattern, URLResolver):
            yield from parameters(pattern)
        else:
            assert isinstance(pattern, URLPattern)


def test_every_text_in_an_address_is_a_name_under_the_rule_or_none_of_people_s_choice() -> None:
    texts = {name for name, kind in parameters(get_resolver()) if kind in ("StringConverter", "SlugConverter")}
    assert texts - OTHERS == set(FROM_PEOPLE)
    for model, field in FROM_PEOPLE.values():
        assert require_addressable in vars(model)[field].field.validators


def by_invitation(cast: Cast, name: str) -> None:
    project = Project.objects.get(slug="talk")
    _row, secret = invitations.invite(project, InvitationInput(), by=cast.carol, now=NOW)
    Invitation.objects.update(expires_at="2100-01-01T00:00Z")
    answer = Client().post(f"/invitation/{secret}/", {"username": name, "password": PASSWORD, "again": PASSWORD})
    assert answer.status_code == 422


def over_rest(cast: Cast, name: str) -> None:
    api = APIClient()
    api.force_authenticate(cast.carol)
    answer = api.post("/api/v1/projects/talk/members/", {"username": name, "password": PASSWORD})
    assert (answer.status_code, answer.json()["code"]) == (400, "refused_name")


def in_the_admin(cast: Cast, name: str) -> None:
    client = Client()
    client.force_login(User.objects.create(username="root", is_staff=True, is_superuser=True))
    made = {"username": name, "password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
    assert client.post("/admin/annotator/user/add/", made).status_code == 200


def by_a_command(cast: Cast, name: str) -> None:
    with pytest.raises(CommandError):
        call_command("createsuperuser", interactive=False, username=name, email="c@example.org")


@pytest.mark.parametrize("door", [by_invitation, over_rest, in_the_admin, by_a_command])
@pytest.mark.parametrize("name", NAMES)
def test_no_door_makes_an_account_of_such_a_name(cast: Cast, name: str, door: Callable[[Cast, str], None]) -> None:
    door(cast, name)
    assert not User.objects.filter(username=name).exists()


@pytest.mark.parametrize("slug", NAMES)
def test_no_door_makes_a_project_of_such_a_name(cast: Cast, slug: str) -> None:
    api, client = APIClient(), Client()
    api.force_authenticate(cast.carol)
    client.force_login(cast.carol)
    assert api.post("/api/v1/projects/", {"slug": slug, "name": "Mine"}).status_code == 400
    assert api.patch("/api/v1/projects/talk/", {"slug": slug}).status_code in (200, 400)  # a slug is never changed
    assert client.post("/new-project/", {"slug": slug, "name": "Mine", "rubric": "helpsteer2"}).status_code == 422
    copied = {"source": "talk", "slug": slug, "name": "Mine"}
    assert client.post("/new-project/?copy=talk", copied).status_code == 422
    assert list(Project.objects.values_list("slug", flat=True)) == ["talk"]


@pytest.mark.parametrize("key", NAMES)
def test_no_rubric_gets_such_a_key(cast: Cast, key: str) -> None:
    api = APIClient()
    api.force_authenticate(cast.carol)
    attribute = {"key": "good", "name": "Good", "levels": ["no", "yes"]}
    text = {"key": key, "name": "Mine", "attributes": [attribute]}
    assert api.post("/api/v1/rubrics/", text, format="json").status_code == 400
    assert not Rubric.objects.filter(key=key).exists()


def test_names_of_before_are_changed(cast: Cast) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE annotator_user DROP CONSTRAINT account_names_begin_with_a_letter_or_a_digit")
    for name in ("..", "..alice", "_imported", "@zoe"):
        User.objects.create(username=name)
    make_project("-talk")
    import_module("annotator.migrations.0002_databases_of_before").rename(apps, None)
    names = set(User.objects.values_list("username", flat=True))
    assert names >= {"user", "alice", "alice-2", "user-imported", "zoe"}
    assert set(Project.objects.values_list("slug", flat=True)) == {"talk", "talk-2"}
