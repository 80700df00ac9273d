"""Where the responses and their scales stand."""

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from annotator.models import Project, Task, User
from tests.browser.conftest import Open, ask
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


# The last is a laptop at 200 % zoom, where the question is a row.
SIZES = {(1366, 680): 0.6, (1440, 900): 0.6, (820, 1180): 0.6, (360, 740): 0.6, (683, 340): 0.5}
READ = """() => ["#work > .conversation", ".sheets"]
    .map((place) => document.querySelector(place).getBoundingClientRect())
    .reduce((sum, { height }) => sum + height, 0) / innerHeight"""


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("layout", ["below", "beside"])
def test_the_texts_have_most_of_the_window_and_nothing_moves(
    open_page: Open, alice: User, long_task: Task, layout: str, size: tuple[int, int]
) -> None:
    User.objects.update(layout=layout)
    Task.objects.update(conversation=[{"role": "user", "content": "Why?\n\n" * 40}])
    page = rating_page(open_page, alice, viewport={"width": size[0], "height": size[1]})
    places = [page.locator(place) for place in ("#work > .conversation", ".sheets", ".strip", ".foot")]
    before = [box(place) for place in places]
    for question in range(15):
        expect(page.locator(".current")).to_have_count(1)
        assert page.evaluate(READ) >= SIZES[size]
        shown = box(page.locator(".current"))
        assert before[2]["y"] < shown["y"]
        assert shown["y"] + min(shown["height"], 30) <= before[3]["y"]
        assert [box(place) for place in places] == before, question
        page.keyboard.press("1")
    expect(page.get_by_role("button", name="Submit and next")).to_be_focused()


@pytest.mark.parametrize("size", list(SIZES)[:4], ids=str)
def test_a_ranking_of_five_leaves_them_as_much(
    open_page: Open, alice: User, talk: Project, size: tuple[int, int]
) -> None:
    Project.objects.update(ask_preference=True)
    make_task(talk, responses=5).responses.update(text="A paragraph of some words.\n\n" * 80)
    touch = size[0] < 900
    page = rating_page(
        open_page, alice, viewport={"width": size[0], "height": size[1]}, has_touch=touch, is_mobile=touch
    )
    for _ in range(25):
        assert page.evaluate(READ) >= SIZES[size]
        page.keyboard.press("1")
    expect(page.locator(".ranking.current")).to_be_visible()
    assert page.evaluate(READ) >= SIZES[size]


def test_side_by_side_the_responses_scroll_together_or_each_by_itself(
    open_page: Open, alice: User, long_task: Task
) -> None:
    first, second = page_order = list(long_task.responses.all())
    second.text = first.text * 3
    second.save()
    assert len(page_order) == 2
    page = rating_page(open_page, alice, viewport=WIDE)
    panes = page.locator(".response")

    def at() -> list[float]:
        page.wait_for_timeout(100)
        said = panes.evaluate_all("(all) => all.map((one) => one.scrollTop / (one.scrollHeight - one.clientHeight))")
        return [round(share, 1) for share in said]

    panes.first.evaluate("(pane) => pane.scrollTo(0, (pane.scrollHeight - pane.clientHeight) / 2)")
    assert at() == [0.5, 0.5]
    page.keyboard.press("y")
    panes.nth(1).evaluate("(pane) => pane.scrollTo(0, pane.scrollHeight)")
    assert at() == [0.5, 1.0]


def test_each_level_is_large_enough_and_says_what_it_means(open_page: Open, alice: User, long_task: Task) -> None:
    page = rating_page(open_page, alice, viewport=WIDE)
    sizes = [box(level) for level in page.locator(".current .level").all()]
    assert len(sizes) == 5
    assert all(size["width"] >= 40 and size["height"] >= 40 for size in sizes)
    for text in ("Mostly helpful, with some room to improve", "Not useful: it misses the point"):
        expect(page.locator(".current").get_by_text(text)).to_have_css("opacity", "1")


def test_a_long_conversation_begins_at_its_last_turn_and_a_key_opens_it(
    open_page: Open, alice: User, long_task: Task
) -> None:
    turns = [{"role": "user", "content": "Why?\n\n" * 30}, {"role": "assistant", "content": "So."}]
    Task.objects.update(conversation=[*turns, {"role": "user", "content": "And then?"}])
    page = rating_page(open_page, alice, viewport=WIDE)
    expect(page.get_by_text("And then?")).to_be_in_viewport()
    before = box(page.locator("#work > .conversation"))["height"]
    page.keyboard.press("t")
    assert box(page.locator("#work > .conversation"))["height"] > 2 * before
    page.keyboard.press("t")
    assert box(page.locator("#work > .conversation"))["height"] == before


@pytest.mark.parametrize("layout", ["below", "beside"])
@pytest.mark.parametrize("width", [720, 899])
def test_a_narrow_window_has_one_column(open_page: Open, alice: User, long_task: Task, layout: str, width: int) -> None:
    User.objects.update(layout=layout)
    page = rating_page(open_page, alice, viewport={"width": width, "height": 740})
    tops = [box(page.locator(".response").nth(at)) for at in (0, 1)]
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
    expect(page.get_by_role("button", name="Which response is better?")).to_have_count(1)


def test_the_switch_is_at_hand_where_the_preference_is_asked(open_page: Open, alice: User, long_task: Task) -> None:
    page = rating_page(open_page, alice, viewport={"width": 360, "height": 740})
    for _ in range(14):
        page.keyboard.press("1")
    switch = page.get_by_role("navigation", name="Responses")
    expect(switch).to_be_in_viewport()
    switch.get_by_role("link", name="Response B").click()
    expect(page.locator("#head-B")).to_be_in_viewport()
    expect(page.locator(".preference .current")).to_be_visible()


SWIPE = """(place, [from, to]) => {
    const touch = (x) => new Touch({ identifier: 1, target: place, clientX: x, clientY: 200 });
    const fire = (name, x, touches) => place.dispatchEvent(new TouchEvent(
        name, { bubbles: true, touches, changedTouches: [touch(x)] }));
    fire("touchstart", from, [touch(from)]);
    fire("touchend", to, []);
}"""


def test_a_finger_leads_to_the_next_response(open_page: Open, alice: User, long_task: Task) -> None:
    page = rating_page(open_page, alice, viewport={"width": 360, "height": 740}, has_touch=True)
    response, shown = page.locator(".response:visible"), page.locator(".sheet:visible")
    for way, letter in (([300, 100], "B"), ([300, 100], "B"), ([200, 190], "B"), ([100, 300], "A")):
        response.evaluate(SWIPE, way)
        expect(shown).to_have_attribute("id", f"response-{letter}")


@pytest.mark.parametrize("javascript", [True, False])
def test_the_tools_stand_behind_one_button_on_a_phone(
    open_page: Open, alice: User, long_task: Task, javascript: bool
) -> None:
    phone = {"width": 360, "height": 740}
    page = rating_page(open_page, alice, viewport=phone, has_touch=True, java_script_enabled=javascript)
    source = page.locator(".more-tools").get_by_text("Source")
    expect(source).to_be_hidden()
    assert page.locator(".bar").evaluate("(bar) => bar.scrollWidth <= bar.clientWidth")
    page.get_by_role("button", name="Tools").click()
    for name in ("Source", "Differences", "Next difference"):
        assert box(page.locator(".more-tools").get_by_text(name))["width"] > 30
    source.click()
    expect(page.locator("#work.raw")).to_be_visible()


@pytest.mark.parametrize(("width", "height"), [(820, 1180), (740, 360)])
def test_elsewhere_a_finger_finds_the_tools_in_the_bar(
    open_page: Open, alice: User, long_task: Task, width: int, height: int
) -> None:
    page = rating_page(open_page, alice, viewport={"width": width, "height": height}, has_touch=True)
    expect(page.locator(".bar .more")).to_be_hidden()
    expect(page.locator(".more-tools").get_by_text("Source")).to_be_visible()


def test_the_response_in_question_is_in_view_where_they_stand_below_each_other(
    open_page: Open, alice: User, long_task: Task
) -> None:
    page = rating_page(open_page, alice, viewport={"width": 820, "height": 1180})
    expect(page.locator("#head-B")).not_to_be_in_viewport()
    page.locator(".strip .chips").nth(1).locator(".chip").first.click()
    expect(page.locator("#head-B")).to_be_in_viewport()


def test_all_answers_to_a_preference_with_ties_are_in_view(open_page: Open, alice: User, long_task: Task) -> None:
    Project.objects.update(allow_ties=True)
    for width, height in ((1366, 680), (820, 1180), (360, 740)):
        page = rating_page(open_page, alice, viewport={"width": width, "height": height})
        ask(page.locator(".preference .choice"))
        lines = page.locator(".preference .line")
        expect(lines).to_have_count(8)
        places = [box(line) for line in lines.all()]
        assert places == sorted(places, key=lambda place: (place["y"], place["x"]))
        for line in lines.all():
            expect(line).to_be_in_viewport(ratio=1)


def test_a_half_rated_task_goes_on_at_the_response_that_is_shown(open_page: Open, alice: User, talk: Project) -> None:
    make_task(talk)
    page = rating_page(open_page, alice, viewport={"width": 360, "height": 740})
    for _ in range(5):
        page.keyboard.press("3")
    expect(page.locator("#saved")).to_contain_text("saved")
    page.reload()
    expect(page.locator(".sheet:visible")).to_have_attribute("id", "response-B")
    expect(page.locator(".current")).to_be_visible()


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
