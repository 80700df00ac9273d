"""A file of unknown columns in a real browser: dropped, mapped, checked and imported."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from annotator.models import ImportJob, Task, User
from annotator.stages.importing import jobs
from tests.browser.conftest import Open
from tests.browser.test_accessible import violations

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("workers"),
]
PAGE = "/projects/talk/data/import/"
ROWS = "a,b,c,topic\nName a **prime**.,7,8,numbers\nName a colour.,red,,art\n"
DROP = """([box, name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name));
  box.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
}"""


def dropped(page: Page, name: str, text: str) -> None:
    box = page.locator("[data-upload]").element_handle()
    page.evaluate(DROP, [box, name, text])


def test_a_csv_of_unknown_columns_is_dropped_mapped_checked_and_imported(open_page: Open, carol: User) -> None:
    page = open_page(carol, viewport={"width": 1440, "height": 900})
    page.goto(PAGE)
    assert violations(page) == []
    dropped(page, "rows.csv", ROWS)
    expect(page.get_by_text("The columns of this file are not known.")).to_be_visible()
    page.wait_for_load_state()  # with the scripts, which listen to what is chosen
    page.get_by_label("Prompt", exact=True).focus()
    page.get_by_label("Prompt", exact=True).select_option("a")
    expect(page.get_by_text("Choose the column of at least one response.")).to_be_visible()
    expect(page.get_by_label("Prompt", exact=True)).to_be_focused()
    page.get_by_label("Response A").select_option("b")
    expect(page.locator(".task strong")).to_have_text("prime")
    page.get_by_label("Response B").select_option("c")
    expect(page.get_by_role("cell", name="c is empty")).to_be_visible()
    expect(page.get_by_label("Response C")).to_be_visible()
    page.get_by_label("Leave out responses whose cell is empty").check()
    expect(page.get_by_role("cell", name="c is empty")).to_have_count(0)
    assert violations(page) == []
    page.get_by_role("button", name="Check without importing").click()
    expect(page.get_by_text("Waiting for the worker.")).to_be_visible()
    jobs.run_waiting()
    expect(page.get_by_role("heading", name="this was a check")).to_be_visible()  # without a click
    assert not Task.objects.exists()
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_text("Waiting for the worker.")).to_be_visible()
    jobs.run_waiting()
    expect(page.get_by_role("heading", name="The import is done")).to_be_visible()
    assert sorted(task.responses.count() for task in Task.objects.all()) == [1, 2]
    page.get_by_role("link", name="Take back").click()
    page.get_by_role("button", name="Take the import back").click()
    expect(page.get_by_text("2 tasks were deleted.")).to_be_visible()
    assert not Task.objects.exists()


def test_it_works_without_scripts(open_page: Open, carol: User, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(ROWS)
    page = open_page(carol, java_script_enabled=False)
    page.goto(PAGE)
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Upload").click()
    page.get_by_label("Prompt", exact=True).select_option("a")
    page.get_by_label("Response A").select_option("b")
    page.get_by_role("button", name="Show the preview").click()
    expect(page.locator(".task strong")).to_have_text("prime")
    page.get_by_label("Keep this mapping").fill("odd")
    page.get_by_role("button", name="Keep", exact=True).click()
    expect(page.get_by_text("The mapping odd is kept with the project.")).to_be_visible()
    page.get_by_role("button", name="Import", exact=True).click()
    jobs.run_waiting()
    assert Task.objects.count() == 2


def test_what_is_wrong_with_a_file_stands_beside_it(open_page: Open, carol: User) -> None:
    page = open_page(carol)
    page.goto(PAGE)
    dropped(page, "empty.csv", "")
    expect(page.get_by_text("The file is empty.")).to_be_visible()
    page.evaluate("document.querySelector('[data-upload]').dataset.most = 3")
    dropped(page, "rows.csv", ROWS)
    expect(page.get_by_text("The file is larger than")).to_be_visible()
    assert not ImportJob.objects.exists()


@pytest.mark.parametrize("width", [360, 1440])
def test_it_fits(open_page: Open, carol: User, width: int) -> None:
    page = open_page(carol, viewport={"width": width, "height": 900}, color_scheme="dark")
    page.goto(PAGE)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    dropped(page, f"{'long' * 40}.csv", f"question,answer_1,answer_2\n{'x' * 500},{'y' * 500},\n?,a,b\n")
    expect(page.get_by_role("heading", name="The first tasks")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert violations(page) == []
