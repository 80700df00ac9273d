"""The rating page on screens that people have: texts scroll in their places, and what is needed is in view."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from annotator.models import Project, Task, User
from tests.browser.conftest import Open
from tests.builders import ATTRIBUTES, imported, make_task, task_row

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
SCREENS = [(1366, 680), (1440, 900), (1920, 1080), (820, 1180), (360, 740)]
TEXT = "Take the rice off the heat, and let it stand under its lid for ten minutes. Then loosen it with a fork.\n\n" * 6
screens = pytest.mark.parametrize(("width", "height"), SCREENS)

# Elements that scroll downwards and are no texts; code and tables may scroll sideways.
SCROLLED = """() => [...document.querySelectorAll("body *")].filter((element) => {
    const style = getComputedStyle(element), hidden = element.closest("dialog:not([open]), details:not([open])");
    const scrolls = /auto|scroll|hidden/.test(style.overflowY) && element.scrollHeight > element.clientHeight + 1;
    const known = ".visually-hidden, [data-fold] *, [aria-hidden=true], .conversation, .sheets, .response, .marking *";
    return scrolls && !hidden && !element.matches(known) && element.clientHeight > 1;
}).map((element) => element.outerHTML.slice(0, 120))"""
# Levels whose text does not fit.
CUT = """() => [...document.querySelectorAll(".current .level, .current .level > .text")]
    .filter((element) => element.scrollHeight > element.clientHeight + 1).map((element) => element.textContent)"""
# What fingers are meant to touch, and could miss.
SMALL = """() => [...document.querySelectorAll(
    "#rating .level, #rating .line, .strip a, .foot button, .foot summary, .foot a, .bar a, .bar button, .tool"
)].filter((element) => element.checkVisibility() && !element.matches(".marking *")).filter((element) => {
    const box = element.getBoundingClientRect();
    return box.height < 44 || box.width < 44;
}).map((element) => element.outerHTML.slice(0, 120))"""


def make(talk: Project, responses: int) -> Task:
    Project.objects.update(ask_preference=True, ask_safety=True, ask_confidence=True)
    row: dict[str, Any] = task_row("t-1", prompt="My rice always gets sticky. What am I doing wrong?")
    row["responses"] = [{"id": f"r-{number}", "text": TEXT} for number in range(responses)]
    imported(talk, row)
    return Task.objects.get()


def rating_page(open_page: Open, user: User, width: int, height: int) -> Page:
    touch = width < 900
    page = open_page(user, viewport={"width": width, "height": height}, has_touch=touch, is_mobile=touch)
    page.goto("/projects/talk/annotate/")
    page.wait_for_load_state("load")
    return page


@screens
@pytest.mark.parametrize("layout", ["beside", "below"])
@pytest.mark.parametrize("responses", [2, 3, 9])
def test_no_scale_hides_in_a_box_and_nothing_scrolls_sideways(
    open_page: Open, alice: User, talk: Project, width: int, height: int, responses: int, layout: str
) -> None:
    make(talk, responses)
    User.objects.update(layout=layout)
    page = rating_page(open_page, alice, width, height)
    assert page.evaluate(SCROLLED) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for _ in ATTRIBUTES:
        expect(page.locator(".current")).to_be_in_viewport(ratio=1)
        if width >= 640:
            assert page.evaluate(CUT) == []
        page.keyboard.press("1")


@screens
def test_submit_and_progress_are_in_view_wherever_one_reads(
    open_page: Open, alice: User, talk: Project, width: int, height: int
) -> None:
    make(talk, 2)
    page = rating_page(open_page, alice, width, height)
    for scrolled in (0, 500, 100_000):
        page.evaluate(f"scrollTo(0, {scrolled})")
        expect(page.get_by_role("button", name="Submit and next")).to_be_in_viewport(ratio=1)
        expect(page.get_by_text("0 of 15 answered")).to_be_in_viewport(ratio=1)


@screens
def test_every_scale_can_be_brought_into_view_and_answered(
    open_page: Open, alice: User, talk: Project, width: int, height: int
) -> None:
    """By the keys, as these go to each in turn, and to the head of another response; nothing covers them."""
    make(talk, 2)
    page = rating_page(open_page, alice, width, height)
    for number in range(1, 16):
        focused = page.evaluate("""() => {
            const group = document.activeElement.closest("[data-question]");
            const end = document.querySelector(".foot").getBoundingClientRect().top;
            const head = group?.closest(".sheet")?.querySelector("h2"), inView = (place) => {
                const box = place?.getBoundingClientRect();
                return box && box.top >= 0 && box.bottom <= end + 1;
            };
            return !group || inView(group) || inView(head);
        }""")
        assert focused, f"question {number}"
        page.keyboard.press("1")
    expect(page.locator("#answered")).to_have_text("15 of 15 answered")


@screens
@pytest.mark.parametrize("name", ["skip", "report"])
def test_the_reasons_open_within_the_window(
    open_page: Open, alice: User, talk: Project, width: int, height: int, name: str
) -> None:
    make(talk, 2)
    page = rating_page(open_page, alice, width, height)
    page.locator(f"#{name} > summary").click()
    expect(page.locator(f"#{name} form")).to_be_in_viewport(ratio=1)
    assert page.evaluate(SCROLLED) == []


@pytest.mark.parametrize(("width", "height"), [(820, 1180), (360, 740)])
def test_fingers_have_targets_of_44_pixels_and_no_keys_are_named(
    open_page: Open, alice: User, talk: Project, width: int, height: int
) -> None:
    make(talk, 3)
    page = rating_page(open_page, alice, width, height)
    assert page.evaluate(SMALL) == []
    expect(page.locator("kbd:visible")).to_have_count(0)


def test_the_page_itself_never_scrolls(open_page: Open, alice: User, talk: Project) -> None:
    make(talk, 2)
    for width, height in SCREENS:
        page = rating_page(open_page, alice, width, height)
        assert page.evaluate("document.documentElement.scrollHeight") <= height


def test_a_pair_and_its_preference_fit_on_a_large_screen(open_page: Open, alice: User, talk: Project) -> None:
    make_task(talk)
    Project.objects.update(ask_preference=True)
    page = rating_page(open_page, alice, 1920, 1080)
    for place in page.locator(".response, .current").all():
        expect(place).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize(("width", "columns"), [(1366, 3), (1920, 3), (1100, 3), (820, 1)])
def test_three_responses_take_as_many_columns_as_they_can_fill(
    open_page: Open, alice: User, talk: Project, width: int, columns: int
) -> None:
    make(talk, 3)
    page = rating_page(open_page, alice, width, 900)
    places = [sheet.bounding_box() for sheet in page.locator(".sheet").all()]
    assert len({box["x"] for box in places if box}) == columns
