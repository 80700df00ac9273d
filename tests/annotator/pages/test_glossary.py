"""The glossary, and the words on other pages that lead to it."""

import re

import pytest
from django.conf import settings
from django.template import Context, Template
from django.test import Client

from annotator.models import Project, Task, User
from annotator.pages.glossary import TERMS
from tests.builders import make_task, rate
from tests.conftest import Cast

pytestmark = pytest.mark.django_db


def read(client: Client, user: User, address: str) -> str:
    client.force_login(user)
    return client.get(address).content.decode()


def test_everybody_who_is_logged_in_reads_it(cast: Cast, client: Client) -> None:
    assert client.get("/glossary/").status_code == 302
    for user in (cast.alice, cast.dave):
        assert f"<dt>{TERMS['champion'].word}</dt>" in read(client, user, "/glossary/")


def test_every_term_has_an_anchor_of_its_own(cast: Cast, client: Client) -> None:
    page = read(client, cast.alice, "/glossary/")
    assert sorted(re.findall(r'<div id="([\w-]+)"><dt>', page)) == sorted(TERMS)


def test_the_terms_stand_in_the_order_of_the_alphabet(cast: Cast, client: Client) -> None:
    words = re.findall(r"<dt>(.*?)</dt>", read(client, cast.alice, "/glossary/"))
    assert words == sorted(words, key=str.casefold)


def test_every_word_in_a_template_leads_to_a_term() -> None:
    templates = "".join(path.read_text() for path in (settings.BASE_DIR / "templates").rglob("*.html"))
    named = re.findall(r'{% term "([\w-]+)"', templates)
    assert len(named) > 20
    assert set(named) <= set(TERMS)


def test_an_unknown_word_is_an_error() -> None:
    with pytest.raises(KeyError):
        Template('{% load navigation %}{% term "champio" "Champion" %}').render(Context())


def test_a_word_may_be_worded_by_the_page() -> None:
    said = Template('{% load navigation %}{% term "kept" heading %}').render(Context({"heading": "<Kept>"}))
    assert said == '<a class="term" href="/glossary/#kept">&lt;Kept&gt;</a>'


@pytest.mark.parametrize(
    ("address", "terms"),
    [
        ("/projects/talk/agreement/", {"kappa", "kept", "alpha", "spearman", "interval"}),
        ("/projects/talk/review/", {"spread"}),
        ("/projects/talk/comparison/", {"held-out"}),
        ("/admin/", {"champion", "quarantine"}),
    ],
)
def test_pages_of_managers_explain_their_words(
    project: Project, cast: Cast, client: Client, address: str, terms: set[str]
) -> None:
    make_task(project)
    for user in cast.annotators:
        rate(project, user)
    Task.objects.filter(pk=make_task(project).pk).update(review_reason="dropped", review_spread=3)
    User.objects.filter(pk=cast.carol.pk).update(is_staff=True)
    terms_linked = re.findall(r'href="/glossary/#([\w-]+)"', read(client, cast.carol, address))
    assert terms <= set(terms_linked)
    assert len(terms_linked) == len(set(terms_linked))
