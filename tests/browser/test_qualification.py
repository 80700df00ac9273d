"""The test before the first task in a real browser: practised, passed, failed."""

import pytest
from playwright.sync_api import Page, expect

from annotator.models import Membership, Project, QualificationRun, User
from tests.browser.conftest import Open
from tests.browser.test_annotate import rate_everything
from tests.builders import make_gold, make_task

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def talk(talk: Project) -> Project:
    """Two test tasks, in which the experts find one response excellent and the other one bad; one for practice."""
    talk.qualification_required, talk.qualification_tries = True, 1
    talk.save()
    for number in range(2):
        make_gold(talk, f"test-{number}", use="test", levels=(4, 0))
    make_gold(talk, "practice", use="practice", levels=(3, 3), prompt="Practise on this.")
    make_task(talk, prompt="Real work.")
    return talk


def rate_like_the_experts(page: Page, *, swapped: bool = False) -> None:
    """Answer 0 is the experts' favourite, wherever it stands."""
    for sheet in page.locator(".sheet").all():
        good = ("Answer 0" in sheet.locator(".response").inner_text()) != swapped
        for scale in sheet.locator(".likert").all():
            scale.locator("input[type=radio]").nth(4 if good else 0).check()


def take_the_test(page: Page, *, swapped: bool = False) -> None:
    page.goto("/projects/talk/annotate/")
    page.get_by_role("button", name="Take the test").click()
    for number in (1, 2):
        expect(page.get_by_role("heading", name=f"Test: task {number} of 2")).to_be_visible()
        rate_like_the_experts(page, swapped=swapped)
        page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_role("heading", name="Your tries")).to_be_visible()


@pytest.mark.parametrize("javascript", [True, False])
def test_who_passes_may_rate(open_page: Open, talk: Project, alice: User, javascript: bool) -> None:
    page = open_page(alice, java_script_enabled=javascript)
    take_the_test(page)
    expect(page.get_by_text("You have been qualified since")).to_be_visible()
    page.get_by_role("link", name="Rate", exact=True).click()
    expect(page.get_by_text("Real work.")).to_be_visible()


def test_who_fails_may_not_and_is_told(open_page: Open, talk: Project, alice: User) -> None:
    page = open_page(alice)
    take_the_test(page, swapped=True)
    expect(page.get_by_text("You have no tries left")).to_be_visible()
    expect(page.get_by_text("not passed")).to_be_visible()
    page.goto("/projects/talk/annotate/")
    expect(page.get_by_role("heading", name="Qualification")).to_be_visible()
    assert Membership.objects.get(user=alice).qualified_at is None


def test_practice_explains_each_task(open_page: Open, talk: Project, alice: User) -> None:
    page = open_page(alice)
    page.goto("/projects/talk/qualification/")
    page.get_by_role("button", name="Practise").click()
    expect(page.get_by_text("Practise on this.")).to_be_visible()
    rate_everything(page, 1)
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_text("Level 3 it is.").first).to_be_visible()
    expect(page.get_by_role("table").first).to_contain_text("Helpfulness")


def test_a_reload_keeps_the_half_done_test(open_page: Open, talk: Project, alice: User) -> None:
    page = open_page(alice)
    page.goto("/projects/talk/qualification/")
    page.get_by_role("button", name="Take the test").click()
    rate_everything(page, 2, scales=4)
    expect(page.locator("#saved")).to_contain_text("saved")
    page.reload()
    expect(page.locator("#rating [type=radio]:checked")).to_have_count(4)
    assert QualificationRun.objects.get().answers.count() == 0


def test_a_test_without_a_mouse(open_page: Open, talk: Project, alice: User) -> None:
    page = open_page(alice)
    page.goto("/projects/talk/qualification/")
    page.get_by_role("button", name="Take the test").press("Enter")
    for number in (1, 2):
        expect(page.get_by_role("heading", name=f"Test: task {number} of 2")).to_be_visible()
        page.wait_for_load_state()  # the scripts have run
        for _ in range(10):
            page.keyboard.press("3")
        page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Your tries")).to_be_visible()
