"""How texts are shown: copied, as they were written, folded, from right to left, very long."""

from collections.abc import Callable
from time import monotonic

import pytest
from playwright.sync_api import Page, expect

from annotator.models import Project, Task, User
from tests.browser.conftest import Open
from tests.builders import make_task

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
Shown = Callable[..., Page]


@pytest.fixture
def shown(open_page: Open, talk: Project, alice: User) -> Shown:
    """The rating page of a task with these turns, the first response as given."""

    def show(response: str = "Fine.", *, turns: tuple[str, ...] = (), path: str = "", **options: object) -> Page:
        task = make_task(talk)
        roles = ("user", "assistant", "user")[-len(turns) :]
        if turns:
            task.conversation = [{"role": role, "content": text} for role, text in zip(roles, turns, strict=True)]
            task.save(update_fields=["conversation"])
        Task.objects.get().responses.update(text=response)
        page = open_page(alice, **options)
        page.goto(f"/projects/talk/annotate/{path}")
        return page

    return show


def test_a_code_block_is_copied(shown: Shown) -> None:
    page = shown("```python\ndef f():\n    return 1\n```", permissions=["clipboard-read", "clipboard-write"])
    button = page.get_by_role("button", name="Copy").first
    button.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "def f():\n    return 1\n"


SOURCE = "\n# Head\n\n<b>x</b>  and\ttab &amp; $x$\n\n\n```\ncode\n```\n "


@pytest.mark.parametrize("javascript", [True, False])
def test_the_source_is_shown_exactly(shown: Shown, javascript: bool) -> None:
    page = shown(SOURCE, java_script_enabled=javascript)
    expect(page.locator(".response .source")).to_have_count(0)
    page.get_by_text("Source").click()
    source = page.locator(".response .source").first
    expect(source).to_be_visible()
    assert source.text_content() == SOURCE
    expect(page.locator(".response .prose").first).to_be_hidden()


def test_the_source_stays_shown_for_the_next_task(shown: Shown, talk: Project) -> None:
    page = shown("*one*")
    make_task(talk, "next", prompt="*And* the second?")
    page.keyboard.press("v")
    page.get_by_text("Source").wait_for()
    for _ in range(10):
        page.keyboard.press("4")
    page.keyboard.press("Enter")
    expect(page.locator(".conversation .source")).to_have_text("*And* the second?")
    page.keyboard.press("v")
    expect(page.locator(".conversation .prose")).to_have_text("And the second?")


def test_long_earlier_turns_fold_and_the_last_does_not(shown: Shown) -> None:
    page = shown(turns=("word " * 400, "short", "last " * 400))
    expect(page.locator(".folded")).to_have_count(1)
    assert page.locator(".turn.user").first.bounding_box()["height"] < 320  # type: ignore[index]
    page.get_by_role("button", name="Show all").click()
    expect(page.locator(".folded")).to_have_count(0)
    page.get_by_role("button", name="Show less").click()
    expect(page.locator(".folded")).to_have_count(1)


def test_nothing_folds_without_javascript(shown: Shown) -> None:
    page = shown(turns=("word " * 400, "short", "last"), java_script_enabled=False)
    assert page.locator(".turn.user").first.bounding_box()["height"] > 320  # type: ignore[index]


def test_right_to_left_text_stands_at_the_right(shown: Shown) -> None:
    page = shown("مرحبا\n\n- أولا\n\n> اقتباس\n\n| أ | ب |\n|---|---|\n| ١ | ٢ |\n\n```\ncode\n```\n\nEnglish.")
    prose = page.locator(".response .prose").first
    for selector in ("p >> nth=0", "ul", "blockquote", "table"):
        assert prose.locator(selector).evaluate("each => getComputedStyle(each).direction") == "rtl"
    assert prose.locator("pre").evaluate("each => getComputedStyle(each).direction") == "ltr"
    first, last = (prose.locator("> p").nth(at).evaluate(TEXT_LEFT) for at in (0, -1))
    assert first > last


TEXT_LEFT = (
    "each => { const range = new Range(); range.selectNodeContents(each); return range.getBoundingClientRect().left }"
)


@pytest.mark.parametrize("layout", ["below", "beside"])
def test_a_hundred_thousand_characters_can_be_rated(shown: Shown, layout: str) -> None:
    """The bound is generous: what it must notice is a page that hangs."""
    User.objects.update(layout=layout)
    page = shown(("word " * 60 + "\n\n") * 300 + "x" * 10_000)
    before = monotonic()
    page.reload()
    for _ in range(10):
        page.keyboard.press("4")
    expect(page.locator("#rating :checked")).to_have_count(10)
    assert monotonic() - before < 8
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_formulas_of_the_next_task_are_set_too(shown: Shown, talk: Project) -> None:
    page = shown("$x$")
    expect(page.locator(".response .katex").first).to_be_visible()
    make_task(talk, "next", prompt="What is $y^2$?")
    for _ in range(10):
        page.keyboard.press("4")
    page.keyboard.press("Enter")
    expect(page.locator(".conversation .katex")).to_be_visible()
