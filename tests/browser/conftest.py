"""A real Chromium against a real server. Every page must be silent: no console error, no request to another host."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Dialog, Locator, Page, Playwright, sync_playwright
from playwright.sync_api import Error as PlaywrightError
from pytest_django.live_server_helper import LiveServer

from annotator.launch.install import BROWSERS
from annotator.models import Project, User
from tests.builders import make_member, make_project, make_user

KEPT = re.compile("kept on this device|not sent yet", re.IGNORECASE)
"""What the foot says of what has not reached the server: a sentence, or in a local shift three words."""
PASSWORD = "correct horse battery"
Open = Callable[..., Page]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


class Chromium:
    """The browser of all tests; one that has crashed is started again, as its crash is not the page's doing."""

    def __init__(self, playwright: Playwright) -> None:
        self.playwright = playwright
        self.started: Browser | None = None

    def running(self) -> Browser:
        """A browser that has shown a page: Chromium crashes, where it does, in its first moments."""
        for _ in range(3):
            if self.started is not None and self.started.is_connected():
                break
            self.started = self._launched()
            with suppress(PlaywrightError):
                page = self.started.new_page()
                page.goto("data:text/html,<p>ready</p>")
                page.close()
        assert self.started is not None
        return self.started

    def _launched(self) -> Browser:
        path = next(filter(None, map(shutil.which, BROWSERS)), None)
        return self.playwright.chromium.launch(executable_path=path, args=FLAGS)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    # Playwright's event loop makes Django think it is called from asynchronous code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        started = Chromium(playwright)
        yield started
        started.running().close()


@pytest.fixture
def browser(chromium: Chromium) -> Browser:
    return chromium.running()


class Traffic:
    """The requests of a context that have not been answered yet."""

    def __init__(self, context: BrowserContext) -> None:
        self.requests = 0
        context.on("request", lambda _: self._count(1))
        context.on("requestfinished", lambda _: self._count(-1))
        context.on("requestfailed", lambda _: self._count(-1))

    def _count(self, more: int) -> None:
        self.requests += more

    def wait(self, page: Page) -> None:
        for _ in range(250):
            if not self.requests:
                return
            page.wait_for_timeout(20)


@dataclass
class Complaints:
    """What a page must not do, as it was seen."""

    host: str
    seen: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        page.on("console", lambda message: self._note(message.type == "error", message.text))
        page.on("pageerror", lambda error: self._note(True, str(error)))
        page.on("dialog", self._refuse)
        page.on("request", lambda request: self._note(not request.url.startswith((self.host, "data:")), request.url))

    def _refuse(self, dialog: Dialog) -> None:
        self._note(True, f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note(self, wrong: bool, what: str) -> None:
        # Chromium itself logs each answer of 422, which is how an incomplete form comes back; htmx logs what a newer
        # request has replaced. If one fails, it logs htmx:sendError as well.
        if wrong and "422" not in what and not what.startswith(("htmx:afterRequest", "htmx:sendAbort")):
            self.seen.append(what)


@pytest.fixture
def complaints(live_server: LiveServer) -> Iterator[Complaints]:
    noted = Complaints(live_server.url)
    yield noted
    assert noted.seen == []


@pytest.fixture
def talk(db: None) -> Project:
    return make_project(base_annotators=3)


@pytest.fixture
def carol(talk: Project) -> User:
    """The project's manager, where a file does not say otherwise."""
    user = make_user("carol")
    make_member(talk, user, role="manager")
    return user


@pytest.fixture
def alice(talk: Project) -> User:
    user = make_user("alice")
    user.set_password(PASSWORD)
    user.save()
    make_member(talk, user)
    return user


def session_of(user: User) -> str:
    """A session as a login makes it; the form for it has tests of its own."""
    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value


@pytest.fixture
def open_page(browser: Browser, live_server: LiveServer, complaints: Complaints) -> Iterator[Open]:
    """A page logged in as the user; keywords go to the browser's context."""
    contexts: list[tuple[BrowserContext, Traffic]] = []

    def opened(user: User, **options: object) -> Page:
        context = browser.new_context(base_url=live_server.url, **options)  # type: ignore[arg-type]
        contexts.append((context, Traffic(context)))
        context.add_cookies([{"name": "sessionid", "value": session_of(user), "url": live_server.url}])
        page = context.new_page()
        complaints.watch(page)
        return page

    yield opened
    for context, traffic in contexts:
        for page in context.pages:
            traffic.wait(page)  # a request cut off in the middle breaks the server's thread
            page.goto("about:blank")  # sends what was still to be saved
            page.wait_for_timeout(200)  # and has it stored before the tables are emptied
        context.close()


_PLACE = """(question) => [...document.querySelectorAll(
    "#rating :is(.segments, .likert, .choice, .ranking, .written, .edit)")]
    .filter((one) => (one.closest(".edit") ?? one) === one).indexOf(question)"""


def ask(question: Locator) -> Locator:
    """Brings a question into the dock by its chip, as a mouse does; without scripts all are on the page."""
    chips = question.page.locator(".strip .chip")
    for _ in range(5):
        if "current" in (question.get_attribute("class") or "").split() or not chips.count():
            break
        chips.nth(question.evaluate(_PLACE)).click()
        question.page.wait_for_timeout(30)  # what a key has begun may still lead elsewhere
    return question
