"""From task to task: undo, history, several annotators at once, escalation, quarantine and release."""

import pytest
from playwright.sync_api import Page, expect

from annotator.models import Annotation, Assignment, Project, Task, User
from tests.browser.conftest import PASSWORD, Open
from tests.browser.test_annotate import rate_everything
from tests.builders import make_gold, make_member, make_task, make_user

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def make_person(project: Project, name: str, *, role: str = "annotator") -> User:
    user = make_user(name, is_staff=role == "manager")
    user.set_password(PASSWORD)
    user.save()
    make_member(project, user, role=role)
    return user


def rate(page: Page, level: int) -> None:
    page.goto("/projects/talk/annotate/")
    rate_everything(page, level)
    page.get_by_role("button", name="Submit and next").click()
    expect(page.locator("#work").get_by_text("Saved at")).to_be_visible()


def test_a_skip_is_undone_by_a_key(open_page: Open, talk: Project, alice: User) -> None:
    make_task(talk, "one", prompt="The first?")
    make_task(talk, "two", prompt="The second?")
    page = open_page(alice)
    page.goto("/projects/talk/annotate/")
    rate_everything(page, 2, scales=3)
    expect(page.locator("#saved")).to_contain_text("saved")
    page.keyboard.press("s")
    page.keyboard.press("3")
    page.get_by_role("button", name="Skip", exact=True).press("Enter")
    expect(page.get_by_text("The second?")).to_be_visible()
    page.wait_for_load_state("load")
    page.keyboard.press("u")
    expect(page.get_by_text("The skip is undone.")).to_be_visible()
    expect(page.get_by_text("The first?")).to_be_visible()
    expect(page.locator("#rating [type=radio]:checked")).to_have_count(3)


def test_the_undo_goes_after_ten_seconds(open_page: Open, talk: Project, alice: User) -> None:
    make_task(talk)
    page = open_page(alice)
    page.clock.install()
    page.goto("/projects/talk/annotate/")
    page.keyboard.press("s")
    page.keyboard.press("3")
    page.get_by_role("button", name="Skip", exact=True).click()
    expect(page.get_by_role("button", name="Undo the skip")).to_be_visible()
    for _ in range(3):  # the button may be there before its seconds are counted
        page.clock.run_for(11_000)
        page.wait_for_load_state("networkidle")
    expect(page.get_by_role("button", name="Undo the skip")).to_have_count(0)


@pytest.mark.parametrize("javascript", [True, False])
def test_a_rating_is_changed_from_the_history(open_page: Open, talk: Project, alice: User, javascript: bool) -> None:
    make_task(talk, prompt="Which one?")
    page = open_page(alice, java_script_enabled=javascript)
    rate(page, 3)
    page.goto("/projects/talk/history/")
    page.get_by_role("link", name="View and change").click()
    expect(page.locator("#rating [type=radio]:checked")).to_have_count(10)
    rate_everything(page, 0, scales=1)
    page.get_by_role("button", name="Save the change").click()
    expect(page.get_by_text("Your change is saved.")).to_be_visible()
    expect(page.get_by_text("version 2")).to_be_visible()
    assert Annotation.objects.count() == 2


def test_two_annotators_at_once_share_a_task_and_see_nothing_of_each_other(
    open_page: Open, talk: Project, alice: User
) -> None:
    task = make_task(talk)
    pages = [open_page(alice), open_page(make_person(talk, "bob"))]
    for page in pages:
        page.goto("/projects/talk/annotate/")
    for level, page in enumerate(pages):
        rate_everything(page, level)
    for page in pages:
        page.get_by_role("button", name="Submit and next").click()
        expect(page.locator("#work").get_by_text("Saved at")).to_be_visible()
    assert Annotation.objects.filter(assignment__task=task).count() == 2
    assert set(Assignment.objects.values_list("slot", flat=True)) == {1, 2}
    assert "alice" not in pages[1].content()


def test_far_apart_ratings_ask_for_two_more_annotators(open_page: Open, talk: Project, alice: User) -> None:
    task = make_task(talk)
    people = [alice, *(make_person(talk, name) for name in ("bob", "erin", "frank", "grace"))]
    for user, level in zip(people[:3], (0, 2, 4), strict=True):
        rate(open_page(user), level)
    task.refresh_from_db()
    assert (task.state, task.slots_wanted) == (Task.State.OPEN, 5)
    for user in people[3:]:
        rate(open_page(user), 4)
    task.refresh_from_db()
    assert (task.state, list(task.responses.values_list("labels__scores__helpfulness", flat=True))) == (
        Task.State.COMPLETE,
        [4, 4],
    )


def test_a_report_is_dismissed_and_the_task_comes_back(open_page: Open, talk: Project, alice: User) -> None:
    task = make_task(talk, "odd", prompt="Is this odd?")
    page = open_page(alice)
    page.goto("/projects/talk/annotate/")
    page.locator("#report > summary").click()
    page.get_by_label("Illegal").check()
    page.get_by_role("button", name="Report", exact=True).click()
    expect(page.get_by_text("Nobody gets this task until")).to_be_visible()
    manager = open_page(make_person(talk, "carol", role="manager"))
    manager.goto(f"/projects/talk/review/{task.public_id}/")
    manager.get_by_role("button", name="False alarm: back to the queue").click()
    expect(manager.get_by_text("back in the queue")).to_be_visible()
    task.refresh_from_db()
    assert task.state == Task.State.OPEN
    page.goto("/projects/talk/annotate/")
    expect(page.get_by_text("Is this odd?")).to_be_visible()


def test_who_is_paused_is_told_and_so_is_the_manager(open_page: Open, talk: Project, alice: User) -> None:
    talk.gold_every, talk.gold_window, talk.gold_threshold = 1, 2, 0.3
    talk.save()
    make_task(talk)
    for _ in range(2):
        make_gold(talk, levels=(4, 0))
    page = open_page(alice)
    for _ in range(2):
        page.goto("/projects/talk/annotate/")
        for sheet in page.locator(".sheet").all():
            level = 0 if "Answer 0" in sheet.locator(".response").inner_text() else 4
            for scale in sheet.locator(".likert").all():
                scale.locator("input[type=radio]").nth(level).check()
        page.get_by_role("button", name="Submit and next").click()
        expect(page.locator("#work").get_by_text("Saved at")).to_be_visible()
    expect(page.get_by_text("You are paused in this project")).to_be_visible()
    manager = open_page(make_person(talk, "carol", role="manager"))
    manager.goto("/projects/talk/people/?state=paused")
    expect(manager.locator("table").get_by_role("link", name="alice")).to_be_visible()
