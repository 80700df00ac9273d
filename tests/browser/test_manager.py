"""A manager takes a project from an empty installation to a dataset and a model, by mouse and keyboard alone.

Nothing is done by REST, the admin or the ORM, which only looks at what has become of it.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.management import call_command
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from annotator.models import Project, Task
from rewards.models import RewardModel
from tests.browser.conftest import Complaints, Traffic
from tests.builders import make_rubrics
from tests.celery_workers import wait_for, worker

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
PASSWORD = "tall order 98 x"
RUBRIC = {
    "Tone": ("Rude", "Neutral", "Friendly"),
    "Accuracy": ("Wrong", "Mostly wrong", "Half right", "Mostly right", "Right"),
    "Overall": ("Useless", "Poor", "Weak", "Fair", "Good", "Very good", "Excellent"),
}
TOPICS = ("rain", "wind", "snow", "fog", "hail", "frost", "heat", "storms", "clouds", "tides", "dew", "ice")
DISPUTED = "tides"
GOOD = "water and air"
"""Stands in good answers, which are rated well."""


@pytest.fixture
def newcomer(browser: Browser, live_server: LiveServer, complaints: Complaints) -> Iterator[Callable[[], Page]]:
    """A page in a browser of its own in which nobody is logged in."""
    contexts: list[tuple[BrowserContext, Traffic]] = []

    def opened() -> Page:
        context = browser.new_context(base_url=live_server.url, viewport={"width": 1440, "height": 900})
        context.set_default_timeout(20_000)
        contexts.append((context, Traffic(context)))
        page = context.new_page()
        complaints.watch(page)
        return page

    yield opened
    for context, traffic in contexts:
        for page in context.pages:
            traffic.wait(page)
            page.goto("about:blank")
            page.wait_for_timeout(200)
        context.close()


@pytest.fixture
def workers(tmp_path: Path, settings: LazySettings) -> Iterator[None]:
    """The product's background workers."""
    with ExitStack() as stack:
        for queue in ("light", "train,score"):
            # With the server's key, as tasks and responses have numbers that are made with it.
            stack.enter_context(worker(queue, tmp_path, log=queue.replace(",", "-"), SECRET_KEY=settings.SECRET_KEY))
        yield


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation as it is after `manage.py createsuperuser`."""
    make_rubrics()
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", PASSWORD)
    call_command("createsuperuser", interactive=False, username="carol", email="carol@example.org", verbosity=0)


def conversations() -> str:
    """A file with columns of its own, and three rows that cannot be imported."""
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["topic", "question", "first text", "second text", "written by"])
    rows.writerow(["nothing", "", "An answer to nothing.", "Another one.", "large"])
    for number, topic in enumerate(TOPICS):
        good = f"{topic.capitalize()} is what water and air do when the sun warms or cools them."
        bad = f"{topic.capitalize()} bores me. Ask somebody else, and leave me alone with such questions."
        # One is longer as often as the other: a model has to read them.
        more = " That is all there is to say about it."
        answers = [good + more, bad] if number % 2 else [good, bad + more]
        rows.writerow([topic, f"What is {topic}?", *answers, "large"])
    rows.writerow(["silence", "What is silence?", "The absence of sound.", "", "large"])
    rows.writerow(["echo", "What is an echo?", "", "A sound that returns.", "large"])
    return text.getvalue()


@dataclass(frozen=True)
class Rater:
    """Somebody who rates good answers well, and finds the disputed one as good as `disputed`."""

    page: Page
    disputed: str
    by_mouse: bool = False

    def rate_everything(self) -> int:
        rated = 0
        while True:
            expect(self.page.locator("#submit-rating, .empty").first).to_be_visible()
            if self.page.locator(".empty").count():
                return rated
            self.rate()
            rated += 1

    def rate(self) -> None:
        question = self.page.locator(".conversation").inner_text()
        texts = self.page.locator(".sheet .response").all_inner_texts()
        first_is_good = GOOD in texts[0]
        good = ["3", "5", self.disputed if f"What is {DISPUTED}?" in question else "7"]
        bad = ["1", "1", "1"]
        keys = [*(good if first_is_good else bad), *(bad if first_is_good else good), "2" if first_is_good else "6"]
        if self.by_mouse:
            for group, key in zip(self.page.locator("#rating :is(.likert, .choice)").all(), keys, strict=True):
                group.locator("label").nth(int(key) - 1).click()
        else:
            for key in keys:
                self.page.keyboard.press(key)
        expect(self.page.get_by_text("7 of 7 answered")).to_be_visible()
        heading = self.page.locator("#work h1").element_handle()
        if self.by_mouse:
            self.page.get_by_role("button", name="Submit and next").click()
        else:
            self.page.keyboard.press("Enter")
        self.page.wait_for_function("heading => !heading.isConnected", arg=heading)


@pytest.mark.xdist_group("training")
@pytest.mark.usefixtures("workers", "empty")
def test_a_manager_runs_a_project(newcomer: Callable[[], Page], tmp_path: Path) -> None:
    carol = newcomer()
    log_in(carol)
    create_the_project(carol)
    write_the_rubric(carol)
    choose_what_decides(carol)
    import_conversations(carol, tmp_path)
    links = invite(carol, "Alice", "Bob", "Erin")
    alice = join(newcomer(), links[0], "alice")
    report(alice)
    decide_on_the_reported(carol)
    assert Rater(alice, disputed="7").rate_everything() == 12
    see_progress(carol, complete=0, wanted=12)
    assert Rater(join(newcomer(), links[1], "bob"), disputed="1").rate_everything() == 12
    see_progress(carol, complete=11, wanted=1)
    assert Rater(join(newcomer(), links[2], "erin"), disputed="4", by_mouse=True).rate_everything() == 1
    see_progress(carol, complete=12, wanted=0)
    settle_the_dispute(carol)
    train(carol, seed=1, outcome="waiting for your decision")
    promote(carol, 1)
    train(carol, seed=2, outcome="not promoted")
    promote(carol, 2, anyway=True)
    compare(carol)
    roll_back(carol)
    export(carol)


def log_in(page: Page) -> None:
    page.goto("/")
    page.get_by_label("Username").fill("carol")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Create your first project")).to_be_visible()


def create_the_project(page: Page) -> None:
    page.get_by_role("link", name="New project").click()
    page.get_by_label("Name", exact=True).fill("Weather")
    page.get_by_label("Purpose").fill("Teach a model to explain the weather.")
    page.get_by_label("My own numbers").check()
    page.get_by_label("Annotators for each task").fill("2")
    page.get_by_label("Maximum annotators per task").fill("3")
    page.get_by_label("Annotations kept").fill("2")
    page.get_by_label("Tasks you plan").fill("12")
    expect(page.locator("#estimate")).to_contain_text("24")
    page.locator("#id_guidelines").fill("# What counts\n\nAn answer that a child understands.")
    page.get_by_role("button", name="Create the project").click()
    expect(page.get_by_role("heading", name="What to do first")).to_be_visible()


def write_the_rubric(page: Page) -> None:
    page.get_by_role("link", name="Guidelines and rubric").click()
    page.get_by_role("link", name="Rubric", exact=True).click()
    for left in range(4, -1, -1):
        page.get_by_role("button", name="Remove").first.click()
        expect(page.locator(".attribute")).to_have_count(left)
    page.get_by_label("Name of the rubric").fill("Explanations")
    for number, (name, levels) in enumerate(RUBRIC.items()):
        page.get_by_role("button", name="Add an attribute").click()
        attribute = page.locator(".attribute").nth(number)
        attribute.get_by_label("Name").fill(name)
        attribute.get_by_label("Question or description").fill(f"How good is its {name.lower()}?")
        attribute.get_by_label("Levels").fill("\n".join(levels[:-1]))
        attribute.get_by_label("Levels").press_sequentially(f"\n{levels[-1]}")
    expect(page.locator("#preview")).to_contain_text("Excellent")
    page.get_by_role("button", name="Check the change").click()
    expect(page.get_by_role("heading", name="What version 2 changes")).to_be_visible()
    page.get_by_role("button", name="Publish version 2").click()
    expect(page.get_by_text("Version 2 is in force.").first).to_be_visible()
    rubric = Project.objects.get().rubric
    assert {one.name: tuple(one.levels) for one in rubric.attributes.all()} == RUBRIC


def choose_what_decides(page: Page) -> None:
    """The widest scale decides on further annotators, and half of the prompts are held out."""
    tab(page, "Settings")
    page.get_by_label("Attribute whose spread decides").select_option("Overall")
    page.get_by_label("Ask more above a spread of").fill("2")
    page.get_by_label("Share of prompts held out").fill("0.5")
    page.get_by_label("Promote a better model automatically").uncheck()
    page.get_by_role("button", name="Save the settings").click()
    expect(page.get_by_text("The settings are saved.")).to_be_visible()
    project = Project.objects.get()
    assert (project.spread_attribute, project.escalate_above) == ("overall", 2)


def tab(page: Page, name: str) -> None:
    page.locator("nav.tabs").get_by_role("link", name=name, exact=True).click()


def import_conversations(page: Page, folder: Path) -> None:
    file = folder / "conversations.csv"
    file.write_text(conversations())
    tab(page, "Data")
    page.get_by_role("link", name="Import", exact=True).click()
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_text("The columns of this file are not known.")).to_be_visible()
    page.wait_for_load_state("networkidle")  # until the page's scripts listen
    page.get_by_label("Prompt", exact=True).select_option("question")
    page.get_by_label("Response A").select_option("first text")
    expect(page.get_by_text("What is rain?")).to_be_visible()
    page.get_by_label("Response B").select_option("second text")
    expect(page.get_by_role("cell", name="question is empty")).to_be_visible()
    page.get_by_text("Id, language, priority and the rest").click()
    page.get_by_label("Task id").select_option("topic")
    expect(page.locator("summary").get_by_text("rain")).to_be_visible()
    page.get_by_label("Keep this mapping with the project, as").fill("weather")
    page.get_by_role("button", name="Keep", exact=True).click()
    expect(page.get_by_text("The mapping weather is kept with the project.")).to_be_visible()
    page.get_by_role("button", name="Check without importing").click()
    expect(page.get_by_role("heading", name="Nothing is imported yet: this was a check")).to_be_visible(timeout=30_000)
    assert not Task.objects.exists()
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("heading", name="The import is done")).to_be_visible(timeout=30_000)
    errors = page.get_by_role("region", name="Refused rows")
    expect(errors.get_by_role("row")).to_have_count(4)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as CSV").click()
    assert len(download.value.path().read_text().splitlines()) == 4
    assert Task.objects.count() == 12


def invite(page: Page, *names: str) -> list[str]:
    tab(page, "People")
    page.get_by_role("link", name="Invite people").click()
    links = []
    for name in names:
        page.get_by_label("For whom").fill(name)
        page.get_by_role("button", name="Make the link", exact=True).click()
        links.append(page.locator("pre").inner_text())
        page.get_by_role("link", name="Back to the invitations").click()
    return links


def join(page: Page, link: str, name: str) -> Page:
    page.goto(link)
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password, once more").fill(PASSWORD)
    page.get_by_role("button", name="Create the account and join").click()
    expect(page.get_by_text("Welcome! You have joined Weather.")).to_be_visible()
    page.get_by_role("link", name="Rate Weather").click()
    page.get_by_role("button", name="I have read the guidelines. Start rating").click()
    expect(page.locator(".sheet")).to_have_count(2)
    page.wait_for_load_state()
    return page


def report(page: Page) -> None:
    """Reports the task, by the mouse."""
    page.locator("#report > summary").click()
    page.get_by_label("Illegal").check()
    page.locator("#report").get_by_label("Note (optional)").fill("It may be dangerous.")
    with page.expect_response("**/report/"):
        page.get_by_role("button", name="Report", exact=True).click()
    expect(page.locator(".sheet")).to_have_count(2)


def decide_on_the_reported(page: Page) -> None:
    tab(page, "Overview")
    expect(page.locator(".tile").filter(has_text="Waiting for a reviewer")).to_contain_text("1 of them in quarantine")
    tab(page, "Data")
    page.get_by_role("link", name="Quarantine", exact=True).click()
    page.get_by_role("link", name="Look at it").click()
    expect(page.get_by_text("It may be dangerous.")).to_be_visible()
    page.get_by_role("button", name="Release").click()
    expect(page.get_by_text("No task is in quarantine.")).to_be_visible()
    assert not Task.objects.filter(state=Task.State.QUARANTINED).exists()


def see_progress(page: Page, *, complete: int, wanted: int) -> None:
    see(page, "Tasks complete", str(complete))
    see(page, "Annotations still wanted", str(wanted))


def see(page: Page, title: str, value: str) -> None:
    tile = page.locator(".tile").filter(has_text=title).locator("dd").first
    watch_the_overview(page, lambda: tile.inner_text() == value, what=f"{value} at {title}")


def watch_the_overview(page: Page, condition: Callable[[], bool], *, what: str) -> None:
    """Looks at it until it is as wanted: its figures may be a second old."""

    def looked() -> bool:
        tab(page, "Overview")
        expect(page.locator(".tile").first).to_be_visible()
        found = condition()
        page.wait_for_timeout(0 if found else 1_000)
        return found

    wait_for(looked, seconds=30, what=what)


def settle_the_dispute(page: Page) -> None:
    see(page, "Waiting for a reviewer", "1")
    tab(page, "Review")
    expect(page.locator("table.queue tbody tr")).to_have_count(1)
    page.wait_for_load_state()  # before its scripts have run nobody listens to keys
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name=f"Task {DISPUTED}")).to_be_visible()
    page.wait_for_load_state()
    # Reviewers see the responses in the file's order. A is better, as somebody made a mistake.
    for key in "356" + "111" + "2" + "3":
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"Task {DISPUTED} is settled")).to_be_visible()
    tab(page, "Data")
    expect(page.get_by_role("row").filter(has_text=DISPUTED)).to_contain_text("A 6 B 1 A is better")


def train(page: Page, *, seed: int, outcome: str) -> None:
    tab(page, "Models")
    page.get_by_role("link", name="Start a training run").click()
    page.get_by_label("How to learn").select_option("quick")
    page.get_by_text("All other settings").click()
    page.get_by_label("Seed").fill(str(seed))
    if (nothing_new := page.get_by_label("Start a run although nothing new has been labelled")).count():
        nothing_new.check()
    page.get_by_role("button", name="Start the run").click()
    expect(page.get_by_role("heading", level=1, name="Run ")).to_be_visible()
    # Without a click: the page watches the run.
    expect(page.get_by_role("heading", name="On the held-out prompts")).to_be_visible(timeout=120_000)
    expect(page.locator("#outcome")).to_have_text(outcome)


def promote(page: Page, version: int, *, anyway: bool = False) -> None:
    page.get_by_role("link", name=f"Its model: version {version}").click()
    expect(page.locator(".misses li")).to_have_count(10)
    if anyway:
        page.get_by_label("I have read this").check()
    page.get_by_role("button", name="Promote").click()
    expect(page.get_by_text(f"Version {version} is the champion now.")).to_be_visible()


def compare(page: Page) -> None:
    tab(page, "Models")
    page.get_by_role("link", name="Compare", exact=True).click()
    expect(page.get_by_role("columnheader", name="Version 2")).to_contain_text("Champion")


def roll_back(page: Page) -> None:
    tab(page, "Models")
    page.get_by_role("link", name="Roll back to version 1").click()
    page.get_by_role("button", name="Roll back to version 1").click()
    expect(page.get_by_text("Version 1 is the champion now.")).to_be_visible()
    assert RewardModel.objects.get(is_champion=True).version == 1


def export(page: Page) -> None:
    tab(page, "Overview")
    page.get_by_role("link", name="Export the labels").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    rows = [json.loads(line) for line in download.value.path().read_text().splitlines()]
    assert len(rows) == 24
    (settled,) = (row for row in rows if DISPUTED in row["prompt"] and GOOD in row["response"])
    assert {key: settled[key] for key in ("tone", "accuracy", "overall")} == {"tone": 2, "accuracy": 4, "overall": 5}
    see(page, "Model in use", "Version 1")
    first_steps = page.get_by_role("heading", name="What to do first")
    watch_the_overview(page, lambda: not first_steps.count(), what="the end of the first steps")
