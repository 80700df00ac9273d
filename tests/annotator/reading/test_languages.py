"""Who sees which language, and that no template speaks one by itself."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from django.utils import translation

from annotator.models import Attribute, Project
from annotator.pages.rating.rating_form import RatingForm
from annotator.settings import BASE_DIR
from tests.builders import claimed, make_task
from tests.conftest import Cast

pytestmark = pytest.mark.django_db
PAGES = [path for path in BASE_DIR.glob("templates/**/*.html") if "admin" not in path.parts and path.name != "500.html"]
SPOKEN = re.compile(r' (?:title|alt|placeholder|aria-label|data-label)="([^"{]*[A-Za-z][^"]*)"')
MARKUP = re.compile(
    r"{% blocktranslate.*?endblocktranslate %}|{% block (?:\w+_class|folded) %}[^{]+|{%.*?%}|{{.*?}}|{#.*?#}", re.DOTALL
)
TAGS = re.compile(r"<[^>]*>", re.DOTALL)
SAMPLE = re.compile(r'<pre class="sample".*?</pre>', re.DOTALL)
NAMES = {"Rewardloop", "Esc", "HelpSteer", "arXiv"}


@pytest.fixture(autouse=True)
def _english_afterwards() -> Iterator[None]:
    """A request leaves its language to its thread, which here is every test's."""
    with translation.override("en"):
        yield


def words(page: Path) -> set[str]:
    text = SAMPLE.sub(" ", MARKUP.sub(" ", page.read_text()))
    return {*re.findall(r"[A-Za-z]{2,}", TAGS.sub(" ", text)), *SPOKEN.findall(text)} - NAMES


def test_no_template_has_words_of_its_own() -> None:
    assert {page.name: untranslated for page in PAGES if (untranslated := words(page))} == {}


def test_the_browser_chooses_the_language(client: Client) -> None:
    page = client.get("/login/", headers={"accept-language": "de-AT,de;q=0.9"}).content.decode()
    assert '<html lang="de" dir="ltr">' in page
    assert "Benutzername" in page


def test_the_login_page_offers_every_language(client: Client) -> None:
    page = client.get("/login/?next=/mine/").content.decode()
    assert ">Deutsch</button>" in page
    answer = client.post("/i18n/setlang/", {"language": "de", "next": "/login/?next=/mine/"})
    assert answer.headers["Location"] == "/login/?next=/mine/"
    assert "Anmelden" in client.get("/login/").content.decode()


def test_a_language_that_is_not_offered_is_english(client: Client) -> None:
    assert '<html lang="en" dir="ltr">' in client.get("/login/", headers={"accept-language": "ar"}).content.decode()


def test_the_rubric_is_shown_in_the_language_of_the_reader(cast: Cast, project: Project, client: Client) -> None:
    make_task(project)
    client.force_login(cast.alice)
    page = client.get("/projects/talk/annotate/", headers={"accept-language": "de"}).content.decode()
    assert "Nützlichkeit" in page
    assert "Helpfulness" not in page


def test_a_projects_own_rubric_is_shown_as_it_is(cast: Cast, project: Project, client: Client) -> None:
    texts = ["100 % wrong", "", "a", "b", "<b>%(c)s</b>"]
    Attribute.objects.filter(key="coherence").update(name="Wit", description="0 % to 100 % <i>", levels=texts)
    make_task(project)
    client.force_login(cast.alice)
    for address in ("/projects/talk/annotate/", "/projects/talk/guidelines/"):
        page = client.get(address, headers={"accept-language": "de"}).content.decode()
        assert "0 % to 100 % &lt;i&gt;" in page
        assert "&lt;b&gt;%(c)s&lt;/b&gt;" in page
        assert "Project-Id-Version" not in page


def test_what_is_missing_is_named_in_the_language_of_the_reader(cast: Cast, project: Project) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    with translation.override("de"):
        form = RatingForm(project, list(held.task.responses.all()), {})
        errors = [text for texts in form.errors.values() for text in texts]
    assert "Antwort A: Bitte beantworten Sie „Nützlichkeit“." in errors


def test_rest_answers_in_english_unless_it_is_asked_otherwise(cast: Cast, project: Project, client: Client) -> None:
    client.force_login(cast.alice)
    plain = client.post("/api/v1/projects/talk/next/")
    german = client.post("/api/v1/projects/talk/next/", headers={"accept-language": "de"})
    assert (plain.json()["reason"], plain.json()["detail"]) == ("empty", "This project has no tasks yet.")
    assert (german.json()["reason"], german.json()["detail"]) == ("empty", "Dieses Projekt hat noch keine Aufgaben.")


@pytest.mark.parametrize(
    "address",
    [
        "",
        "annotator/project/",
        "annotator/task/",
        "annotator/membership/",
        "annotator/annotation/",
        "rewards/trainingrun/",
    ],
)
def test_the_admin_works_beside_a_german_browser(cast: Cast, client: Client, address: str) -> None:
    cast.carol.is_staff = cast.carol.is_superuser = True
    cast.carol.save()
    client.force_login(cast.carol)
    assert client.get(f"/admin/{address}", headers={"accept-language": "de"}).status_code == 200
