"""Where two responses differ: a key shows it, another goes from one difference to the next."""

import pytest
from playwright.sync_api import Page, expect

from annotator.models import Project, Role, Task, User
from annotator.stages.pii import scans
from tests.browser.conftest import Open
from tests.builders import NOW, make_member, make_task, make_user, rate

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
SAME = "The walls of the house stand on stone, and the roof is of **slate**.\n\n"


def pair(talk: Project) -> Task:
    task = make_task(talk)
    for response, colour in zip(task.responses.order_by("position"), ("red", "green"), strict=True):
        response.text = (
            f"{SAME * 12}The door at the front is {colour} and made of wood.\n\n{SAME * 12}\n\nSo `{colour}` it is."
        )
        response.save()
    return task


def at(page: Page) -> str:
    return page.evaluate("document.querySelector('.differs.at')?.textContent ?? ''")  # type: ignore[no-any-return]


@pytest.mark.parametrize("width", [1440, 360])
def test_a_key_shows_the_differences_and_another_walks_them(
    open_page: Open, alice: User, talk: Project, width: int
) -> None:
    pair(talk)
    page = open_page(alice, viewport={"width": width, "height": 700})
    page.goto("/projects/talk/annotate/")
    first = page.locator(".response .prose").first
    quiet = first.evaluate("(text) => getComputedStyle(text).color")
    page.keyboard.press("w")
    expect(page.locator("#work.differing")).to_have_count(1)
    assert first.evaluate("(text) => getComputedStyle(text).color") != quiet
    expect(page.locator(".differs")).to_have_count(4)
    one, _, other, _ = page.locator(".differs").all_text_contents()
    assert {one, other} == {"red", "green"}
    walked = []
    for _ in range(4):
        page.keyboard.press("j")
        expect(page.locator(".differs.at")).to_be_in_viewport()
        walked.append(at(page))
    assert walked == ([one, other] * 2 if width > 900 else [one] * 4)
    page.keyboard.press("w")
    expect(page.locator("#work.differing")).to_have_count(0)


def test_it_stays_on_for_the_next_pair_and_rests_where_there_is_none(
    open_page: Open, alice: User, talk: Project
) -> None:
    Project.objects.update(ask_preference=False)
    pair(talk)
    make_task(talk, responses=1)
    pair(talk)
    page = open_page(alice)
    page.goto("/projects/talk/annotate/")
    page.keyboard.press("w")
    for answers, shown in ((10, 1), (5, 0), (10, 1)):
        expect(page.locator(".likert")).to_have_count(answers)
        expect(page.locator("#rating input:checked")).to_have_count(0)
        expect(page.locator("#work.differing")).to_have_count(shown)
        assert page.get_by_role("button", name="Differences").is_enabled() == bool(shown)
        for _ in range(answers):
            page.keyboard.press("4")
        page.keyboard.press("Enter")
    expect(page.locator(".likert")).to_have_count(0)


def test_reviewers_have_it_too(open_page: Open, alice: User, talk: Project) -> None:
    task = pair(talk)
    rate(talk, alice)
    Task.objects.update(review_reason=Task.Review.DROPPED)
    rita = make_member(talk, make_user("rita"), Role.REVIEWER).user
    page = open_page(rita)
    page.goto(f"/projects/talk/review/{task.public_id}/")
    page.keyboard.press("w")
    page.keyboard.press("j")
    assert at(page) == "red"


def test_personal_information_stays_marked(open_page: Open, alice: User, talk: Project) -> None:
    task = pair(talk)
    response = task.responses.get(position=0)
    response.text += " Write to ann@example.org now."
    response.save()
    Task.objects.update(pii_scanned_at=None)
    scans.scan_all(now=NOW)
    page = open_page(alice)
    page.goto("/projects/talk/annotate/")
    expect(page.locator("mark.pii")).to_have_text(["ann@example.org"])
