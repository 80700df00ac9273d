"""The agreement page in a real browser: it fits a phone, opens its numbers and sorts by links."""

import pytest
from playwright.sync_api import expect

from annotator.models import Project, User
from tests.browser.conftest import Open
from tests.builders import make_member, make_task, make_user, rate

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def rated(talk: Project, alice: User) -> None:
    others = [make_user("bob"), make_user("an.annotator.with.a.very.long.name")]
    for number in range(6):
        make_task(talk)
        for place, user in enumerate((alice, *others)):
            rate(talk, user, [(number + place) % 5, (number + 2 * place) % 5])


def manager(talk: Project) -> User:
    user = make_user("carol")
    make_member(talk, user, role="manager")
    return user


def test_it_is_read_on_a_phone(open_page: Open, talk: Project, rated: None) -> None:
    page = open_page(manager(talk), viewport={"width": 360, "height": 800})
    page.goto("/projects/talk/agreement/")
    page.locator("[data-chart=agreement]").scroll_into_view_if_needed()
    expect(page.locator("[data-chart=agreement][data-drawn] svg")).to_be_visible()
    page.get_by_text("Table Agreement by week").click()
    expect(page.get_by_role("columnheader", name="Week of")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_the_annotators_are_sorted_and_lead_to_their_pairs(open_page: Open, talk: Project, rated: None) -> None:
    page = open_page(manager(talk))
    page.goto("/projects/talk/agreement/")
    page.get_by_role("link", name="Annotator", exact=True).click()
    names = page.get_by_role("region", name="Annotators").get_by_role("rowheader")
    expect(names).to_have_text(["alice", "an.annotator.with.a.very.long.name", "bob"])
    names.first.get_by_role("link").click()
    expect(page.get_by_role("heading", name="Pairs with alice")).to_be_visible()
