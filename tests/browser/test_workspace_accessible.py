"""Every page of a project's workspace against axe-core, and in a narrow window."""

from urllib.parse import urlsplit

import pytest
from django.urls import resolve

from annotator.models import User
from annotator.reading.search.word_index import take_words
from benchmarks import workspace_pages, workspace_project
from benchmarks.workspace_pages import MANAGER
from tests.browser.conftest import Open
from tests.browser.test_accessible import violations

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
FRAGMENTS = {
    "evaluation-jobs",
    "export-files",
    "import-list",
    "release-list",
    "run-live",
    "run-losses",
    "webhook-deliveries",
}
"""Parts of pages, which htmx asks for."""


@pytest.fixture
def addresses(db: None) -> list[str]:
    """One address of every page that a manager sees, with something on it."""
    project = workspace_project.write(300, rows=20)
    workspace_project.count(project)
    take_words()
    pages = workspace_pages.addresses(project, MANAGER)
    by_view = {resolve(urlsplit(page).path).url_name: page for page in reversed(pages)}
    return sorted(page for name, page in by_view.items() if name not in FRAGMENTS)


def test_axe_finds_nothing_in_the_workspace(open_page: Open, addresses: list[str]) -> None:
    """Whole in light; in dark only contrast can be otherwise. Colors change at once, without a transition."""
    page = open_page(User.objects.get(username=MANAGER), color_scheme="light", reduced_motion="reduce")
    faults = []
    for address in addresses:
        page.goto(address)
        faults += violations(page)
        page.emulate_media(color_scheme="dark")
        faults += violations(page, only=["color-contrast"])
        page.emulate_media(color_scheme="light")
    assert not faults, "\n".join(faults)


def test_no_page_of_the_workspace_scrolls_sideways(open_page: Open, addresses: list[str]) -> None:
    page = open_page(User.objects.get(username=MANAGER), viewport={"width": 360, "height": 800}, locale="de-DE")
    wide = []
    for address in addresses:
        page.goto(address)
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > 360:
            wide.append((address, width))
    assert wide == []
