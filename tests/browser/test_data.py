"""A manager in the tab Data: finds a task, reads its story, decides about a quarantine, downloads an export."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from annotator.models import ExportJob, Project, Task, User
from annotator.reading.search.word_index import take_words
from annotator.stages import annotation
from annotator.stages.pii.scans import scan_all
from tests.browser.conftest import Open
from tests.browser.test_accessible import violations
from tests.builders import NOW, claimed, imported, make_member, make_user, rate, task_row

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
MAIL = "ola.nord@example.com"


@pytest.fixture
def carol(talk: Project, alice: User) -> User:
    """A manager of two tasks: one that is rated, and one that alice has set aside."""
    imported(talk, task_row("t-1", prompt="Where is Oslo?"), task_row("t-2", prompt=f"Write to {MAIL}, please."))
    for name in ("bob", "erin", "frank"):
        rate(talk, make_user(name))
    annotation.skip(claimed(talk, alice).pk, reason="pii", note="An address.", now=NOW)
    scan_all(now=NOW)
    take_words()
    manager = make_user("carol")
    make_member(talk, manager, role="manager")
    return manager


def quarantined() -> Task:
    return Task.objects.get(state=Task.State.QUARANTINED)


@pytest.mark.parametrize("javascript", [True, False])
def test_a_task_is_found_and_its_story_read(open_page: Open, carol: User, javascript: bool) -> None:
    page = open_page(carol, java_script_enabled=javascript)
    page.goto("/projects/talk/data/")
    expect(page.get_by_role("link", name="Write to")).to_be_visible()
    page.get_by_label("Words in the texts").fill("oslo -bergen")
    page.get_by_label("State").select_option("Complete")
    page.get_by_role("button", name="Find").click()
    page.wait_for_url("**/data/?q=oslo+-bergen&state=complete")
    expect(page.get_by_text("1 task.")).to_be_visible()
    page.get_by_role("link", name="Where is Oslo?").click()
    expect(page.get_by_role("heading", name="Task t-1")).to_be_visible()
    expect(page.get_by_text("3 of 3 ratings are kept.")).to_be_visible()
    told = page.get_by_role("list").filter(has_text="Imported").get_by_role("listitem")
    expect(told.first).to_contain_text("Imported")
    expect(told.filter(has_text="Rated")).to_have_count(3)


def test_a_quarantine_is_decided_from_the_list(open_page: Open, carol: User) -> None:
    page = open_page(carol, viewport={"width": 360, "height": 800})
    page.goto("/projects/talk/data/")
    page.get_by_role("link", name="Quarantine").click()
    expect(page.get_by_text("An address.")).to_be_visible()
    assert violations(page) == []
    task = quarantined()
    page.get_by_role("button", name="Release").click()
    expect(page.get_by_text("t-2: back in the queue.")).to_be_visible()
    expect(page.get_by_text("No task is in quarantine.")).to_be_visible()
    task.refresh_from_db()
    assert task.state == Task.State.OPEN


@pytest.mark.parametrize("javascript", [True, False])
def test_personal_information_is_erased_after_a_preview(open_page: Open, carol: User, javascript: bool) -> None:
    page = open_page(carol, java_script_enabled=javascript)
    page.goto("/projects/talk/data/quarantine/")
    task = quarantined()
    page.get_by_role("link", name="Look at it").click()
    expect(page.locator("mark.pii").first).to_have_text(MAIL, use_inner_text=False)
    assert not javascript or violations(page) == []
    expect(page.get_by_text("Write to [e-mail address removed], please.")).to_be_visible()
    page.get_by_label("More to replace").fill("please")
    page.get_by_role("button", name="Show the preview again").click()
    expect(page.get_by_text("[personal information removed]").first).to_be_visible()
    page.get_by_label("I understand").check()
    page.get_by_role("button", name="Erase permanently").click()
    expect(page.get_by_text("t-2: redacted, back in the queue.")).to_be_visible()
    task.refresh_from_db()
    text = task.conversation[0]["content"]
    assert text == "Write to [e-mail address removed], [personal information removed]."


def test_an_export_is_looked_at_and_downloaded(open_page: Open, carol: User, tmp_path: Path) -> None:
    page = open_page(carol)
    page.goto("/projects/talk/data/export/")
    page.get_by_label("annotations").check()
    page.get_by_label("Format").select_option("CSV")
    page.get_by_role("button", name="Show the preview").click()
    expect(page.get_by_text("6 rows,")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "talk-annotations.csv"
    download.value.save_as(tmp_path / "file.csv")
    lines = (tmp_path / "file.csv").read_text().splitlines()
    assert len(lines) == 7
    assert lines[0].startswith("task,response,annotator,")


def test_a_file_in_the_background_is_what_is_chosen_now_and_not_what_was_previewed(
    open_page: Open, carol: User, workers: None
) -> None:
    page = open_page(carol)
    page.goto("/projects/talk/data/export/?layout=annotations&format=jsonl")
    page.get_by_label("disagreements").check()
    page.get_by_label("Format").select_option("CSV")
    page.get_by_role("button", name="Write this to a file in the background").click()
    expect(page.locator("#files")).to_contain_text("disagreements")
    assert ExportJob.objects.values_list("layout", "format").get() == ("disagreements", "csv")
