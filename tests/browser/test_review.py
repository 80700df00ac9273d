"""A reviewer at work: by the keyboard, without JavaScript, on a phone."""

import re

import pytest
from playwright.sync_api import expect

from annotator.models import Adjudication, Assignment, Project, Response, Task, User
from tests.browser.conftest import Open
from tests.browser.test_layout import READ, SIZES, box
from tests.builders import make_member, make_task, make_user, rate

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def rita(talk: Project) -> User:
    """A reviewer, with two dropped tasks waiting."""
    Project.objects.update(max_annotators=3)
    talk.refresh_from_db()
    raters = [make_user(name) for name in ("bob", "erin", "frank")]
    for name, least in (("first", 0), ("second", 1)):
        make_task(talk, name)
        for rater, level in zip(raters, (least, 4, 4), strict=True):
            rate(talk, rater, level)
    reviewer = make_user("rita")
    make_member(talk, reviewer, role="reviewer")
    return reviewer


def test_the_keyboard_settles_one_task_after_the_other(open_page: Open, rita: User) -> None:
    page = open_page(rita)
    page.goto("/projects/talk/review/")
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="Task first")).to_be_visible()
    page.wait_for_load_state()  # before its scripts have run nobody listens to keys
    for key in "3333311111" + "3":
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Task second")).to_be_visible()
    expect(page.get_by_text("Task first is settled")).to_be_visible()
    made = Adjudication.objects.get()
    assert [set(scores.values()) for scores in made.scores.values()] == [{2}, {0}]
    assert made.reason == Adjudication.Reason.SLIP


def test_the_keys_are_listed(open_page: Open, rita: User) -> None:
    page = open_page(rita)
    page.goto(f"/projects/talk/review/{Task.objects.earliest('pk').public_id}/")
    page.keyboard.press("?")
    listed = page.get_by_role("dialog")
    for text in ("Next waiting task", "Back to the queue", "Start from the rounded means"):
        expect(listed.get_by_text(text)).to_be_visible()


def test_what_is_missing_is_led_to(open_page: Open, rita: User) -> None:
    page = open_page(rita)
    page.goto(f"/projects/talk/review/{Task.objects.earliest('pk').public_id}/")
    page.get_by_role("button", name="Settle and next").click()
    expect(page.get_by_role("alert")).to_be_focused()
    expect(page.get_by_role("alert").get_by_role("link")).to_have_count(11)


def test_it_works_without_javascript(open_page: Open, rita: User) -> None:
    page = open_page(rita, java_script_enabled=False)
    page.goto(f"/projects/talk/review/{Task.objects.earliest('pk').public_id}/?start=means")
    page.get_by_label("Somebody made a mistake").check()
    page.get_by_role("button", name="Settle and next").click()
    expect(page.get_by_role("heading", name="Task second")).to_be_visible()
    page.get_by_text("3 ratings").click()
    page.get_by_text("Reject …").first.click()
    page.get_by_label("Comment for the annotator").first.fill("Far off.")
    page.get_by_role("button", name="Reject").first.click()
    expect(page.get_by_text("Rejected. The rating no longer counts.")).to_be_visible()
    assert Assignment.objects.filter(counts=False).count() == 1


def test_submissions_are_accepted_one_by_one(open_page: Open, rita: User) -> None:
    page = open_page(rita, viewport={"width": 360, "height": 800})
    page.goto("/projects/talk/review/submissions/")
    for left in range(6, 0, -1):
        expect(page.get_by_role("button", name="Accept")).to_have_count(left)
        page.get_by_role("button", name="Accept").first.click()
    expect(page.get_by_text("Every submission has been judged.")).to_be_visible()


@pytest.mark.parametrize("locale", ["en-US", "de-DE"])
def test_no_heading_of_the_ratings_runs_into_the_next(open_page: Open, rita: User, locale: str) -> None:
    page = open_page(rita, viewport={"width": 1440, "height": 900}, locale=locale)
    page.goto(f"/projects/talk/review/{Task.objects.earliest('pk').public_id}/")
    headings = page.locator(".ratings thead th")
    expect(headings).to_have_count(12)
    assert headings.evaluate_all("all => all.filter(each => each.scrollWidth > each.clientWidth).length") == 0


@pytest.mark.parametrize("javascript", [True, False])
@pytest.mark.parametrize("width", [360, 1440])
def test_a_submission_is_opened_and_rejected(open_page: Open, rita: User, width: int, javascript: bool) -> None:
    page = open_page(rita, viewport={"width": width, "height": 900}, java_script_enabled=javascript)
    page.goto("/projects/talk/review/submissions/")
    expect(page.get_by_text("Answer 0 to second.").first).to_be_hidden()
    page.get_by_text("Read or reject …").first.click()
    expect(page.get_by_text("Answer 0 to second.").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.locator(".opened").first.get_by_text("Reject …").first.click()
    page.get_by_label("Comment for the annotator").first.fill("Far off.")
    page.get_by_role("button", name="Reject").first.click()
    expect(page.get_by_text("Rejected. The rating no longer counts.")).to_be_visible()


def test_submissions_are_narrowed_by_a_form(open_page: Open, rita: User) -> None:
    page = open_page(rita)
    page.goto("/projects/talk/review/submissions/")
    page.get_by_label("Verdict").select_option("Accepted")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("There are no such submissions.")).to_be_visible()


def test_a_phone_shows_one_response_after_the_other(open_page: Open, rita: User) -> None:
    page = open_page(rita, viewport={"width": 360, "height": 800})
    page.goto(f"/projects/talk/review/{Task.objects.earliest('pk').public_id}/")
    heading = {letter: page.get_by_role("heading", name=f"Response {letter}", exact=True) for letter in "AB"}
    expect(heading["A"]).to_be_visible()
    expect(heading["B"]).to_be_hidden()
    page.get_by_role("link", name="Response B").click()
    expect(heading["B"]).to_be_visible()
    page.get_by_role("button", name="Settle and next").click()
    page.get_by_role("alert").get_by_role("link").first.click()
    expect(heading["A"]).to_be_visible()


def test_what_the_raters_said_stands_under_each_chip_and_beside_each_level(open_page: Open, rita: User) -> None:
    page = open_page(rita, viewport={"width": 1366, "height": 680})
    page.goto(f"/projects/talk/review/{Task.objects.earliest('pk').public_id}/")
    chip = page.locator(".strip .chip").first
    expect(chip).to_have_accessible_name(
        re.compile(r"Helpfulness of response A, raters: [15](\s[15]){2}, they differ$")
    )
    table = page.get_by_role("region", name="Ratings of response A").get_by_role("row", name=re.compile("^Helpfulness"))
    given = [int(cell) for cell in table.get_by_role("cell").all_inner_texts()[:3]]
    for level in (1, 5):
        numbers = " ".join(str(number) for number, one in enumerate(given, 1) if one == level)
        expect(page.locator(".likert.current .level").nth(level - 1).locator(".said-by [aria-hidden]")).to_have_text(
            numbers
        )
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
    page.keyboard.press("r")
    expect(page.get_by_role("heading", name="Rater 1")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Rater 1")).to_be_hidden()


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_texts_have_most_of_the_window_and_nothing_moves(
    open_page: Open, rita: User, size: tuple[int, int]
) -> None:
    Task.objects.update(conversation=[{"role": "user", "content": "Why?\n\n" * 40}])
    Response.objects.update(text="A paragraph of some words.\n\n" * 80)
    page = open_page(rita, viewport={"width": size[0], "height": size[1]})
    page.goto(f"/projects/talk/review/{Task.objects.earliest('pk').public_id}/")
    places = [page.locator(place) for place in ("#work > .conversation", ".sheets", ".strip", ".foot")]
    before = [box(place) for place in places]
    for question in range(11):
        expect(page.locator(".current")).to_have_count(1)
        assert page.evaluate(READ) >= SIZES[size] - 0.01
        assert [box(place) for place in places] == before, question
        page.keyboard.press("1")
    expect(page.get_by_role("button", name="Settle and next")).to_be_focused()
    assert page.evaluate("document.documentElement.scrollWidth") == size[0]
