"""Nothing that was chosen is lost: reload, a dropped line, a session that ran out, a double click."""

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import Locator, Page, Route, expect

from annotator.models import Annotation, Assignment, Draft, Project, User
from tests.browser.conftest import KEPT, PASSWORD, Complaints, Open, ask
from tests.browser.test_annotate import rate_everything
from tests.builders import make_member, make_task, make_user
from tests.celery_workers import wait_for

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def page(open_page: Open, talk: Project, alice: User) -> Page:
    make_task(talk, "first")
    make_task(talk, "second", prompt="And the second?")
    opened = open_page(alice, service_workers="block")  # as `route` does not see what a worker fetches
    opened.goto("/projects/talk/annotate/")
    return opened


def chosen(page: Page, count: int) -> None:
    expect(page.locator("#rating [type=radio]:checked")).to_have_count(count)


def box_of(page: Page) -> Locator:
    """A box under the second scale, which is rated already: the boxes come with the level."""
    ask(page.locator(".likert").nth(1))
    return page.get_by_label("Key information is missing").first


def log_out(page: Page) -> None:
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("button", name="Log out").click()


def test_each_choice_is_saved_and_said(page: Page) -> None:
    rate_everything(page, 1, scales=3)
    expect(page.locator("#saved")).to_contain_text("saved")
    # The page may say so of the first choices while the last one is still on its way.
    wait_for(lambda: len(Draft.objects.get().form.keys() - {"active_seconds"}) >= 3, what="the third choice")


def test_a_reload_brings_the_choices_back(page: Page) -> None:
    rate_everything(page, 1, scales=4)
    box_of(page).check()
    expect(page.locator("#saved")).to_contain_text("saved")
    page.reload()
    chosen(page, 4)
    expect(page.get_by_label("Key information is missing").first).to_be_checked()


def test_a_choice_made_before_the_scripts_ran_is_kept(page: Page) -> None:
    held: list[Route] = []
    page.route("**/drafts*.js", lambda route: held.append(route))
    page.reload(wait_until="commit")
    rate_everything(page, 1, scales=1)
    page.wait_for_timeout(500)  # until the script is asked for
    held[0].continue_()
    expect(page.locator("#saved")).to_contain_text("saved")
    page.unroute_all()
    page.reload()
    chosen(page, 1)


def test_a_dropped_line_keeps_the_choices_and_sends_them_later(page: Page, complaints: Complaints) -> None:
    page.context.set_offline(True)
    rate_everything(page, 2, scales=5)
    expect(page.locator("#saved")).to_contain_text(KEPT)
    page.context.set_offline(False)
    expect(page.locator("#saved")).to_contain_text("saved", timeout=15_000)
    complaints.seen.clear()  # Chromium logs each request that the dropped line refused
    page.reload()
    chosen(page, 5)


def test_a_page_drawn_before_the_last_choice_arrived_shows_it(page: Page) -> None:
    """The old page sends the choice while it is reloaded, and hears of its success before the new page is there."""
    rate_everything(page, 1, scales=2)
    box = box_of(page)
    box.check()
    expect(page.locator("#saved")).to_contain_text("saved")
    sent: list[Route] = []
    page.route("**/draft/", lambda route: sent.append(route))
    box.uncheck()
    page.wait_for_timeout(1_000)

    def answered_late(route: Route) -> None:
        drawn = route.fetch()
        sent.pop().continue_()
        page.wait_for_timeout(1_000)
        route.fulfill(response=drawn)

    page.route("**/annotate/", answered_late)
    page.reload()
    expect(box).not_to_be_checked()
    assert Draft.objects.get().form.get(str(box.get_attribute("name")), []) == []


def test_choices_that_never_reached_the_server_survive_a_reload(page: Page, complaints: Complaints) -> None:
    page.route("**/draft/", lambda route: route.abort())
    rate_everything(page, 3, scales=2)
    expect(page.locator("#saved")).to_contain_text(KEPT)
    page.unroute("**/draft/")
    page.reload()
    chosen(page, 2)
    expect(page.locator("#saved")).to_contain_text("saved", timeout=15_000)
    complaints.seen.clear()


def test_who_was_logged_out_logs_in_over_the_task_and_it_is_submitted(page: Page) -> None:
    rate_everything(page, 4)
    expect(page.locator("#saved")).to_contain_text("saved")
    Session.objects.all().delete()
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_role("heading", name="Log in again")).to_be_visible()
    chosen(page, 10)
    page.fill("#login #id_username", "alice")
    page.fill("#login #id_password", PASSWORD)
    page.click("#login [data-login] button")
    expect(page.get_by_text("And the second?")).to_be_visible()
    assert Annotation.objects.count() == 1


def test_a_double_click_stores_one_annotation(page: Page) -> None:
    rate_everything(page, 3)
    page.get_by_role("button", name="Submit and next").dblclick()
    expect(page.get_by_text("And the second?")).to_be_visible()
    assert Annotation.objects.count() == 1


def test_the_next_task_starts_empty(page: Page) -> None:
    rate_everything(page, 3)
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_text("And the second?")).to_be_visible()
    chosen(page, 0)
    assert not Draft.objects.filter(assignment__state=Assignment.State.SUBMITTED).exists()
    assert page.evaluate("Object.keys(localStorage).length") == 0


def test_a_whole_task_without_a_mouse(page: Page) -> None:
    for _ in range(10):
        page.keyboard.press("4")
    page.keyboard.press("Enter")
    expect(page.get_by_text("And the second?")).to_be_visible()
    ratings = Annotation.objects.get().ratings.all()
    assert {score for rating in ratings for score in rating.scores.values()} == {3}


def test_up_and_down_walk_the_scales_without_changing_them(page: Page) -> None:
    page.keyboard.press("2")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("5")
    chosen(page, 1)
    assert page.locator(".likert").first.locator("[type=radio]").nth(4).is_checked()


def test_a_skip_without_a_mouse(page: Page) -> None:
    page.keyboard.press("s")
    page.keyboard.press("3")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("And the second?")).to_be_visible()
    assert Assignment.objects.get(state=Assignment.State.SKIPPED).skips.get().reason == "needs_coding"


def test_keys_are_ignored_while_typing(page: Page) -> None:
    page.locator("#skip > summary").click()
    page.get_by_label("Note (optional)").first.fill("")
    page.keyboard.type("123 s r ?")
    chosen(page, 0)
    expect(page.get_by_label("Note (optional)").first).to_have_value("123 s r ?")


def test_the_question_mark_lists_the_keys_of_the_page(page: Page) -> None:
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog).to_contain_text("Skip this task")
    expect(dialog).to_contain_text("Submit once everything is rated")


def test_a_second_tab_does_not_replace_the_first_rating(page: Page) -> None:
    second = page.context.new_page()
    second.goto("/projects/talk/annotate/")
    rate_everything(page, 3)
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_text("And the second?")).to_be_visible()
    rate_everything(second, 0)
    second.get_by_role("button", name="Submit and next").click()
    expect(second.get_by_text("earlier rating is kept")).to_be_visible()
    assert {score for rating in Annotation.objects.get().ratings.all() for score in rating.scores.values()} == {3}


def test_two_tabs_of_one_task_show_the_same_choices(page: Page) -> None:
    second = page.context.new_page()
    second.goto("/projects/talk/annotate/")
    rate_everything(page, 3, scales=5)
    chosen(second, 5)
    ask(second.locator(".likert").last).locator("[type=radio]").first.check()
    expect(second.locator("#saved")).to_contain_text("saved")
    second.reload()
    chosen(second, 6)


def test_a_page_left_open_elsewhere_undoes_nothing(page: Page, open_page: Open, alice: User) -> None:
    """Another machine, another browser: its form is older than the draft."""
    elsewhere = open_page(alice)
    elsewhere.goto("/projects/talk/annotate/")
    rate_everything(page, 3, scales=5)
    expect(page.locator("#saved")).to_contain_text("saved")
    ask(elsewhere.locator(".likert").last).locator("[type=radio]").first.check()
    expect(elsewhere.locator("#saved")).to_contain_text("saved")
    page.reload()
    chosen(page, 6)


def test_a_copy_older_than_the_draft_does_not_replace_it(
    page: Page, open_page: Open, alice: User, complaints: Complaints
) -> None:
    page.context.set_offline(True)
    rate_everything(page, 0, scales=2)
    expect(page.locator("#saved")).to_contain_text(KEPT)
    elsewhere = open_page(alice)
    elsewhere.goto("/projects/talk/annotate/")
    rate_everything(elsewhere, 4, scales=1)
    expect(elsewhere.locator("#saved")).to_contain_text("saved")
    # As in a crash: the last request of a tab that is closed leaves after the tab, and with it the dropped line.
    page.evaluate("void (window.fetch = () => Promise.reject(new TypeError('crashed')))")
    page.close()
    page.context.set_offline(False)
    complaints.seen.clear()  # Chromium logs each request that the dropped line refused
    again = page.context.new_page()
    again.goto("/projects/talk/annotate/")
    chosen(again, 2)
    expect(again.locator(".likert").first.locator("[type=radio]").nth(4)).to_be_checked()


@pytest.mark.parametrize("why", ["full", "forbidden"])
def test_a_browser_that_keeps_nothing_still_sends_and_warns(page: Page, complaints: Complaints, why: str) -> None:
    for broken in {"full": ["setItem"], "forbidden": ["setItem", "getItem", "removeItem"]}[why]:
        page.evaluate(
            f"void (Storage.prototype.{broken} = () => {{ throw new DOMException('no', 'QuotaExceededError') }})"
        )
    rate_everything(page, 2, scales=2)
    expect(page.locator("#saved")).to_contain_text("saved")
    page.context.set_offline(True)
    rate_everything(page, 3, scales=4)
    expect(page.locator("#saved")).to_contain_text("leave the page open")
    page.context.set_offline(False)
    expect(page.locator("#saved")).to_contain_text("saved", timeout=15_000)
    complaints.seen.clear()
    page.reload()
    chosen(page, 4)


def test_the_next_person_at_the_machine_gets_nothing_of_the_first(
    page: Page, talk: Project, complaints: Complaints
) -> None:
    page.route("**/draft/", lambda route: route.abort())
    rate_everything(page, 3, scales=4)
    expect(page.locator("#saved")).to_contain_text(KEPT)
    bob = make_user("bob")
    bob.set_password(PASSWORD)
    bob.save()
    make_member(talk, bob)
    log_out(page)
    for name, count in (("bob", 0), ("alice", 4)):
        page.fill("#id_username", name)
        page.fill("#id_password", PASSWORD)
        page.click("main button")
        page.goto("/projects/talk/annotate/")
        chosen(page, count)
        log_out(page)
    complaints.seen.clear()


def test_a_justification_does_not_wander_to_the_next_task(page: Page) -> None:
    Project.objects.update(ask_preference=True)
    page.reload()
    rate_everything(page, 3)
    page.get_by_role("radio", name="A is better", exact=True).check()
    page.get_by_label("Why? (optional)").fill("Because.")
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_text("And the second?")).to_be_visible()
    expect(page.get_by_label("Why? (optional)")).to_have_value("")


def test_a_form_of_another_session_is_refused_kindly(page: Page, complaints: Complaints) -> None:
    rate_everything(page, 3)
    expect(page.locator("#saved")).to_contain_text("saved")
    page.evaluate(
        "document.querySelectorAll('[name=csrfmiddlewaretoken]').forEach(field => field.value = 'x'.repeat(64))"
    )
    page.evaluate("document.getElementById('rating').submit()")
    expect(page.get_by_role("heading", name="This form is out of date")).to_be_visible()
    complaints.seen.clear()  # Chromium logs the 403
    page.goto("/projects/talk/annotate/")
    chosen(page, 10)


def test_a_draft_that_the_server_refuses_is_not_sent_again_by_itself(page: Page, complaints: Complaints) -> None:
    sent: list[str] = []

    def refuse(route: Route) -> None:
        sent.append(route.request.url)
        route.fulfill(status=413, json={"detail": "too large"})

    page.route("**/draft/", refuse)
    rate_everything(page, 3, scales=1)
    expect(page.locator("#saved")).to_contain_text("does not accept the form as it is")
    expect(page.locator("#saved")).to_contain_text("too large")
    page.wait_for_timeout(5_000)
    assert len(sent) == 1
    complaints.seen.clear()  # Chromium logs the refusal


def test_a_refusal_without_a_reason_is_not_blamed_on_the_person(page: Page, complaints: Complaints) -> None:
    page.route("**/draft/", lambda route: route.fulfill(status=400, body="<h1>Bad request</h1>"))
    rate_everything(page, 3, scales=1)
    expect(page.locator("#saved")).to_contain_text("the fault is not yours")
    complaints.seen.clear()  # Chromium logs the refusal
