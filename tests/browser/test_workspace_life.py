"""The life of a project in a browser: created from a preset, copied, changed, archived and deleted; its overview."""

from datetime import timedelta
from typing import Literal

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from annotator.models import Project, User
from tests.browser.conftest import Open
from tests.browser.test_accessible import violations
from tests.builders import make_member, make_project, make_task, make_user, rate

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def root(db: None) -> User:
    """A superuser of an installation without projects; the rubrics are there."""
    make_project("there").delete()
    return make_user("carol", is_superuser=True, is_staff=True)


def test_a_superuser_takes_a_project_from_its_creation_to_its_deletion(open_page: Open, root: User) -> None:
    page = open_page(root)
    page.goto("/")
    expect(page.get_by_role("heading", name="Create your first project")).to_be_visible()
    page.get_by_role("link", name="New project").click()
    page.get_by_label("Name", exact=True).fill("Our Talks")
    expect(page.get_by_label("Name in addresses")).to_have_value("our-talks")
    expect(page.get_by_text("About 3,410 annotations for 1,000 tasks")).to_be_visible()
    page.get_by_label("My own numbers").check()
    expect(page.get_by_label("Annotators for each task")).to_be_visible()
    page.get_by_label("Double: 2 annotators").check()
    expect(page.get_by_text("2,000 annotations for 1,000 tasks")).to_be_visible()
    expect(page.get_by_label("Annotators for each task")).to_be_hidden()
    page.get_by_role("button", name="Create the project").click()
    expect(page.get_by_role("heading", name="What to do first")).to_be_visible()

    page.goto("/new-project/?copy=our-talks")
    page.get_by_label("Name", exact=True).fill("Second")
    page.get_by_role("button", name="Create the project").click()
    page.wait_for_url("**/projects/second/")
    copy = Project.objects.get(slug="second")
    assert (copy.base_annotators, copy.max_annotators) == (2, 2)
    make_member(copy, make_user("alice"))
    make_member(copy, make_user("bob"))
    for number in range(2):
        make_task(copy)
        for name in ("alice", "bob"):
            rate(copy, User.objects.get(username=name), 1 + number, now=timezone.now(), preference=1)

    page.get_by_role("link", name="Settings").last.click()
    page.get_by_label("Maximum annotators per task").fill("3")
    page.get_by_label("Annotators for each task").fill("3")
    expect(page.get_by_text("2 complete tasks would reopen")).to_be_visible()
    expect(page.get_by_text("4 labels would be dropped")).to_be_visible()
    page.get_by_role("button", name="Save the settings").click()
    expect(page.get_by_text("The settings are saved.")).to_be_visible()
    copy.refresh_from_db()
    assert copy.base_annotators == 3

    page.get_by_role("button", name="Archive the project").click()
    page.get_by_role("link", name="Delete the project").click()
    page.get_by_label("The project's name").fill("Second try")
    page.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_text("This is not the project's name.")).to_be_visible()
    page.get_by_label("The project's name").fill("Second")
    page.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_text("Second is deleted.")).to_be_visible()
    assert [project.slug for project in Project.objects.all()] == ["our-talks"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_its_pages_are_read_on_a_phone_and_on_a_screen(
    open_page: Open, root: User, talk: Project, width: int, scheme: Literal["light", "dark"]
) -> None:
    make_member(talk, root, role="manager")
    raters = [make_user(f"rater-{number}") for number in range(3)]
    for user in raters:
        make_member(talk, user)
    for number in range(3):
        make_task(talk)
        for day, user in enumerate(raters):
            rate(talk, user, [number, (day + number) % 5], now=timezone.now() - timedelta(days=6 - day))
    page = open_page(root, viewport={"width": width, "height": 900}, color_scheme=scheme)
    for address in ("", "settings/", "settings/delete/", "../../new-project/", "../../new-project/?copy=", "../../"):
        page.goto(f"/projects/talk/{address}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        for figure in page.locator("[data-chart]").all():
            figure.scroll_into_view_if_needed()
            expect(figure).to_have_attribute("data-drawn", "true")
        assert page.evaluate("document.documentElement.scrollWidth") == width, address
        assert violations(page) == [], address
