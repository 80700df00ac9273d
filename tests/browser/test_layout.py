"""Where the responses and their scales stand."""

from collections.abc import Callable

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from annotator.models import Project, Task, User
from tests.builders import make_task

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
Open = Callable[..., Page]


@pytest.fixture
def long_task(talk: Project) -> Task:
    Project.objects.update(ask_preference=True, ask_safety=True, ask_confidence=True)
    task = make_task(talk)
    task.responses.update(text="A paragraph of some words.\n\n" * 80)
    return task


def box(place: Locator) -> FloatRect:
    found = place.bounding_box()
    assert found
    return found


def rating_page(open_page: Open, user: User, **options: object) -> Page:
    page = open_page(user, **options)
    page.goto("/projects/talk/annotate/")
    return page


@pytest.mark.parametrize("javascript", [True, False])
def test_the_layout_is_switched_and_remembered(open_page: Open, alice: User, long_task: Task, javascript: bool) -> None:
    page = rating_page(open_page, alice, java_script_enabled=javascript)
    switch = page.get_by_role("button", name="Side by side")
    expect(switch).to_have_attribute("aria-pressed", "false")
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "true")
    first, second = (box(page.locator(".response").nth(at)) for at in (0, 1))
    assert second["x"] > first["x"] + first["width"] - 1
    page.wait_for_load_state("networkidle")
    page.reload()
    expect(page.locator("#work.beside")).to_have_count(1)
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "false")


def test_switching_keeps_the_half_filled_form(open_page: Open, alice: User, long_task: Task) -> None:
    page = rating_page(open_page, alice)
    for key in ("4", "4", "l", "4"):
        page.keyboard.press(key)
    expect(page.locator("#rating :checked")).to_have_count(3)
    expect(page.locator("#work.beside")).to_have_count(1)


@pytest.mark.parametrize("layout", ["below", "beside"])
def test_the_scales_stay_in_view_while_a_long_response_scrolls(
    open_page: Open, alice: User, long_task: Task, layout: str
) -> None:
    User.objects.update(layout=layout)
    page = rating_page(open_page, alice, viewport={"width": 1440, "height": 900})
    for scrolled in (400, 1200, 2000):
        page.evaluate(f"scrollTo(0, {scrolled})")
        panel = box(page.locator(".scales").first)
        assert panel["y"] >= 0
        assert panel["y"] + panel["height"] <= 901
    assert panel["height"] < (480 if layout == "beside" else 850)


def test_beside_each_response_has_targets_large_enough_and_the_text_of_its_level(
    open_page: Open, alice: User, long_task: Task
) -> None:
    User.objects.update(layout="beside")
    page = rating_page(open_page, alice, viewport={"width": 1440, "height": 900})
    sizes = [box(each) for each in page.locator(".likert .number").all()]
    assert len(sizes) == 50
    assert all(size["width"] >= 40 and size["height"] >= 40 for size in sizes)
    page.keyboard.press("4")
    text = page.get_by_text("Mostly helpful, with some room to improve").first
    expect(text).to_have_css("opacity", "1")
    page.locator(".likert .number").first.hover()
    expect(text).to_have_css("opacity", "0")
    expect(page.get_by_text("Not useful: it misses the point").first).to_have_css("opacity", "1")


def test_moving_the_focus_moves_no_line(open_page: Open, alice: User, long_task: Task) -> None:
    User.objects.update(layout="beside")
    page = rating_page(open_page, alice, viewport={"width": 1440, "height": 900})
    before = box(page.locator(".scales").first)["height"]
    for key in ("1", "3", "5", "2", "4"):
        page.keyboard.press(key)
    assert box(page.locator(".scales").first)["height"] == before


@pytest.mark.parametrize("layout", ["below", "beside"])
@pytest.mark.parametrize("width", [360, 720, 899])
def test_a_narrow_window_has_one_column(open_page: Open, alice: User, long_task: Task, layout: str, width: int) -> None:
    User.objects.update(layout=layout)
    page = rating_page(open_page, alice, viewport={"width": width, "height": 740})
    tops = [box(page.locator(selector).nth(at)) for at in (0, 1) for selector in (".response", ".scales")]
    assert [each["y"] for each in tops] == sorted(each["y"] for each in tops)
    assert len({each["x"] for each in tops}) == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width
