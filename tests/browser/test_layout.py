"""Where the responses and their scales stand."""

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from annotator.models import Project, Task, User
from tests.browser.conftest import Open
from tests.builders import make_task

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
WIDE = {"width": 1440, "height": 900}


@pytest.fixture
def long_task(talk: Project) -> Task:
    Project.objects.update(ask_preference=True, ask_safety=True, ask_confidence=True)
    task = make_task(talk)
    task.responses.update(text="A paragraph of some words.\n\n" * 80)
    return task


def box(place: Locator) -> FloatRect:
    bounds = place.bounding_box()
    assert bounds
    return bounds


def rating_page(open_page: Open, user: User, **options: object) -> Page:
    page = open_page(user, **options)
    page.goto("/projects/talk/annotate/")
    return page


@pytest.mark.parametrize("javascript", [True, False])
def test_the_layout_is_switched_and_remembered(open_page: Open, alice: User, long_task: Task, javascript: bool) -> None:
    page = rating_page(open_page, alice, java_script_enabled=javascript)
    switch = page.get_by_role("button", name="Side by side")
    expect(switch).to_have_attribute("aria-pressed", "true")
    first, second = (box(page.locator(".response").nth(at)) for at in (0, 1))
    assert second["x"] > first["x"] + first["width"] - 1
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        switch.click()
    expect(switch).to_have_attribute("aria-pressed", "false")
    page.wait_for_load_state("load")
    page.reload()
    expect(page.locator("#work.below")).to_have_count(1)
    first, second = (box(page.locator(".response").nth(at)) for at in (0, 1))
    assert second["y"] > first["y"] + first["height"] - 1
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "true")


def test_switching_keeps_the_half_filled_form(open_page: Open, alice: User, long_task: Task) -> None:
    page = rating_page(open_page, alice)
    for key in ("4", "4", "l", "4"):
        page.keyboard.press(key)
    expect(page.locator("#rating :checked")).to_have_count(3)
    expect(page.locator("#work.beside")).to_have_count(0)


@pytest.mark.parametrize("layout", ["below", "beside"])
def test_the_scales_stay_in_view_while_a_long_response_scrolls(
    open_page: Open, alice: User, long_task: Task, layout: str
) -> None:
    User.objects.update(layout=layout)
    page = rating_page(open_page, alice, viewport=WIDE)
    foot = box(page.locator(".foot"))
    for scrolled in (400, 1200, 2000):
        page.evaluate(f"scrollTo(0, {scrolled})")
        panel = box(page.locator(".scales").first)
        assert panel["y"] >= box(page.locator(".bar"))["height"]
        assert panel["y"] + panel["height"] <= foot["y"]


def test_the_scales_leave_room_to_read_in_a_low_window(open_page: Open, alice: User, long_task: Task) -> None:
    page = rating_page(open_page, alice, viewport={"width": 1366, "height": 680})
    expect(page.locator("#work.sticks")).to_have_count(0)
    page.set_viewport_size({"width": 1366, "height": 1000})
    expect(page.locator("#work.sticks")).to_have_count(1)


def test_beside_each_response_has_targets_large_enough_and_the_text_of_its_level(
    open_page: Open, alice: User, long_task: Task
) -> None:
    page = rating_page(open_page, alice, viewport=WIDE)
    sizes = [box(number) for number in page.locator(".likert .number").all()]
    assert len(sizes) == 50
    assert all(size["width"] >= 40 and size["height"] >= 40 for size in sizes)
    page.keyboard.press("4")
    text = page.get_by_text("Mostly helpful, with some room to improve").first
    expect(text).to_have_css("opacity", "1")
    page.locator(".likert .level input").first.hover()
    expect(text).to_have_css("opacity", "0")
    expect(page.get_by_text("Not useful: it misses the point").first).to_have_css("opacity", "1")


def test_below_each_other_a_high_window_shows_every_levels_text(open_page: Open, alice: User, long_task: Task) -> None:
    User.objects.update(layout="below")
    page = rating_page(open_page, alice, viewport={"width": 1920, "height": 1080})
    expect(page.get_by_text("Not useful: it misses the point").first).to_have_css("opacity", "1")
    page.set_viewport_size({"width": 1920, "height": 900})
    expect(page.get_by_text("Not useful: it misses the point").first).to_have_css("opacity", "0")


def test_moving_the_focus_moves_no_line(open_page: Open, alice: User, long_task: Task) -> None:
    page = rating_page(open_page, alice, viewport=WIDE)
    before = box(page.locator(".scales").first)["height"]
    for key in ("1", "3", "5", "2", "4"):
        page.keyboard.press(key)
    assert box(page.locator(".scales").first)["height"] == before


@pytest.mark.parametrize("layout", ["below", "beside"])
@pytest.mark.parametrize("width", [720, 899])
def test_a_narrow_window_has_one_column(open_page: Open, alice: User, long_task: Task, layout: str, width: int) -> None:
    User.objects.update(layout=layout)
    page = rating_page(open_page, alice, viewport={"width": width, "height": 740})
    tops = [box(page.locator(selector).nth(at)) for at in (0, 1) for selector in (".response", ".scales")]
    assert [top["y"] for top in tops] == sorted(top["y"] for top in tops)
    assert len({top["x"] for top in tops}) == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_phone_shows_one_response_at_a_time(open_page: Open, alice: User, long_task: Task) -> None:
    page = rating_page(open_page, alice, viewport={"width": 360, "height": 740})
    shown = page.locator(".sheet:visible")
    expect(shown).to_have_attribute("id", "response-A")
    switch = page.get_by_role("navigation", name="Responses")
    switch.get_by_role("link", name="Response B").click()
    expect(shown).to_have_attribute("id", "response-B")
    expect(switch.get_by_role("link", name="Response B")).to_have_attribute("aria-current", "true")
    expect(page.get_by_role("group", name="Which response is better?")).to_have_count(1)


def test_the_switch_is_at_hand_where_the_preference_is_asked(open_page: Open, alice: User, long_task: Task) -> None:
    page = rating_page(open_page, alice, viewport={"width": 360, "height": 740})
    page.locator(".preference").scroll_into_view_if_needed()
    page.evaluate("scrollTo(0, 1e6)")
    switch = page.get_by_role("navigation", name="Responses")
    expect(switch).to_be_in_viewport()
    switch.get_by_role("link", name="Response B").click()
    expect(page.locator("#head-B")).to_be_in_viewport()


def test_digits_go_on_from_one_response_to_the_next_on_a_small_screen(
    open_page: Open, alice: User, talk: Project
) -> None:
    make_task(talk)
    page = rating_page(open_page, alice, viewport={"width": 360, "height": 740})
    for _ in range(10):
        page.keyboard.press("3")
    expect(page.locator("#answered")).to_have_text("10 of 10 answered")
    expect(page.locator(".sheet:visible")).to_have_attribute("id", "response-B")


def test_a_missing_answer_behind_the_switch_is_shown(open_page: Open, alice: User, talk: Project) -> None:
    make_task(talk)
    page = rating_page(open_page, alice, viewport={"width": 360, "height": 740})
    for _ in range(9):
        page.keyboard.press("3")
    page.get_by_role("navigation", name="Responses").get_by_role("link", name="Response A").click()
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_role("alert")).to_contain_text("Response B")
    expect(page.locator(".sheet:visible")).to_have_attribute("id", "response-B")
    page.locator("#errors a").click()
    expect(page.locator(".likert.missing")).to_be_in_viewport()


@pytest.mark.parametrize("layout", ["below", "beside"])
def test_without_javascript_a_phone_shows_all_responses(
    open_page: Open, alice: User, long_task: Task, layout: str
) -> None:
    User.objects.update(layout=layout)
    page = rating_page(open_page, alice, viewport={"width": 360, "height": 740}, java_script_enabled=False)
    expect(page.locator(".sheet:visible")).to_have_count(2)
