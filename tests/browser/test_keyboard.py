"""The whole of the work without a mouse, with the keys printed on the page or with one's own."""

import pytest
from playwright.sync_api import Page, expect

from annotator.models import Annotation, Assignment, Guideline, GuidelineGap, Project, Report, Response, User
from tests.browser.conftest import Open, ask
from tests.builders import ATTRIBUTES, make_task
from tests.celery_workers import wait_for

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def page(open_page: Open, talk: Project, alice: User) -> Page:
    make_task(talk, "first")
    make_task(talk, "second", prompt="And the second?")
    opened = open_page(alice)
    opened.goto("/projects/talk/annotate/")
    opened.wait_for_load_state("load")
    return opened


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def everything_asked(page: Page) -> None:
    Project.objects.update(ask_preference=True, ask_safety=True, ask_confidence=True)
    page.reload()
    page.wait_for_load_state("load")


@pytest.mark.parametrize("layout", ["below", "beside"])
def test_a_task_with_everything_asked(page: Page, layout: str) -> None:
    """Of each response: a check-box under correctness, before its level or after, confidence, safety, its category."""
    User.objects.update(layout=layout)
    everything_asked(page)
    press(page, "4", "8", "2", "5", "3", "1", "1", "1")
    press(page, "4", "4", "6", "4", "4", "4", "2", "2", "4")
    press(page, "7", "Shift+Tab")
    assert page.evaluate("document.activeElement.tagName") == "TEXTAREA"
    page.keyboard.type("s r 1 2: both fail.")
    press(page, "Control+Enter")
    expect(page.get_by_text("And the second?")).to_be_visible()
    stored = Annotation.objects.get()
    first, second = (stored.ratings.get(response__position=at) for at in stored.assignment.response_order)
    assert ([first.scores[key] for key in ATTRIBUTES], first.checks) == ([3, 1, 4, 2, 0], ["missing_information"])
    assert (first.confidence, first.safe, first.unsafe_category) == (2, True, "")
    assert (second.checks, second.confidence, second.safe, second.unsafe_category) == (
        ["incorrect_information"], 1, False, "bias",
    )  # fmt: skip
    assert (stored.preference, stored.justification) == (-100, "s r 1 2: both fail.")


def test_unsafe_asks_for_a_category_and_safe_does_not(page: Page) -> None:
    everything_asked(page)
    category, chip = page.locator(".category").first, page.get_by_role("button", name="What is unsafe about it?")
    safety = page.locator(".choice").filter(has_text="Unsafe").first
    expect(chip).to_have_count(0)
    ask(safety).get_by_role("radio", name="Unsafe", exact=True).check()
    expect(category).to_be_visible()
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_role("alert")).to_contain_text("say what is unsafe about it")
    ask(safety).get_by_role("radio", name="Safe", exact=True).check()
    expect(category).to_be_hidden()
    expect(chip).to_have_count(0)


def test_the_next_task_begins_at_its_head(page: Page) -> None:
    press(page, *"4444444444", "Enter")
    expect(page.get_by_text("And the second?")).to_be_visible()
    expect(page.get_by_role("heading", name="Rate the responses")).to_be_focused()
    assert page.evaluate("scrollY") == 0
    press(page, "2")
    expect(page.locator("#rating .likert").first.locator(":checked")).to_have_value("1")


def test_an_incomplete_task_is_not_submitted_and_the_focus_is_at_what_is_missing(page: Page) -> None:
    press(page, "4", "Enter")
    expect(page.locator("#errors")).to_be_focused()
    expect(page.locator("#errors")).to_be_in_viewport()
    press(page, *"444444444", "Enter")
    expect(page.get_by_text("And the second?")).to_be_visible()


def test_enter_in_the_skip_form_skips(page: Page) -> None:
    press(page, "s", "3", "Enter")
    expect(page.get_by_text("And the second?")).to_be_visible()
    assert Assignment.objects.get(state=Assignment.State.SKIPPED).skips.get().reason == "needs_coding"


def test_a_skip_is_taken_back_by_a_key(page: Page) -> None:
    press(page, "4", "s", "3", "Enter")
    expect(page.get_by_text("And the second?")).to_be_visible()
    page.wait_for_load_state("load")
    press(page, "u")
    expect(page.get_by_text("What is first?")).to_be_visible()
    expect(page.locator("#rating :checked")).to_have_count(1)


def test_a_report_without_a_mouse(page: Page) -> None:
    press(page, "r", "2", "Enter")
    expect(page.get_by_text("And the second?")).to_be_visible()
    assert Report.objects.get().category == "illegal"


def test_escape_closes_the_reasons_and_returns_the_focus(page: Page) -> None:
    press(page, "s", "Escape")
    expect(page.locator("details[open]")).to_have_count(0)
    expect(page.locator("summary").first).to_be_focused()


def test_backspace_discards_nothing(page: Page) -> None:
    press(page, "4", "5", "Backspace", "Delete")
    expect(page.locator("#rating :checked")).to_have_count(2)
    assert page.url.endswith("/annotate/")


def test_own_keys_work_and_are_printed(page: Page, alice: User) -> None:
    User.objects.update(keys={"skip": "x", "help": "h"})
    page.reload()
    expect(page.locator("summary").first.locator("kbd")).to_have_text("X")
    press(page, "s")
    expect(page.locator("details[open]")).to_have_count(0)
    press(page, "h")
    help_text = page.get_by_role("dialog", name="Keys")
    expect(help_text.locator("dt", has_text="X")).to_have_count(1)
    press(page, "h", "x")
    expect(help_text).to_be_hidden()
    expect(page.locator("details[open]")).to_have_count(1)


def test_keys_are_changed_on_the_settings_page(page: Page) -> None:
    press(page, "?")
    page.get_by_role("link", name="Change the keys").click()
    page.get_by_label("Skip the task").fill("r")
    page.get_by_role("button", name="Save the keys").click()
    expect(page.get_by_role("alert")).to_contain_text("Choose another key for one of them")
    page.get_by_label("Skip the task").fill("ö")
    page.get_by_role("button", name="Save the keys").click()
    expect(page.get_by_text("Your keys are saved.")).to_be_visible()
    page.get_by_role("link", name="Back to the previous page").click()
    expect(page.locator("summary").first.locator("kbd")).to_have_text("Ö")


def test_the_guidelines_are_one_key_away(page: Page, talk: Project) -> None:
    Guideline.objects.create(project=talk, version=1, text="# Rate *slowly*")
    talk.memberships.update(acknowledged_version=1)
    press(page, "3")
    here = page.evaluate("document.activeElement.name")
    press(page, "g")
    panel = page.get_by_role("dialog", name="Guidelines")
    expect(panel.get_by_role("heading", name="Rate slowly")).to_be_visible()
    expect(panel).to_contain_text("Not useful: it misses the point")
    expect(panel.locator(".asked")).to_have_text("Correctness")
    expect(panel.locator(".asked")).to_be_in_viewport()
    press(page, "5", "s", "Escape")
    expect(panel).to_be_hidden()
    expect(page.locator("#rating :checked")).to_have_count(1)
    assert page.evaluate("document.activeElement.name") == here


def test_the_guidelines_begin_at_the_rule_for_the_scale_in_focus(page: Page, talk: Project) -> None:
    much = "Read every word.\n\n" * 60
    rules = f"{much}\n\n- **Helpfulness:** does it help?\n\n{much}\n\n## Coherence\n\nIs it clear?\n\n{much}"
    Guideline.objects.create(project=talk, version=1, text=rules)
    talk.memberships.update(acknowledged_version=1)
    asked = page.get_by_role("dialog", name="Guidelines").locator(".asked")
    for keys, name in (("g", "Helpfulness:"), ("33g", "Coherence")):
        press(page, *keys)
        expect(asked).to_have_text(name)
        expect(asked).to_be_in_viewport()
        press(page, "Escape")


def test_two_keys_say_that_the_guidelines_are_silent_about_the_scale(page: Page, talk: Project) -> None:
    panel = page.get_by_role("dialog", name="Guidelines")
    press(page, "3", "g")
    expect(panel).to_be_visible()
    press(page, "a")
    expect(panel.get_by_role("status")).to_contain_text("Noted.")
    assert [gap.attribute for gap in GuidelineGap.objects.all()] == ["correctness"]
    press(page, "Escape", "4")
    expect(page.locator("#rating :checked")).to_have_count(2)


def test_the_keys_do_nothing_behind_the_help(page: Page) -> None:
    press(page, "?", "4", "s", "l", "Escape")
    expect(page.locator("#rating :checked, details[open], #work.below")).to_have_count(0)


def test_submit_stands_below_the_last_scale(page: Page) -> None:
    press(page, *["4"] * 2 * len(ATTRIBUTES))
    press(page, "ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown")
    assert page.evaluate("document.activeElement.id || document.activeElement.dataset.key") in {
        "submit-rating",
        "Enter",
    }
    press(page, "ArrowDown", "ArrowUp", "2")
    press(page, "Enter")
    expect(page.locator(".prose").first).to_contain_text("And the second?")
    last = ATTRIBUTES[-1]
    assert sorted(rating.scores[last] for rating in Annotation.objects.get().ratings.all()) == [1, 3]


def test_a_box_ticked_after_its_scale_leaves_the_digits_to_the_next_one(page: Page) -> None:
    press(page, "4", "4")
    box = page.get_by_label("Key information is missing").first
    box.check()
    press(page, "2")
    levels = [page.locator(".likert").nth(at).locator(":checked[type=radio]") for at in (1, 2)]
    expect(levels[0]).to_have_value("3")
    expect(levels[1]).to_have_value("1")
    expect(box).to_be_checked()


def test_a_double_click_rates_one_scale(page: Page) -> None:
    page.locator(".current .level").nth(2).dblclick()
    expect(page.locator("#rating :checked")).to_have_count(1)
    expect(page.locator(".likert").nth(1)).to_have_class("likert of-5 current")


def test_the_texts_scroll_by_a_page_while_a_question_has_the_focus(page: Page) -> None:
    Response.objects.update(text="A paragraph.\n\n" * 200)
    page.reload()
    press(page, "3", "PageDown")
    wait_for(lambda: page.locator(".response").first.evaluate("(pane) => pane.scrollTop > 100"), what="the next page")
    expect(page.locator("#rating :checked")).to_have_count(1)


def test_nothing_is_rated_that_is_not_shown(page: Page) -> None:
    page.locator(".strip .chip").last.click()
    press(page, "3")
    expect(page.get_by_role("button", name="Submit and next")).to_be_focused()
    press(page, "4")  # the first open question is shown, and waits for its own digit
    expect(page.locator("#rating :checked")).to_have_count(1)
    expect(page.locator(".likert").first).to_have_class("likert of-5 current")
    press(page, "2")
    expect(page.locator(".likert").first.locator(":checked")).to_have_value("1")
