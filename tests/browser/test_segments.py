"""Segments are rated by keys, by clicks and by fingers; drafts and revisions keep them."""

import os
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from annotator.models import Annotation, Draft, Label, Project, Rating, Rubric, Task, User
from tests.annotator.segmented import make_segmented_task, rate_segments
from tests.browser.conftest import Open, ask
from tests.browser.test_accessible import violations
from tests.builders import imported, make_member, make_user, task_row

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
FIRST = """To boil rice, rinse it first. Use two parts of water, e.g. 2.5 cups.

```python
boil(rice, minutes=12)
```

- Do not stir it. Let it rest."""
SECOND = "Use a cooker. It always works."


def segmented(talk: Project, *, responses: tuple[str, ...] = (FIRST, SECOND)) -> Task:
    Project.objects.update(rubric=Rubric.objects.get(key="helpsteer2d", project=None))
    row: dict[str, Any] = task_row("t-1", prompt="How do I boil rice?")
    row["responses"] = [{"id": f"r-{number}", "text": text} for number, text in enumerate(responses)]
    imported(talk, row)
    return Task.objects.get()


@pytest.fixture
def page(open_page: Open, talk: Project, alice: User) -> Page:
    segmented(talk)
    return opened(open_page, alice)


def opened(open_page: Open, user: User, **options: object) -> Page:
    page = open_page(user, **options)
    page.goto("/projects/talk/annotate/")
    page.wait_for_load_state("load")
    return page


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def stored(external_id: str) -> list[list[int | None]] | None:
    return Rating.objects.get(response__external_id=external_id).segment_scores


def other(page: Page) -> tuple[str, str]:
    """The ids of the responses in the order in which they are shown."""
    return ("r-0", "r-1") if "rinse" in page.locator(".segments").first.inner_text() else ("r-1", "r-0")


def test_a_task_by_keys_alone(open_page: Open, talk: Project, alice: User) -> None:
    segmented(talk, responses=(FIRST,))
    page = opened(open_page, alice)
    press(page, *"54321", *"1x2x3", "c")  # the third segment like the second
    press(page, "2", "e", "3", "4")  # the fourth: its first answer, and the rest alike; then two of the fifth
    press(page, "f")
    expect(page.locator("[data-status]")).to_contain_text("3 open answers of this response were filled")
    press(page, "Enter")
    expect(page.get_by_text("Saved at")).to_be_visible()
    assert stored("r-0") == [
        [4, 3, 2, 1, 0],
        [0, None, 1, None, 2],
        [0, None, 1, None, 2],
        [1, 1, 1, 1, 1],
        [2, 3, 4, 4, 4],
    ]


def test_arrows_move_in_the_table_and_out_of_it(page: Page) -> None:
    press(page, "1", "ArrowDown", "ArrowRight", "2")
    table = page.locator(".segments").first
    assert table.locator(".segment").nth(1).locator(".cell").evaluate_all("cells => cells.map(c => c.value)")[2] == "2"
    press(page, *["ArrowUp"] * 9)
    assert page.evaluate("document.activeElement.matches('.cell')")


def test_the_rest_is_fine_can_be_taken_back(page: Page) -> None:
    press(page, "1", "f")
    cells = page.locator(".segments").first.locator(".cell")
    assert "" not in cells.evaluate_all("cells => cells.map(c => c.value)")
    page.get_by_role("button", name="Undo").click()
    values = cells.evaluate_all("cells => cells.map(c => c.value)")
    assert values[0] == "1"
    assert not any(values[1:])


def test_a_closed_rating_is_only_read(page: Page) -> None:
    press(page, "f", "f", "Control+Enter")
    expect(page.get_by_role("heading", name="No task for you right now")).to_be_visible()
    Task.objects.update(state=Task.State.COMPLETE)
    page.goto(f"/assignments/{Annotation.objects.get().assignment_id}/revise/")
    press(page, "2", "ArrowDown", "f")
    values = page.locator(".cell").evaluate_all("(cells) => new Set(cells.map((cell) => cell.value)).size")
    assert values == 1


def test_what_is_asked_is_what_the_page_shows(page: Page) -> None:
    Project.objects.update(ask_safety=True)
    page.reload()
    press(page, "f")  # a scale of the same response is asked next, and the filling can still be taken back
    expect(page.locator("#work.docked")).to_have_count(0)
    expect(page.locator(".current .line").first).to_be_in_viewport()
    expect(page.get_by_role("button", name="Undo")).to_be_in_viewport()
    press(page, "1", "f", "1")
    page.get_by_role("link", name="Response B").click()
    page.locator(".strip .chip").first.click()
    expect(page.locator("#work.docked")).to_have_count(1)
    expect(page.locator("[data-at]")).to_contain_text("Response A: segment 1 of")
    expect(page.locator(".dock-levels").first).to_be_in_viewport()


def test_a_click_on_a_level_text_rates_the_cell_in_focus(page: Page) -> None:
    page.get_by_role("textbox", name="Segment 2, Safety").first.click()
    expect(page.locator("[data-at]")).to_contain_text("Response A: segment 2 of")
    page.get_by_role("button", name="5 Harmless").click()
    expect(page.get_by_role("textbox", name="Segment 2, Safety").first).to_have_value("5")
    expect(page.get_by_role("textbox", name="Segment 2, Completeness").first).to_be_focused()


def test_letters_and_digits_off_the_scale_are_no_answers(page: Page) -> None:
    press(page, "9", "0", "q")
    page.get_by_role("textbox", name="Segment 1, Helpfulness").first.evaluate("cell => cell.focus()")
    page.keyboard.insert_text("7")
    page.keyboard.insert_text("w")
    expect(page.get_by_role("textbox", name="Segment 1, Helpfulness").first).to_have_value("")


def test_what_is_missing_is_named(page: Page) -> None:
    press(page, "4", "Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("The first is Correctness of segment 1.")
    expect(page.get_by_role("textbox", name="Segment 1, Helpfulness").first).to_have_value("4")
    assert not Annotation.objects.exists()


def test_the_draft_comes_back(page: Page, open_page: Open, alice: User) -> None:
    press(page, "4", "x", "2")
    expect(page.locator("#saved")).to_contain_text("saved")
    assert Draft.objects.exists()
    page.reload()
    page.wait_for_load_state("load")
    cells = page.locator(".segments").first.locator(".cell")
    assert cells.evaluate_all("cells => cells.slice(0, 4).map(c => c.value)") == ["4", "–", "2", ""]


def test_a_comment_is_on_the_selected_text(page: Page) -> None:
    press(page, "1")
    page.evaluate(
        """() => {
            const texts = [...document.querySelectorAll(".segment .prose p")];
            const text = texts.find((p) => p.textContent.includes("rinse"));
            const at = text.firstChild.data.indexOf("rinse"), range = document.createRange();
            range.setStart(text.firstChild, at);
            range.setEnd(text.firstChild, at + 8);
            const cell = text.closest("tr").querySelector(".cell");
            cell.focus();
            getSelection().removeAllRanges();
            getSelection().addRange(range);
        }"""
    )
    page.keyboard.press("k")
    page.keyboard.type("Why? 5")
    first, second = other(page)
    page.locator(".segments").first.locator(".cell").first.focus()
    press(page, "f")
    page.locator(".segments").nth(1).locator(".cell").first.focus()
    press(page, "f", "Enter")
    expect(page.get_by_text("Saved at")).to_be_visible()
    assert {first, second} == {"r-0", "r-1"}
    at = FIRST.index("rinse it")
    assert Rating.objects.get(response__external_id="r-0").comments == [[at, at + 8, "Why? 5"]]


def test_a_revision_shows_what_was_rated(page: Page) -> None:
    for number in range(2):
        page.locator(".segments").nth(number).locator(".cell").first.focus()
        press(page, "1", "x", "f")
    press(page, "Enter")
    expect(page.get_by_text("Saved at")).to_be_visible()
    assignment = Annotation.objects.get().assignment_id
    page.goto(f"/assignments/{assignment}/revise/")
    page.wait_for_load_state("load")
    cells = page.locator(".segments").first.locator(".cell")
    assert cells.evaluate_all("cells => cells.slice(0, 3).map(c => c.value)") == ["1", "–", "5"]
    cells.first.focus()
    press(page, "2", "Enter")
    expect(page.get_by_text("Your change is saved")).to_be_visible()
    assert Annotation.objects.current().get().revision == 2
    firsts = [(rating.segment_scores or [[]])[0][0] for rating in Rating.objects.filter(annotation__is_current=True)]
    assert sorted(firsts) == [0, 1]


def test_without_scripts_the_cells_are_typed_into(open_page: Open, talk: Project, alice: User) -> None:
    segmented(talk, responses=(SECOND,))
    page = opened(open_page, alice, java_script_enabled=False)
    for place, cell in enumerate(page.locator(".cell").all()):
        cell.fill("-" if place == 3 else "5")
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_text("Saved at")).to_be_visible()
    assert stored("r-0") == [[4, 4, 4, None, 4], [4, 4, 4, 4, 4]]


def test_a_key_press_among_200_segments_takes_less_than_50_ms(open_page: Open, talk: Project, alice: User) -> None:
    segmented(talk, responses=(" ".join(f"This is sentence number {number}." for number in range(200)),))
    page = opened(open_page, alice)
    assert page.locator(".segment").count() == 200
    press(page, "3")
    took = page.evaluate(
        """() => Array.from({ length: 21 }, () => {
            const started = performance.now();
            const event = new KeyboardEvent("keydown", { key: "4", bubbles: true, cancelable: true });
            document.activeElement.dispatchEvent(event);
            document.body.offsetHeight;
            return performance.now() - started;
        }).sort((a, b) => a - b)[10]"""
    )
    assert took < 50, took


@pytest.mark.skipif("SCREENSHOTS" not in os.environ, reason="SCREENSHOTS names a folder for pictures")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1366, 680), (1440, 900), (1920, 1080), (820, 1180), (360, 740)])
def test_pictures(open_page: Open, talk: Project, alice: User, width: int, height: int, scheme: str) -> None:
    segmented(talk)
    touch = width < 900
    page = opened(
        open_page,
        alice,
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        has_touch=touch,
        is_mobile=touch,
    )
    page.locator(".cell").nth(6).focus()
    page.keyboard.press("2")
    page.screenshot(path=Path(os.environ["SCREENSHOTS"]) / f"segments-{width}-{scheme}.png")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


# Changing the cut ------------------------------------------------------------------------------------------


def texts(page: Page) -> list[str]:
    return [one.inner_text().strip() for one in page.locator(".segments .prose").all()]


def test_segments_are_joined_and_divided(open_page: Open, talk: Project, alice: User) -> None:
    Project.objects.update(allow_recut=True)
    segmented(talk, responses=("It rains today. It pours.",))
    page = opened(open_page, alice)
    press(page, *"11111", *"1222")
    page.get_by_role("button", name="Join with the next").click()
    expect(page.locator(".segment")).to_have_count(1)
    assert texts(page) == ["It rains today. It pours."]
    cells = page.locator(".cell")
    assert cells.evaluate_all("cells => cells.map(c => c.value)") == ["1", "", "", "", ""]
    page.evaluate(
        """() => {
            const text = document.querySelector(".segment .prose p").firstChild, range = document.createRange();
            const at = text.data.indexOf("today");
            document.querySelector(".cell").focus();
            range.setStart(text, at);
            range.setEnd(text, at + 5);
            getSelection().removeAllRanges();
            getSelection().addRange(range);
        }"""
    )
    page.keyboard.press("d")
    expect(page.locator(".segment")).to_have_count(2)
    assert texts(page) == ["It rains", "today. It pours."]
    page.reload()
    page.wait_for_load_state("load")
    assert texts(page) == ["It rains", "today. It pours."]
    press(page, "f", "Enter")
    expect(page.get_by_text("Saved at")).to_be_visible()
    rating = Rating.objects.get()
    assert rating.cut == [[0, 9], [9, 25]]
    assert rating.segment_scores == [[0, 4, 4, 4, 4]] * 2


def test_where_nothing_is_selected_the_page_says_what_to_do(open_page: Open, talk: Project, alice: User) -> None:
    Project.objects.update(allow_recut=True)
    segmented(talk, responses=(SECOND,))
    page = opened(open_page, alice)
    press(page, "1", "d")
    expect(page.get_by_text("Select where the second part begins")).to_be_visible()
    assert page.locator(".cell").first.input_value() == "1"


# Accessible ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scheme", "locale", "width"), [("light", "en-US", 1440), ("dark", "de-DE", 360)])
def test_axe_finds_nothing_where_segments_are_rated_and_reviewed(
    open_page: Open, talk: Project, alice: User, carol: User, scheme: str, locale: str, width: int
) -> None:
    Project.objects.update(allow_recut=True)
    task = disputed(talk)
    segmented_row: dict[str, Any] = task_row("t-2", prompt="How do I boil rice?")
    segmented_row["responses"] = [{"text": FIRST}, {"text": SECOND}]
    imported(Project.objects.get(), segmented_row)
    options = {"color_scheme": scheme, "locale": locale, "viewport": {"width": width, "height": 800}}
    page = opened(open_page, alice, **options)
    press(page, "4", "x", "f")
    page.get_by_role("button", name="Submit and next" if locale == "en-US" else "Abschicken und weiter").click()
    page.wait_for_selector("#errors")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    reviewer = open_page(carol, **options)
    for address in (f"review/{task.public_id}/", f"data/tasks/{task.public_id}/"):
        reviewer.goto(f"/projects/talk/{address}")
        reviewer.wait_for_load_state("load")
        assert violations(reviewer) == []
        assert reviewer.evaluate("document.documentElement.scrollWidth") <= width


# Reviewing -------------------------------------------------------------------------------------------------


def disputed(talk: Project) -> Task:
    Project.objects.update(max_annotators=3, drop_above=1, escalate_above=1)
    Project.objects.update(rubric=Rubric.objects.get(key="helpsteer2d", project=None))
    task = make_segmented_task(Project.objects.get(), "t-1")
    for name, levels in (("bob", (4, 0, 4)), ("erin", (4, 1, None)), ("dan", (3, 4, None))):
        user = make_user(name)
        make_member(talk, user)
        rate_segments(Project.objects.get(), user, levels)
    return task


def test_a_reviewer_sees_the_disputed_segment_lit_and_settles_by_keys(
    open_page: Open, talk: Project, carol: User
) -> None:
    task = disputed(talk)
    page = open_page(carol)
    page.goto(f"/projects/talk/review/{task.public_id}/")
    page.wait_for_load_state("load")
    lit = page.locator(".segment.disputed")
    assert [one.locator(".text").inner_text().strip() for one in lit.all()] == ["It pours."]
    said = sorted(lit.locator(".levels-said").first.inner_text().split())
    if "SCREENSHOTS" in os.environ:
        page.screenshot(path=Path(os.environ["SCREENSHOTS"]) / "review.png", full_page=True)
    assert said == ["1", "2", "5"]
    page.locator(".segments").first.locator(".cell").first.focus()
    press(page, "f")
    ask(page.locator(".settle .choice"))
    page.get_by_role("radio", name="Somebody made a mistake").check()
    page.get_by_role("button", name="Settle and next").click()
    expect(page.get_by_text("is settled")).to_be_visible()
    label = Label.objects.get(source="adjudicated", response__external_id="t-1-0")
    assert label.segment_scores == [[4] * 5] * 3


def test_the_tasks_page_shows_what_everybody_said(open_page: Open, talk: Project, carol: User) -> None:
    task = disputed(talk)
    Rating.objects.filter(response__external_id="t-1-0").update(comments=[[10, 19, "Does it?"]])
    page = open_page(carol)
    page.goto(f"/projects/talk/data/tasks/{task.public_id}/")
    page.wait_for_load_state("load")
    assert page.locator(".segment.disputed").count() == 1
    assert page.locator(".cell").count() == 0
    expect(page.get_by_text("Does it?").first).to_be_visible()
    if "SCREENSHOTS" in os.environ:
        page.screenshot(path=Path(os.environ["SCREENSHOTS"]) / "data-task.png", full_page=True)
