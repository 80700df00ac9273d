"""Feedback and better versions of responses, written on the rating page."""

import pytest
from playwright.sync_api import Page, expect

from annotator.models import Annotation, Project, User
from tests.browser.conftest import Open, ask
from tests.browser.test_accessible import violations
from tests.builders import make_task

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def page(open_page: Open, talk: Project, alice: User) -> Page:
    Project.objects.update(ask_feedback=True, ask_edit=True, ask_language=True, domains=["General", "STEM"])
    make_task(talk, responses=1)
    opened = open_page(alice)
    opened.goto("/projects/talk/annotate/")
    opened.wait_for_load_state("load")
    return opened


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_a_task_is_rated_and_written_about_by_keys_alone(page: Page) -> None:
    press(page, *"43421")
    page.keyboard.type("Right, in 2 words.")
    press(page, "Tab", "Enter", "Tab", "Enter")  # the better version, and "Start from the response"
    page.keyboard.type("To be exact: ")
    press(page, "Tab")
    page.keyboard.type("Says that it is exact.")
    press(page, "Tab", "2")
    page.keyboard.type("German")
    expect(page.locator("#answered")).to_contain_text("8 of 8")
    press(page, "Control+Enter")
    expect(page.get_by_text("There are no more tasks").or_(page.locator("#work:not(:has(#rating))"))).to_be_visible()
    stored = Annotation.objects.get()
    rating = stored.ratings.get()
    assert (stored.domain, stored.language, rating.feedback) == ("STEM", "de", "Right, in 2 words.")
    assert rating.edit == f"To be exact: {rating.response.text}"
    assert rating.edit_summary == "Says that it is exact."


def test_what_is_half_written_is_there_again(page: Page) -> None:
    feedback = page.locator(".written").filter(has_text="good and bad")
    ask(feedback).get_by_role("textbox").fill("Half a sen")
    ask(page.locator(".edit")).locator("summary").click()
    page.get_by_role("textbox", name="Better version").fill("Half a bet")
    expect(page.locator("#saved")).to_contain_text("saved")
    page.reload()
    expect(ask(feedback).get_by_role("textbox")).to_have_value("Half a sen")
    ask(page.locator(".edit"))
    expect(page.get_by_role("textbox", name="Better version")).to_have_value(
        "Half a bet"
    )  # and its part of the page is open


def test_what_is_missing_is_marked_until_it_is_written(page: Page) -> None:
    press(page, "Control+Enter")
    question = page.locator(".written").filter(has_text="good and bad")
    expect(question).to_have_class("written missing")
    ask(question).locator("textarea").fill("Nothing is bad.")
    question.locator("textarea").blur()
    expect(question).to_have_class("written current")


def test_axe_finds_nothing(page: Page) -> None:
    ask(page.locator(".edit")).locator("summary").click()
    assert violations(page) == []
