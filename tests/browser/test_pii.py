"""Personal information in a real browser: marked, quoted in a skip, redacted by a manager."""

import pytest
from playwright.sync_api import expect

from annotator.models import PiiSpan, Project, Skip, Task, User
from annotator.stages.pii.scans import scan_all
from tests.browser.conftest import PASSWORD, Open
from tests.browser.test_accessible import violations
from tests.builders import NOW, imported, make_member, make_user, task_row

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
MAIL = "ola.nord@example.com"


@pytest.fixture
def task(talk: Project) -> Task:
    row = task_row("t-1", prompt=f"Mail {MAIL}, she is Ola Nord.\n\nHer formula: $x^2$")
    row["responses"][0]["text"] = f"Dear Ola, is `{MAIL}` right? Call 555-0142."
    imported(talk, row)
    scan_all(now=NOW)
    return Task.objects.get()


@pytest.fixture
def carol(talk: Project) -> User:
    user = make_user("carol", is_staff=True)
    user.set_password(PASSWORD)
    user.save()
    make_member(talk, user, role="manager")
    return user


def marked() -> set[str]:
    spans = PiiSpan.objects.filter(source="annotator").select_related("response", "task")
    return {
        (span.response.text if span.response else span.task.conversation[span.turn or 0]["content"])[
            span.start : span.end
        ]
        for span in spans
    }


SELECT = """quote => {
    const walker = document.createTreeWalker(document.querySelector(".turn.user .prose"), NodeFilter.SHOW_TEXT);
    let node = walker.nextNode();
    while (!node.data.includes(quote)) node = walker.nextNode();
    const at = node.data.indexOf(quote);
    getSelection().setBaseAndExtent(node, at, node, at + quote.length);
}"""


@pytest.mark.parametrize("javascript", [True, False])
def test_what_was_found_is_marked(open_page: Open, alice: User, task: Task, javascript: bool) -> None:
    page = open_page(alice, java_script_enabled=javascript)
    page.goto("/projects/talk/annotate/")
    expect(page.locator("mark.pii")).to_have_text([MAIL, MAIL, "555-0142"], use_inner_text=False)
    assert {mark.get_attribute("title") for mark in page.locator("mark.pii").all()} == {
        "E-mail address",
        "Phone number",
    }
    page.goto("/projects/talk/annotate/?raw=1")
    expect(page.locator("mark.pii")).to_have_count(3)


def test_nothing_is_ticked_beforehand(open_page: Open, alice: User, task: Task) -> None:
    page = open_page(alice)
    page.goto("/projects/talk/annotate/")
    expect(page.locator("input:checked")).to_have_count(0)
    expect(page.locator("#skip [name=spans]")).to_have_count(2)


def test_a_selection_is_marked_by_key_and_skipped_without_a_mouse(open_page: Open, alice: User, task: Task) -> None:
    page = open_page(alice)
    page.goto("/projects/talk/annotate/")
    page.evaluate(SELECT, "Ola Nord")
    page.keyboard.press("m")
    expect(page.locator("#skip-quotes")).to_have_value("Ola Nord\n")
    expect(page.get_by_text("Marked as personal: Ola Nord")).to_be_visible()
    page.locator("#skip-note").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nobody gets this task until a manager has looked at it")).to_be_visible()
    assert marked() == {"Ola Nord"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_marks_and_their_form(open_page: Open, alice: User, task: Task, scheme: str) -> None:
    page = open_page(alice, color_scheme=scheme, viewport={"width": 360, "height": 800})
    page.goto("/projects/talk/annotate/")
    page.locator("#skip > summary").click()
    page.get_by_label("Personal information", exact=True).check()
    faults = violations(page)
    page.get_by_label("one per line").fill("Kari")
    page.get_by_role("button", name="Skip", exact=True).click()
    expect(page.get_by_role("alert")).to_be_focused()
    assert faults + violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_without_a_selection_the_button_says_what_to_do(open_page: Open, alice: User, task: Task) -> None:
    page = open_page(alice)
    page.goto("/projects/talk/annotate/")
    page.keyboard.press("m")
    expect(page.get_by_text("Select the personal information in the text first.")).to_be_visible()


def test_a_skip_with_marks_without_javascript(open_page: Open, alice: User, task: Task) -> None:
    page = open_page(alice, java_script_enabled=False)
    page.goto("/projects/talk/annotate/")
    page.locator("#skip > summary").click()
    page.get_by_label("Personal information", exact=True).check()
    page.get_by_label(MAIL).check()
    page.get_by_label("one per line").fill("she is Ola Nord\nKari")
    page.get_by_label("Note (optional)").first.fill("Two of them")
    page.get_by_role("button", name="Skip", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("“Kari” is not in the text. Copy each passage")
    expect(page.get_by_label("one per line")).to_have_value("she is Ola Nord\nKari")
    expect(page.get_by_label("Note (optional)").first).to_have_value("Two of them")
    expect(page.get_by_label(MAIL)).to_be_checked()
    page.get_by_label("one per line").fill("she is Ola Nord")
    page.get_by_role("button", name="Skip", exact=True).click()
    expect(page.get_by_text("Nobody gets this task until a manager has looked at it")).to_be_visible()
    assert marked() == {MAIL, "she is Ola Nord"}
    assert Skip.objects.get().note == "Two of them"


def test_a_manager_sees_redacts_and_the_text_is_gone(open_page: Open, alice: User, carol: User, task: Task) -> None:
    page = open_page(alice)
    page.goto("/projects/talk/annotate/")
    page.locator("#skip > summary").click()
    page.get_by_label("Personal information", exact=True).check()
    page.get_by_label("one per line").fill("Ola Nord")
    page.get_by_role("button", name="Skip", exact=True).click()
    expect(page.get_by_text("Nobody gets this task until a manager has looked at it")).to_be_visible()
    admin = open_page(carol)
    admin.goto(f"/projects/talk/review/{task.public_id}/")
    admin.get_by_role("link", name="Redact").click()
    expect(admin.locator("[type=checkbox]:checked")).to_have_count(3)
    expect(admin.get_by_text("Mail [e-mail address removed], she is [personal information removed].")).to_be_visible()
    admin.get_by_label("I understand that the original text is permanently lost.").check()
    admin.get_by_role("button", name="Erase permanently").click()
    expect(admin.get_by_text("t-1: redacted, back in the queue.")).to_be_visible()
    expect(admin.get_by_text("Earlier snapshots that contain the text")).to_be_visible()
    admin.goto(f"/projects/talk/data/tasks/{task.public_id}/")
    assert MAIL not in admin.content()
    assert "Ola Nord" not in admin.content()
    assert MAIL not in str(Task.objects.values())
