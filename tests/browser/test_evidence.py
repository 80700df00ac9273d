"""Words of a response become evidence for a scale: by keys, by the pointer, kept, taken back, shown to reviewers."""

import re

import pytest
from playwright.sync_api import Page, expect

from annotator.models import Project, Rating, Response, Task, User
from tests.browser.conftest import Open
from tests.builders import make_member, make_task, make_user, rate

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
TEXT = "It **always** rains here. It rains in May, and it always\nrains in June."


@pytest.fixture
def page(open_page: Open, talk: Project, alice: User) -> Page:
    make_task(talk).responses.update(text=TEXT)
    page = open_page(alice, viewport={"width": 1366, "height": 680})
    page.goto("/projects/talk/annotate/")
    page.wait_for_load_state("load")
    return page


def select(page: Page, words: str, nth: int = 0, *, letter: str = "A") -> None:
    """Selects the words, as they stand on the page, where they stand for the nth time."""
    page.evaluate(
        """([place, words, nth]) => {
            const text = document.querySelector(`#response-${place} .prose`), nodes = [];
            const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
            while (walker.nextNode()) {
                for (let at = 0; at < walker.currentNode.length; at++) nodes.push([walker.currentNode, at]);
            }
            const all = nodes.map(([node, at]) => node.data[at]).join("").replaceAll("\\n", " ");
            let start = -1;
            for (let passed = 0; passed <= nth; passed++) start = all.indexOf(words, start + 1);
            const [last, end] = nodes[start + words.length - 1];
            getSelection().setBaseAndExtent(...nodes[start], last, end + 1);
        }""",
        [letter, words, nth],
    )
    expect(page.locator(".cockpit.quoting")).to_have_count(1)


def finish(page: Page) -> None:
    for _ in range(10):
        page.keyboard.press("3")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No task for you right now")).to_be_visible()


def stored() -> list[tuple[str, str, str]]:
    return [
        (key, rating.response.text[start:end], note)
        for rating in Rating.objects.select_related("response")
        for key, start, end, note in rating.evidence
    ]


def test_a_letter_and_a_digit_rate_the_scale_with_its_evidence(page: Page) -> None:
    select(page, "always rains", 1)
    page.keyboard.press("c")
    expect(page.locator(".likert.current legend")).to_contain_text("Correctness")
    expect(page.locator("#response-A .evidence li")).to_contain_text("always rains")
    page.keyboard.press("2")
    expect(page.locator("#response-A .likert").nth(1).locator(":checked")).to_have_count(1)
    assert page.evaluate("CSS.highlights.get('evidence').size") == 1
    page.locator("#response-A .evidence input:not([type=hidden])").fill("Not in May.")
    expect(page.locator("#response-A .evidence input[type=hidden]")).to_have_value(re.compile("Not in May"))
    page.locator("#response-A .likert [type=radio]").first.evaluate("one => one.focus()")
    page.reload()
    expect(page.locator("#response-A .evidence input:not([type=hidden])")).to_have_value("Not in May.")
    page.locator(".strip .chip").first.click()
    finish(page)
    assert stored() == [("correctness", "always\nrains", "Not in May.")]


def test_the_pointer_gives_words_to_a_scale_and_takes_them_back(page: Page) -> None:
    select(page, "rains here", letter="B")
    page.get_by_role("button", name="Verbosity", exact=True).click()
    expect(page.locator("#response-B .evidence li")).to_contain_text("rains here")
    select(page, "always", letter="B")
    page.get_by_role("button", name="Helpfulness", exact=True).click()
    page.get_by_role("button", name="Remove: Verbosity, rains here").click()
    expect(page.locator("#response-B .evidence li")).to_have_count(1)
    page.locator(".strip .chip").first.click()
    finish(page)
    assert stored() == [("helpfulness", "always", "")]


LINKED = "# Not\n\nSee [the docs](https://example.org/not/this) first.\n\n1. It is not slow.\n2. It is `not` 😀 safe."


@pytest.mark.parametrize("nth", range(3))
def test_the_words_are_those_that_were_selected(page: Page, talk: Project, nth: int) -> None:
    Response.objects.update(text=LINKED)
    page.reload()
    select(page, "ot", nth)
    page.keyboard.press("h")
    expect(page.locator("#response-A .evidence li")).to_have_count(1)
    marked = page.evaluate(
        """() => {
            const [range] = CSS.highlights.get("evidence"), before = document.createRange();
            before.setStart(document.querySelector("#response-A .prose"), 0);
            before.setEnd(range.startContainer, range.startOffset);
            return before.toString().split("ot").length - 1;
        }"""
    )
    assert marked == nth
    page.locator(".strip .chip").first.click()
    finish(page)
    places = [place for place in range(len(LINKED)) if LINKED.startswith("ot", place) and LINKED[place - 1] in "Nn"]
    [start] = [one[1] for rating in Rating.objects.all() for one in rating.evidence]
    assert start == [place for place in places if LINKED[place - 2 : place + 2] != "/not"][nth]


def test_the_key_for_personal_words_stays_its_own(page: Page) -> None:
    select(page, "rains here")
    page.keyboard.press("m")
    expect(page.locator("#skip[open]")).to_have_count(1)
    expect(page.locator(".evidence li")).to_have_count(0)


def test_a_selection_in_the_prompt_is_evidence_for_nothing(page: Page) -> None:
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.conversation .prose'))")
    expect(page.locator(".cockpit.selecting")).to_have_count(1)
    expect(page.locator("[data-supports=verbosity]")).to_be_hidden()


def test_a_revision_keeps_it(page: Page, talk: Project, alice: User) -> None:
    select(page, "rains in June")
    page.keyboard.press("h")
    page.locator(".strip .chip").first.click()
    finish(page)
    page.goto("/projects/talk/history/")
    page.get_by_role("link", name="View and change").click()
    expect(page.locator("#response-A .evidence li")).to_contain_text("rains in June")
    page.keyboard.press("5")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Your change is saved.")).to_be_visible()
    ratings = Rating.objects.filter(annotation__is_current=True, annotation__revision=2)
    assert [rating.evidence for rating in ratings if rating.evidence] == [
        [["helpfulness", TEXT.index("rains in June"), TEXT.index("rains in June") + 13, ""]]
    ]


def test_a_reviewer_reads_it_on_the_text(open_page: Open, talk: Project, alice: User) -> None:
    Project.objects.update(base_annotators=1, max_annotators=1)
    talk.refresh_from_db()
    task = make_task(talk)
    task.responses.update(text=TEXT)
    rate(talk, alice)
    start = TEXT.rindex("rains")
    Rating.objects.filter(response__position=0).update(evidence=[["coherence", start, start + 5, "Twice."]])
    rita = make_user("rita")
    make_member(talk, rita, role="reviewer")
    page = open_page(rita)
    page.goto(f"/projects/talk/review/{Task.objects.get().public_id}/")
    line = page.locator("#response-A ul.evidence li")
    expect(line).to_contain_text("Rater 1 · Coherence 4")
    expect(line).to_contain_text("Twice.")
    assert page.evaluate("[...CSS.highlights.get('evidence')].map(String)") == ["rains"]
