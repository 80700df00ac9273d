"""Nothing that was chosen is lost when the product's own web server is killed in the middle of the work."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import timedelta
from urllib.parse import quote, urlencode

import pytest
from django.conf import LazySettings, global_settings
from django.contrib.sessions.models import Session
from django.db import connection
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, Page, expect

from annotator.models import Annotation, Assignment, Draft, Project, User
from annotator.stages import assignment
from tests.browser.conftest import KEPT, PASSWORD
from tests.browser.test_annotate import rate_everything
from tests.browser.test_losses import box_of, chosen
from tests.browser.test_shift import kept, rate, rated, shown, wait_for_kept, wait_for_ratings
from tests.builders import make_member, make_task, make_user
from tests.servers import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
WAIT_MS = 20_000
WEB = ["-m", "annotator.launch.webserver"]


class Server:
    """The web as `make run` starts it, on the tests' database and always on the same port."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        # DEBUG serves the static files from where they lie; nothing else here depends on it.
        ours = {"DATABASE_URL": database_url(), "PORT": str(self.port), "SECRET_KEY": "k" * 50, "DEBUG": "1"}
        self.process = subprocess.Popen(
            [sys.executable, *WEB], cwd=ROOT, env={**os.environ, **ours}, start_new_session=True
        )
        for _ in range(300):
            if self._answers():
                return
            time.sleep(0.1)
        raise TimeoutError("the web does not answer")

    def _answers(self) -> bool:
        try:
            return bool(urllib.request.urlopen(f"{self.url}/login/", timeout=5).status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def kill(self) -> None:
        """-9, the workers too, whatever they are doing."""
        if self.process:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


def database_url() -> str:
    settings = connection.settings_dict
    login = f"{quote(str(settings['USER']))}:{quote(str(settings['PASSWORD']))}"
    place = urlencode({"host": settings["HOST"], **({"port": settings["PORT"]} if settings["PORT"] else {})})
    return f"postgresql://{login}@/{settings['NAME']}?{place}"


@pytest.fixture
def server(transactional_db: None, settings: LazySettings) -> Iterator[Server]:
    # The password is stored as the server's own settings expect it.
    settings.PASSWORD_HASHERS = global_settings.PASSWORD_HASHERS
    made = Server()
    made.start()
    yield made
    made.kill()


@pytest.fixture
def context(browser: Browser, server: Server) -> Iterator[BrowserContext]:
    made = browser.new_context(base_url=server.url)
    yield made
    made.close()


def log_in(page: Page) -> None:
    page.fill("#id_username", "alice")
    page.fill("#id_password", PASSWORD)
    page.click("main button")


@pytest.fixture
def page(server: Server, context: BrowserContext, talk: Project, alice: User) -> Page:
    make_task(talk, "first")
    make_task(talk, "second", prompt="And the second?")
    opened = context.new_page()
    opened.goto("/projects/talk/annotate/")
    log_in(opened)
    expect(opened.locator(".response")).to_have_count(2)
    opened.wait_for_load_state("networkidle")
    return opened


Says = Callable[[str | re.Pattern[str]], None]


@pytest.fixture
def says(page: Page) -> Says:
    return lambda text: expect(page.locator("#saved")).to_contain_text(text, timeout=WAIT_MS)


def submit(page: Page) -> None:
    page.get_by_role("button", name="Submit and next").click()


def test_what_is_chosen_while_it_is_dead_arrives_when_it_is_back(server: Server, page: Page, says: Says) -> None:
    rate_everything(page, 1, scales=3)
    says("saved")
    server.kill()
    rate_everything(page, 2, scales=6)
    says(KEPT)
    server.start()
    says("saved")
    scores = [value for name, value in Draft.objects.get().form.items() if name != "active_seconds" and value]
    assert scores == ["2"] * 6


def test_a_submission_to_a_dead_server_is_kept_and_works_later(server: Server, page: Page, says: Says) -> None:
    rate_everything(page, 3)
    says("saved")
    server.kill()
    submit(page)
    says("Not submitted: the server does not answer")
    chosen(page, 10)
    server.start()
    says("The server is back")
    submit(page)
    expect(page.get_by_text("And the second?")).to_be_visible(timeout=WAIT_MS)
    assert Annotation.objects.count() == 1


def test_a_reload_after_its_return_brings_everything_back(server: Server, page: Page, says: Says) -> None:
    server.kill()
    rate_everything(page, 2, scales=4)
    box_of(page).check()
    says(KEPT)
    server.start()
    page.reload()
    chosen(page, 4)
    expect(page.get_by_label("Key information is missing").first).to_be_checked()
    says("saved")


def test_a_box_unticked_while_it_is_dead_stays_unticked(server: Server, page: Page, says: Says) -> None:
    rate_everything(page, 2, scales=2)
    box = box_of(page)
    box.check()
    says("saved")
    server.kill()
    box.uncheck()
    says(KEPT)
    server.start()
    page.reload()
    expect(box).not_to_be_checked()
    says("saved")
    page.reload()
    expect(box).not_to_be_checked()


def test_a_browser_that_crashed_finds_its_choices(
    server: Server, page: Page, says: Says, browser: Browser, context: BrowserContext
) -> None:
    server.kill()
    rate_everything(page, 2, scales=4)
    says(KEPT)
    left = context.storage_state()
    context.close()
    server.start()
    again = browser.new_context(base_url=server.url, storage_state=left)
    page = again.new_page()
    page.goto("/projects/talk/annotate/")
    chosen(page, 4)
    expect(page.locator("#saved")).to_contain_text("saved", timeout=WAIT_MS)
    again.close()


def test_the_back_button_finds_the_choices(server: Server, page: Page, says: Says) -> None:
    rate_everything(page, 2, scales=2)
    says("saved")
    server.kill()
    rate_everything(page, 2, scales=5)
    says(KEPT)
    server.start()
    page.goto("/projects/talk/guidelines/")
    page.go_back()
    chosen(page, 5)


def test_a_session_lost_while_it_was_dead_leads_back_to_the_half_done_task(
    server: Server, page: Page, says: Says
) -> None:
    server.kill()
    rate_everything(page, 3, scales=7)
    Session.objects.all().delete()
    server.start()
    says("you are logged out")
    page.reload()
    log_in(page)
    chosen(page, 7)
    says("saved")


def test_logging_in_in_another_tab_is_enough(server: Server, page: Page, says: Says, context: BrowserContext) -> None:
    Session.objects.all().delete()
    rate_everything(page, 3)
    says("you are logged out")
    other = context.new_page()
    other.goto("/login/")
    log_in(other)
    says("saved")
    submit(page)
    expect(page.get_by_text("And the second?")).to_be_visible()


@pytest.mark.parametrize("taken", [False, True])
def test_a_lease_that_ran_out_while_it_was_dead_still_counts(
    server: Server, page: Page, talk: Project, *, taken: bool
) -> None:
    rate_everything(page, 3, scales=5)
    server.kill()
    Project.objects.update(base_annotators=1, max_annotators=1)
    Assignment.objects.update(lease_expires_at=timezone.now() - timedelta(hours=1))
    assignment.expire_all(now=timezone.now())
    if taken:
        bob = make_user("bob")
        make_member(talk, bob)
        assert assignment.claim(talk, bob, now=timezone.now()).assignment
    server.start()
    rate_everything(page, 3)
    submit(page)
    expect(page.get_by_text("Saved at")).to_be_visible(timeout=WAIT_MS)
    assert Annotation.objects.get().ratings.count() == 2


def test_a_server_that_hangs_is_told_from_one_that_answers(server: Server, page: Page, says: Says) -> None:
    assert server.process
    os.killpg(server.process.pid, signal.SIGSTOP)
    rate_everything(page, 3, scales=2)
    says(KEPT)
    os.killpg(server.process.pid, signal.SIGCONT)
    says("saved")


DEAD_SECONDS = 3


def test_a_shift_goes_on_while_it_is_dead(server: Server, context: BrowserContext, talk: Project, alice: User) -> None:
    for number in range(12):
        make_task(talk, prompt=f"Question {number}")
    page = context.new_page()
    page.goto("/projects/talk/annotate/")
    log_in(page)
    wait_for_kept(page, 3)
    server.kill()
    began = time.monotonic()
    done = [rate(page) for _ in range(3)]
    time.sleep(max(DEAD_SECONDS - (time.monotonic() - began), 0))
    assert len(kept(page, "outbox")) == 3
    server.start()
    wait_for_ratings(page, 3)
    assert rated(talk) == done
    wait_for_kept(page, 3)
    assert shown(page) not in done
