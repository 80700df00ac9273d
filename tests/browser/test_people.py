"""A manager invites somebody by a link, who joins in another browser and rates; guidelines with their preview."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from annotator.managing.guidelines import publish_guidelines
from annotator.models import Annotation, Guideline, Membership, Project, User
from tests.browser.conftest import Complaints, Open
from tests.browser.test_accessible import violations
from tests.browser.test_annotate import rate_everything
from tests.builders import make_member, make_task, make_user, rate

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
PASSWORD = "tall order 98 x"


@pytest.fixture
def stranger(browser: Browser, live_server: LiveServer, complaints: Complaints) -> Iterator[Page]:
    """A page of somebody who is not logged in."""
    context = browser.new_context(base_url=live_server.url)
    page = context.new_page()
    complaints.watch(page)
    yield page
    page.goto("about:blank")
    page.wait_for_timeout(200)
    context.close()


def test_an_invited_person_joins_and_rates(open_page: Open, carol: User, talk: Project, stranger: Page) -> None:
    publish_guidelines(talk, "Be fair.")
    make_task(talk)
    manager = open_page(carol)
    manager.goto("/projects/talk/people/")
    manager.get_by_role("link", name="Invite people").click()
    manager.get_by_label("For whom").fill("Frank")
    manager.get_by_role("button", name="Make the link", exact=True).click()
    link = manager.locator("pre").inner_text()

    stranger.goto(link)
    stranger.get_by_label("Username").fill("frank")
    stranger.get_by_label("Password", exact=True).fill(PASSWORD)
    stranger.get_by_label("Password, once more").fill(PASSWORD)
    stranger.get_by_role("button", name="Create the account and join").click()
    expect(stranger.get_by_text("Welcome! You have joined Talk.")).to_be_visible()
    stranger.get_by_role("link", name="Rate Talk").click()
    stranger.get_by_role("button", name="I have read the guidelines. Start rating").click()
    rate_everything(stranger, 3)
    stranger.get_by_role("button", name="Submit").first.click()
    expect(stranger.get_by_text("All tasks are done").or_(stranger.get_by_text("every open task"))).to_be_visible()
    assert Annotation.objects.get().assignment.annotator.username == "frank"

    manager.goto("/projects/talk/invitations/")
    row = manager.get_by_role("row").filter(has_text="Frank")
    expect(row).to_contain_text("used up")
    expect(row).to_contain_text("frank")
    stranger.goto("/")
    stranger.get_by_role("button", name="Log out").click()


def test_people_are_paused_without_javascript(open_page: Open, carol: User, alice: User) -> None:
    page = open_page(carol, java_script_enabled=False)
    page.goto("/projects/talk/people/")
    page.get_by_label("Choose alice").check()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("Paused. They are told when they ask for a task.")).to_be_visible()
    page.get_by_role("link", name="alice").click()
    page.get_by_role("button", name="Resume, and count gold tasks from now on").click()
    expect(page.get_by_text("Not paused.")).to_be_visible()
    assert Membership.objects.get(user=alice).paused_at is None


def test_all_are_chosen_at_once(open_page: Open, carol: User, alice: User) -> None:
    page = open_page(carol)
    page.goto("/projects/talk/people/")
    page.get_by_label("Choose all").check()
    expect(page.get_by_label("Choose alice")).to_be_checked()
    page.get_by_label("Choose alice").uncheck()
    expect(page.get_by_label("Choose all")).not_to_be_checked()


def test_links_are_saved_as_a_file(open_page: Open, carol: User) -> None:
    page = open_page(carol)
    page.goto("/projects/talk/invitations/")
    page.get_by_text("Invite many people at once").click()
    page.get_by_role("textbox", name="Lines").fill("Frank\nGrete,reviewer")
    page.get_by_role("button", name="Make the links").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as CSV").click()
    assert download.value.suggested_filename == "talk-invitations.csv"
    lines = download.value.path().read_text("utf-8-sig").splitlines()
    assert [line.split(",")[0] for line in lines] == ["name", "Frank", "Grete"]
    assert all("/invitation/" in line for line in lines[1:])


def test_a_preview_follows_the_writing(open_page: Open, carol: User) -> None:
    page = open_page(carol)
    page.goto("/projects/talk/guidelines/edit/")
    expect(page.locator("#preview")).to_contain_text("Nothing is written yet.")
    page.get_by_label("Text in markdown").press_sequentially("## Be **fair**")
    expect(page.locator("#preview h2 strong")).to_have_text("fair")
    assert not Guideline.objects.exists()
    page.get_by_role("button", name="Publish the guidelines").click()
    expect(page.get_by_text("Version 1 is published.")).to_be_visible()
    assert Guideline.objects.get().text == "## Be **fair**"


@pytest.mark.parametrize(("scheme", "locale", "width"), [("light", "en-US", 1440), ("dark", "de-DE", 360)])
def test_the_pages_are_accessible_and_fit(
    open_page: Open, carol: User, alice: User, talk: Project, scheme: str, locale: str, width: int
) -> None:
    bob = make_user("bob")
    make_member(talk, bob)
    for number in range(6):
        make_task(talk)
        rate(talk, alice, number % 4 + 1)
        rate(talk, bob, (number + 1) % 4 + 1)
    for text in ("One.\n\nTwo.", "One.\n\nThree."):
        publish_guidelines(talk, text)
    page = open_page(carol, color_scheme=scheme, locale=locale, viewport={"width": width, "height": 800})
    faults, wide = [], []
    addresses = [
        "people/",
        "people/alice/",
        "people/bob/exclude/",
        "people/bob/readmit/",
        "invitations/",
        "exclusions/",
    ]
    addresses += ["guidelines/edit/", "guidelines/edit/?template", "guidelines/versions/?version=2"]
    for address in addresses:
        page.goto(f"/projects/talk/{address}")
        faults += violations(page)
        wide += [address] * (page.evaluate("document.documentElement.scrollWidth") > width)
    page.goto("/projects/talk/invitations/")
    page.locator("form[action='/projects/talk/invitations/'] button").click()
    page.wait_for_selector("pre")
    link = page.locator("pre").inner_text()
    faults += violations(page)
    page.context.clear_cookies()
    page.goto(link)
    faults += violations(page)
    wide += [link] * (page.evaluate("document.documentElement.scrollWidth") > width)
    assert (faults, wide) == ([], [])
