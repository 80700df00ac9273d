"""A German browser: the whole way through a task in German, and the way to another language."""

import pytest
from playwright.sync_api import Page, expect

from annotator.models import Annotation, Project, User
from tests.browser.conftest import Open, ask
from tests.browser.test_annotate import rate_everything
from tests.builders import make_task

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
ENGLISH = ["Submit", "Response A", "Helpfulness", "Skip", "Guidelines", "Keys", "Log out", "Mostly", "Safe", " the "]


@pytest.fixture
def page(open_page: Open, talk: Project, alice: User) -> Page:
    """The rating page with everything that a project may ask for, in a German browser."""
    Project.objects.update(ask_preference=True, ask_safety=True, ask_confidence=True)
    make_task(talk, prompt="Wie spät ist es?")
    opened = open_page(alice, locale="de-DE")
    opened.goto("/projects/talk/annotate/")
    return opened


def test_a_whole_task_in_german(page: Page) -> None:
    expect(page.get_by_role("heading", name="Antwort A")).to_be_visible()
    rate_everything(page, 3)
    expect(page.locator("#saved")).to_contain_text("gespeichert")
    for group in page.locator(".choice:not(.category)").all():
        ask(group).locator("input").first.check()
    page.get_by_role("button", name="Abschicken und weiter").click()
    expect(page.get_by_role("heading", name="Gerade keine Aufgabe für Sie")).to_be_visible()
    expect(page.locator("#work")).to_contain_text("Uhr gespeichert.")
    assert Annotation.objects.count() == 1


def test_no_english_is_left_on_the_rating_page(page: Page) -> None:
    for summary in page.locator("summary").all():
        summary.click()
    page.keyboard.press("?")
    text = page.locator("body").text_content() or ""
    labels = page.eval_on_selector_all(
        "[aria-label], [data-label]", "all => all.map((each) => `${each.ariaLabel} ${each.dataset.label}`)"
    )
    assert [word for word in ENGLISH if word in f"{text} {labels}"] == []


def test_what_is_missing_is_said_in_german(page: Page) -> None:
    rate_everything(page, 2, scales=9)
    page.get_by_role("button", name="Abschicken und weiter").click()
    expect(page.get_by_role("alert")).to_contain_text("Antwort B: Bitte beantworten Sie „Ausführlichkeit“.")
    assert not Annotation.objects.exists()


def test_a_skip_without_a_reason_is_refused_in_german(page: Page) -> None:
    page.locator("#skip > summary").click()
    page.get_by_role("button", name="Überspringen", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Bitte einen Grund für das Überspringen wählen.")


def test_the_settings_change_the_language_and_it_stays(page: Page) -> None:
    page.get_by_role("button", name="Menü").click()
    page.get_by_role("link", name="Einstellungen").click()
    page.locator("#language").select_option("en")
    page.get_by_role("button", name="Diese Sprache verwenden").click()
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    page.goto("/projects/talk/annotate/")
    expect(page.get_by_role("button", name="Submit and next")).to_be_visible()
    assert page.locator("html").get_attribute("lang") == "en"


@pytest.mark.parametrize("javascript", [True, False])
def test_the_login_page_changes_the_language(open_page: Open, alice: User, javascript: bool) -> None:
    page = open_page(alice, java_script_enabled=javascript)
    page.goto("/")
    page.get_by_role("button", name="Log out").click()
    page.goto("/login/?next=/mine/")
    page.get_by_role("button", name="Deutsch").click()
    page.get_by_label("Benutzername").fill("alice")
    page.get_by_label("Passwort").fill("falsch")
    page.get_by_role("button", name="Anmelden").click()
    expect(page.get_by_role("alert")).to_contain_text("Passwort")
    assert page.locator("[name=next]").first.input_value() == "/mine/"
