"""A manager rearranges the rubric, sees what annotators will see and what saving means, and publishes it."""

import pytest
from playwright.sync_api import Locator, Page, expect

from annotator.models import Project, User
from tests.browser.conftest import Open
from tests.browser.test_accessible import violations
from tests.builders import make_task

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
PAGE = "/projects/talk/rubric/"


def order(page: Page) -> list[str]:
    """The attributes' names in the order of the form."""
    names: list[str] = page.locator("[data-row] input[name$=-name]").evaluate_all("all => all.map(one => one.value)")
    return names


def scales(page: Page) -> Locator:
    return page.locator("#preview fieldset.likert")


def expect_order(page: Page, *names: str) -> None:
    """In the form at once, and in what annotators see as soon as the server has answered."""
    assert order(page) == list(names)
    expect(page.locator("#preview fieldset.likert > legend")).to_contain_text(list(names))


def add(page: Page, name: str, levels: str) -> Locator:
    page.get_by_role("button", name="Add an attribute").click()
    row = page.locator("[data-row]").last
    expect(row.get_by_label("Name")).to_be_focused()
    row.get_by_label("Name").fill(name)
    row.get_by_label("Levels").fill(levels)
    return row


def drag(page: Page, grip: Locator, above: Locator) -> None:
    """With the mouse, in steps, as a hand does."""
    grip.scroll_into_view_if_needed()
    start = grip.bounding_box()
    assert start
    page.mouse.move(start["x"] + start["width"] / 2, start["y"] + start["height"] / 2)
    page.mouse.down()
    target = above.bounding_box()
    assert target
    page.mouse.move(target["x"] + 20, target["y"] + 4, steps=8)
    page.mouse.up()


def test_a_rubric_is_rearranged_checked_and_published(open_page: Open, carol: User, alice: User, talk: Project) -> None:
    make_task(talk)
    page = open_page(carol, viewport={"width": 1440, "height": 2400})
    page.goto(PAGE)
    expect_order(page, "Helpfulness", "Correctness", "Coherence", "Complexity", "Verbosity")

    row = add(page, "Tone", "rude\nplain\nkind")
    tone = scales(page).filter(has_text="Tone")
    expect(tone.get_by_role("radio")).to_have_count(3)
    row.get_by_label("Levels").fill("rude\ncool\nplain\nkind")
    expect(tone.get_by_role("radio")).to_have_count(4)

    up = page.get_by_role("button", name="Move up Tone")
    up.focus()
    page.keyboard.press("Enter")
    expect(up).to_be_focused()
    page.keyboard.press("Space")
    expect_order(page, "Helpfulness", "Correctness", "Coherence", "Tone", "Complexity", "Verbosity")

    rows = page.locator("[data-row]")
    drag(page, rows.nth(1).locator("[data-grip]"), above=rows.nth(0))
    expect_order(page, "Correctness", "Helpfulness", "Coherence", "Tone", "Complexity", "Verbosity")

    page.get_by_role("button", name="Check the change").click()
    change = page.locator("#change")
    expect(change).to_be_in_viewport()
    expect(change).to_contain_text("What version 2 changes")
    expect(change).to_contain_text("New: Tone")
    expect(change).to_contain_text("In another order: Correctness, Helpfulness, Coherence, Tone, Complexity, Verbosity")
    assert violations(page) == []
    assert Project.objects.get().rubric.version == 1

    page.get_by_role("button", name="Publish version 2").click()
    expect(page.get_by_text("Version 2 is in force.", exact=True)).to_be_visible()
    scale = {"correctness": 5, "helpfulness": 5, "coherence": 5, "tone": 4, "complexity": 5, "verbosity": 5}
    assert list(Project.objects.get().scales().items()) == list(scale.items())
    expect_order(page, "Correctness", "Helpfulness", "Coherence", "Tone", "Complexity", "Verbosity")

    rating = open_page(alice)
    rating.goto("/projects/talk/annotate/")
    tone = rating.locator("fieldset.likert").filter(has_text="Tone").first
    expect(tone.locator("[type=radio]")).to_have_count(4)


def test_what_was_checked_cannot_be_published_once_the_form_is_another(open_page: Open, carol: User) -> None:
    page = open_page(carol, viewport={"width": 1440, "height": 2400})
    page.goto(PAGE)
    change = page.locator("#change")
    page.get_by_role("button", name="Check the change").click()
    expect(change).to_be_visible()
    page.get_by_label("Levels").first.fill("no\nhardly\npartly\nmostly\nyes")
    expect(change).to_have_count(0)
    page.get_by_role("button", name="Check the change").click()
    expect(change).to_be_visible()
    page.get_by_role("button", name="Move down Helpfulness").click()
    expect(change).to_have_count(0)
    expect(page.get_by_role("button", name="Publish version 2")).to_have_count(0)
    page.get_by_role("button", name="Check the change").click()
    expect(change).to_contain_text("With other texts, boxes or weights: Helpfulness")
    expect(change).to_contain_text("In another order: Correctness, Helpfulness")


def test_without_javascript_the_buttons_do_the_same(open_page: Open, carol: User) -> None:
    page = open_page(carol, java_script_enabled=False)
    page.goto(PAGE)
    page.get_by_role("button", name="Add an attribute").click()
    row = page.locator("[data-row]").last
    row.get_by_label("Name").fill("Tone")
    row.get_by_label("Levels").fill("rude\nplain\nkind")
    page.get_by_role("button", name="Move up Attribute 6").click()
    assert page.locator("[data-row] input[name$=-name]").nth(4).input_value() == "Tone"
    page.get_by_role("button", name="Check the change").click()
    expect(page.locator("#change")).to_contain_text("New: Tone")
    page.get_by_role("button", name="Publish version 2").click()
    expect(page.get_by_text("Version 2 is in force.", exact=True)).to_be_visible()
    assert list(Project.objects.get().scales()) == [
        "helpfulness",
        "correctness",
        "coherence",
        "complexity",
        "tone",
        "verbosity",
    ]
