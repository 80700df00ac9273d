"""A reviewer at work: by the keyboard, without JavaScript, on a phone."""

import pytest
from playwright.sync_api import expect

from annotator.models import Adjudication, Assignment, Project, Task, User
from tests.browser.conftest import Open
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


def test_a_phone_shows_every_response(open_page: Open, rita: User) -> None:
    page = open_page(rita, viewport={"width": 360, "height": 800})
    page.goto(f"/projects/talk/review/{Task.objects.earliest('pk').public_id}/")
    for letter in "AB":
        expect(page.get_by_role("heading", name=f"Response {letter}", exact=True)).to_be_visible()
    page.get_by_role("button", name="Settle and next").click()
    page.get_by_role("alert").get_by_role("link").last.click()
    expect(page.get_by_role("heading", name="Response A", exact=True)).to_be_visible()
