"""The rating page stands still, and nothing that was typed on it goes when the server does not answer."""

import json
import re

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import Page, expect

from annotator.models import Assignment, Project, Report, User
from tests.browser.conftest import KEPT, PASSWORD, Complaints, Open, ask
from tests.browser.test_accessible import violations
from tests.browser.test_annotate import rate_everything
from tests.builders import imported, task_row
from tests.celery_workers import wait_for
from tests.shared_data import needs_shared, shared

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
STORED = re.compile("Saved at|^sent ")
LAPTOP = {"width": 1366, "height": 680}
CODE = f"Look:\n\n```python\nvalue = {' + '.join(f'number_{n}' for n in range(90))}\n```\n\nDone."
TABLE = "|" + "a wide heading|" * 30 + "\n|" + "---|" * 30 + "\n|" + "cell|" * 30
SHIFTS = """() => {
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const moved = entry.sources.map(({ node }) => node?.outerHTML?.slice(0, 80) ?? String(node?.textContent));
      if (!entry.hadRecentInput) window.shifts.push([entry.value, ...moved]);
    }
  }).observe({ type: "layout-shift", buffered: false });
}"""


@pytest.fixture
def page(open_page: Open, talk: Project, alice: User) -> Page:
    for name in ("first", "second", "third"):
        responses = [{"text": f"{name} {number}. {CODE}\n\n$x^2$"} for number in range(2)]
        imported(talk, task_row(name, prompt=f"What is {name}?\n\n{CODE}") | {"responses": responses})
    opened = open_page(alice, viewport=LAPTOP)
    opened.goto("/projects/talk/annotate/")
    opened.wait_for_load_state("networkidle")
    return opened


def test_nothing_moves_while_tasks_are_rated(page: Page, complaints: Complaints) -> None:
    page.evaluate(SHIFTS)
    for _ in range(2):
        for level in "3415243215":
            page.keyboard.press(level)
        wait_for(lambda: "saved" in (page.locator("#saved").text_content() or ""), what="the draft")
        page.wait_for_timeout(700)
        before = page.locator(".bar").bounding_box()
        page.context.set_offline(True)
        ask(page.locator(".likert").first).locator("[type=radio]").first.check()
        expect(page.locator("#saved")).to_contain_text(KEPT)
        page.wait_for_timeout(700)
        assert page.locator(".bar").bounding_box() == before
        page.context.set_offline(False)
        wait_for(lambda: "saved" in (page.locator("#saved").text_content() or ""), what="the draft")
        page.keyboard.press("Control+Enter")
        expect(page.get_by_text(STORED)).to_be_visible()
        page.wait_for_timeout(700)
    assert page.evaluate("window.shifts") == []
    complaints.seen.clear()  # Chromium logs each request that the dropped line refused


@pytest.mark.parametrize("way", ["skip", "report"])
def test_a_skip_or_report_without_a_line_is_kept_and_goes_later(page: Page, complaints: Complaints, way: str) -> None:
    """Where nothing is kept ahead."""
    Project.objects.update(tasks_ahead=0)
    page.reload()
    rate_everything(page, 2, scales=2)
    page.locator(f"#{way} > summary").click()
    page.locator(f"#{way} [type=radio]").last.check()
    page.locator(f"#{way} [name=note]").fill("A reason")
    page.context.set_offline(True)
    page.locator(f"#{way} form button").last.click()
    expect(page.locator("#saved")).to_contain_text("Not done: the server does not answer")
    assert page.locator(f"#{way} [name=note]").input_value() == "A reason"
    assert page.locator(f"#{way} [type=radio]").last.is_checked()
    page.context.set_offline(False)
    page.locator(f"#{way} form button").last.click()
    expect(page.get_by_role("button", name=f"Undo the {way}")).to_be_visible()
    page.get_by_role("button", name=f"Undo the {way}").click()
    expect(page.locator("#rating [type=radio]:checked")).to_have_count(2)
    assert not Report.objects.exists()
    assert set(Assignment.objects.values_list("state", flat=True)) == {Assignment.State.LEASED}
    complaints.seen.clear()  # Chromium logs each request that the dropped line refused


def test_a_link_without_a_line_leads_nowhere(page: Page, complaints: Complaints) -> None:
    rate_everything(page, 2)
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_text(STORED)).to_be_visible()
    rate_everything(page, 1, scales=1)
    page.context.set_offline(True)
    for link in ("Previous", "Your work"):
        if link == "Your work":
            page.get_by_role("button", name="Menu").click()
        page.get_by_role("link", name=link).click()
        expect(page.locator("#saved")).to_contain_text("Not done")
    expect(page.locator("#rating [type=radio]:checked")).to_have_count(1)
    page.context.set_offline(False)
    page.get_by_role("link", name="Previous").click()
    expect(page.get_by_role("heading", name="Change your rating")).to_be_visible()
    complaints.seen.clear()


def test_the_login_page_says_that_the_answers_are_kept(page: Page) -> None:
    """Where the dialog does not come first: on a page that is loaded."""
    rate_everything(page, 4)
    wait_for(lambda: "saved" in (page.locator("#saved").text_content() or ""), what="the draft")
    Session.objects.all().delete()
    page.reload()
    expect(page.get_by_text("The answers that you have given are kept")).to_be_visible()
    page.fill("#id_username", "alice")
    page.fill("#id_password", PASSWORD)
    page.click("main button")
    expect(page.locator("#rating [type=radio]:checked")).to_have_count(10)


def test_code_scrolls_by_keys_and_its_button_covers_nothing(page: Page) -> None:
    block = page.locator(".response pre").first
    button = page.locator(".response .code .copy").first.bounding_box()
    line = block.locator("code").bounding_box()
    assert button is not None
    assert line is not None
    assert button["y"] + button["height"] <= line["y"] + 1
    block.focus()
    page.keyboard.press("ArrowRight")
    wait_for(lambda: block.evaluate("block => block.scrollLeft"), what="the rest of the line")
    assert page.locator(".prose pre").count() == page.locator(".code .copy").count()
    assert violations(page) == []


def test_a_broken_formula_and_a_wide_table_are_no_faults(open_page: Open, talk: Project, alice: User) -> None:
    text = f"A \\[ \\frac{{1}} \\] and \\[ x^2 \\], $\\undefined{{$.\n\n{TABLE}"
    imported(talk, task_row("odd") | {"responses": [{"text": text}]})
    page = open_page(alice)
    page.goto("/projects/talk/annotate/")
    page.wait_for_load_state("networkidle")
    expect(page.locator(".response .katex")).to_have_count(1)
    assert violations(page) == []


@needs_shared("oasst_tasks.jsonl")
@pytest.mark.parametrize("with_code", [True, False])
def test_real_tasks_have_no_faults(open_page: Open, talk: Project, alice: User, with_code: bool) -> None:
    rows = [json.loads(line) for line in shared("oasst_tasks.jsonl").read_text().splitlines()]
    wanted = [row for row in rows if ("```" in json.dumps(row)) == with_code][:3]
    assert imported(talk, *wanted).created == 3
    page = open_page(alice)
    for _ in wanted:
        page.goto("/projects/talk/annotate/")
        page.wait_for_load_state("networkidle")
        assert violations(page) == []
        page.locator("#skip > summary").click()
        page.locator("#skip [value=other]").check()
        page.locator("#skip form button").last.click()
        page.wait_for_url("**skipped=*")
