"""A local shift: the next task is there at once, and what is done leaves in its order, whatever the network does."""

from collections.abc import Callable, Iterator

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from annotator.infrastructure.db.clock import database_now
from annotator.models import Annotation, Assignment, Project, Report, Skip, Task, User
from annotator.stages import annotation
from tests.browser.conftest import KEPT, PASSWORD, Complaints, Open, session_of
from tests.browser.test_annotate import rate_everything
from tests.builders import make_member, make_task, make_user, submission

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


_KEPT = """async (store) => {
    const [found] = (await indexedDB.databases()).filter(({ name }) => name.startsWith("shift-"));
    if (!found) return [];
    const db = await new Promise((done) => {
        const opening = indexedDB.open(found.name);
        opening.onsuccess = () => done(opening.result);
    });
    const rows = await new Promise((done) => {
        const asked = db.transaction(store).objectStore(store).getAll();
        asked.onsuccess = () => done(asked.result);
    });
    db.close();
    return rows.filter(({ html, tab }) => html && !tab).map(({ id }) => id);
}"""


def kept(page: Page, store: str = "ready") -> list[int]:
    """The assignments whose tasks are ready, or whose answers wait."""
    return list(page.evaluate(_KEPT, store))


def wait_for_kept(page: Page, number: int, store: str = "ready") -> None:
    for _ in range(100):
        if len(kept(page, store)) == number:
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"{store}: {kept(page, store)} instead of {number}")


def shown(page: Page) -> str:
    return page.locator(".conversation .turn").last.inner_text().rpartition("\n")[2]


def rate(page: Page) -> str:
    """Rates the task that is shown, and waits until the next one is there; returns its last turn."""
    before = shown(page)
    rate_everything(page, 3)
    page.keyboard.press("Enter")
    page.wait_for_function("(text) => !document.querySelector('.conversation')?.innerText.endsWith(text)", arg=before)
    return before


def rated(project: Project) -> list[str]:
    """The prompts of what is stored, in the order of storage; each rating is of a task of its own."""
    stored = Annotation.objects.current().order_by("pk").select_related("assignment__task")
    return [one.assignment.task.conversation[-1]["content"] for one in stored]


@pytest.fixture
def complaints(live_server: LiveServer) -> Iterator[Complaints]:
    """What Chromium logs of requests without an answer is no complaint here."""
    noted = Complaints(live_server.url)
    yield noted
    assert [what for what in noted.seen if not what.startswith("Failed to load resource")] == []


def wait_for_ratings(page: Page, number: int) -> None:
    for _ in range(200):
        if Annotation.objects.count() >= number:
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"{Annotation.objects.count()} ratings instead of {number}")


@pytest.fixture
def rater(open_page: Open, alice: User, talk: Project) -> Callable[..., Page]:
    """Opens the rating page with its next tasks ready, of so many."""

    def opened(tasks: int = 12, ready: int = 3, **options: object) -> Page:
        talk.refresh_from_db()
        for number in range(tasks):
            make_task(talk, prompt=f"Question {number}")
        page = open_page(alice, **options)
        page.goto("/projects/talk/annotate/")
        wait_for_kept(page, ready)
        return page

    return opened


Rater = Callable[..., Page]


def test_the_next_task_is_there_without_the_server(rater: Rater, talk: Project) -> None:
    page = rater()
    assert Assignment.objects.filter(shift__isnull=False).count() == 3
    page.context.set_offline(True)
    first = rate(page)
    assert kept(page, "outbox")
    assert len(kept(page)) == 2
    expect(page.locator("#saved")).to_contain_text(KEPT)
    page.context.set_offline(False)
    wait_for_ratings(page, 1)
    assert rated(talk) == [first]
    wait_for_kept(page, 3)
    expect(page.locator("#saved")).to_contain_text("sent")


def test_ten_tasks_without_a_network(rater: Rater, talk: Project) -> None:
    Project.objects.update(tasks_ahead=10)
    page = rater(tasks=24, ready=10)
    page.context.set_offline(True)
    done = [rate(page) for _ in range(10)]
    assert not Annotation.objects.exists()
    page.context.set_offline(False)
    wait_for_ratings(page, 10)
    page.wait_for_timeout(300)
    assert rated(talk) == done
    assert len(set(done)) == 10
    assert Assignment.objects.submitted().filter(counts=True, extra=False).count() == 10


def test_more_than_the_browser_has(rater: Rater, talk: Project) -> None:
    page = rater()
    page.context.set_offline(True)
    done = [rate(page) for _ in range(3)]
    done.append(shown(page))
    rate_everything(page, 3)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="No more tasks on this device")).to_be_visible()
    page.context.set_offline(False)
    expect(page.locator("#rating")).to_be_visible(timeout=20_000)
    assert rated(talk) == done
    assert shown(page) not in done


def test_skip_report_and_their_undo_without_a_network(rater: Rater, talk: Project) -> None:
    page = rater()
    page.context.set_offline(True)
    skipped = shown(page)
    page.locator("#skip > summary").click()
    page.get_by_label("Needs coding skills").check()
    page.get_by_role("button", name="Skip", exact=True).click()
    page.wait_for_function("(text) => !document.querySelector('.conversation').innerText.endsWith(text)", arg=skipped)
    reported = shown(page)
    page.locator("#report > summary").click()
    page.get_by_label("Illegal").check()
    page.get_by_role("button", name="Report", exact=True).click()
    page.wait_for_function("(text) => !document.querySelector('.conversation').innerText.endsWith(text)", arg=reported)
    page.get_by_role("button", name="Undo the report").click()
    page.wait_for_function("(text) => document.querySelector('.conversation').innerText.endsWith(text)", arg=reported)
    rate(page)
    page.context.set_offline(False)
    wait_for_ratings(page, 1)
    assert rated(talk) == [reported]
    assert Skip.objects.get().assignment.task.conversation[-1]["content"] == skipped
    assert not Report.objects.exists()
    assert not Task.objects.filter(state=Task.State.QUARANTINED).exists()


def test_a_skip_that_has_arrived_is_undone(rater: Rater) -> None:
    page = rater()
    skipped = shown(page)
    page.locator("#skip > summary").click()
    page.get_by_label("Needs coding skills").check()
    page.get_by_role("button", name="Skip", exact=True).click()
    wait_for_kept(page, 0, "outbox")
    assert Skip.objects.exists()
    page.get_by_role("button", name="Undo the skip").click()
    page.wait_for_function("(text) => document.querySelector('.conversation').innerText.endsWith(text)", arg=skipped)
    wait_for_kept(page, 0, "outbox")
    page.wait_for_timeout(500)
    assert not Skip.objects.exists()
    rate(page)
    wait_for_ratings(page, 1)


def test_what_has_not_been_sent_is_changed_by_previous(rater: Rater, talk: Project) -> None:
    page = rater()
    page.context.set_offline(True)
    first = rate(page)
    page.get_by_role("link", name="Previous").click()
    page.wait_for_function("(text) => document.querySelector('.conversation').innerText.endsWith(text)", arg=first)
    expect(page.locator("#rating input[type=radio]:checked")).to_have_count(10)
    rate_everything(page, 1)
    page.keyboard.press("Enter")
    page.wait_for_function("(text) => !document.querySelector('.conversation').innerText.endsWith(text)", arg=first)
    page.context.set_offline(False)
    wait_for_ratings(page, 1)
    assert rated(talk) == [first]
    (stored,) = Annotation.objects.current()
    assert {score for rating in stored.ratings.all() for score in rating.scores.values()} == {1}


def test_previous_opens_what_has_arrived(rater: Rater) -> None:
    page = rater()
    rate(page)
    wait_for_kept(page, 0, "outbox")
    page.get_by_role("link", name="Previous").click()
    expect(page.get_by_role("heading", name="Change your rating")).to_be_attached()


def test_what_the_server_asks_for_meanwhile_comes_back(rater: Rater, talk: Project) -> None:
    page = rater()
    Project.objects.update(ask_preference=True)
    page.context.set_offline(True)
    first = rate(page)
    page.context.set_offline(False)
    wait_for_kept(page, 0, "outbox")
    rate_everything(page, 3)
    page.keyboard.press("Enter")
    page.wait_for_function("(text) => document.querySelector('.conversation').innerText.endsWith(text)", arg=first)
    expect(page.get_by_role("alert")).to_contain_text("some answers are missing")
    expect(page.locator("#rating .likert input[type=radio]:checked")).to_have_count(10)


def test_who_is_logged_out_logs_in_over_the_task(rater: Rater, alice: User, talk: Project) -> None:
    page = rater()
    Session.objects.all().delete()
    first, second = rate(page), shown(page)
    expect(page.get_by_role("heading", name="Log in again")).to_be_visible()
    page.get_by_label("Username").fill("alice")
    page.get_by_label("Password").fill("wrong")
    page.locator("#login").get_by_role("button", name="Log in").click()
    expect(page.locator("#login .message.error")).to_be_visible()
    page.get_by_label("Password").fill(PASSWORD)
    page.locator("#login").get_by_role("button", name="Log in").click()
    expect(page.locator("#login")).to_be_hidden()
    wait_for_ratings(page, 1)
    assert (rated(talk), shown(page)) == ([first], second)


def test_two_tabs_never_show_the_same_task(rater: Rater, talk: Project) -> None:
    page = rater(tasks=24)
    other = page.context.new_page()
    other.goto("/projects/talk/annotate/")
    other.wait_for_timeout(500)
    rate(page)  # the one that both have shown
    done = [rate(tab) for tab in (other, page) * 3]
    wait_for_ratings(page, 6)
    page.wait_for_timeout(500)
    stored = rated(talk)
    assert len(stored) == len(set(stored))
    assert set(done) <= set(stored)


def test_who_closes_the_page_gives_back_what_was_not_shown(rater: Rater) -> None:
    page = rater()
    shown_first = shown(page)
    page.goto("/settings/")
    for _ in range(150):
        if not Assignment.objects.filter(shift__isnull=False).exists():
            break
        page.wait_for_timeout(100)
    assert [one.state for one in Assignment.objects.order_by("pk")] == ["leased", *["expired"] * 3]
    assert list(Task.objects.filter(open_slots=2).values_list("conversation", flat=True)) == [
        [{"role": "user", "content": shown_first}]
    ]
    page.goto("/projects/talk/annotate/")
    wait_for_kept(page, 3)
    assert shown(page) == shown_first


def test_a_page_that_is_loaded_again_goes_on(rater: Rater, talk: Project) -> None:
    page = rater()
    done = []
    for _ in range(3):
        done.append(rate(page))
        page.reload()
        page.wait_for_function(
            "(texts) => !texts.some((text) => document.querySelector('.conversation')?.innerText.endsWith(text))",
            arg=done,
        )
    wait_for_ratings(page, 3)
    assert rated(talk) == done


def test_a_task_that_was_rated_elsewhere_gives_way_to_the_next(rater: Rater, talk: Project, alice: User) -> None:
    page = rater()
    first = shown(page)
    mine = Assignment.objects.get(shift=None, state="leased")
    annotation.submit(mine.pk, submission(mine.task), now=database_now())
    page.evaluate("dispatchEvent(new Event('online'))")
    page.wait_for_function("(text) => !document.querySelector('.conversation')?.innerText.endsWith(text)", arg=first)
    expect(page.locator("#messages")).to_contain_text("already rated this task")
    second = rate(page)
    wait_for_ratings(page, 2)
    assert rated(talk) == [first, second]


def test_the_page_is_loaded_while_the_server_is_away(rater: Rater, talk: Project, complaints: Complaints) -> None:
    page = rater()
    page.wait_for_function("navigator.serviceWorker.controller && caches.keys().then((names) => names.length)")
    page.wait_for_timeout(1500)
    page.context.set_offline(True)
    first, second = rate(page), shown(page)
    page.reload()
    page.wait_for_function("(text) => document.querySelector('.conversation')?.innerText.endsWith(text)", arg=second)
    page.get_by_role("link", name="Guidelines").click()
    expect(page.locator("#guidelines-text")).to_contain_text("no guidelines")
    page.keyboard.press("Escape")
    third = rate(page)
    page.context.set_offline(False)
    wait_for_ratings(page, 2)
    assert rated(talk) == [first, third]


def test_logging_out_leaves_nothing_in_the_browser(rater: Rater) -> None:
    page = rater()
    page.wait_for_function("navigator.serviceWorker.controller")
    page.wait_for_timeout(1000)
    rate(page)
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    page.wait_for_timeout(500)
    assert kept(page) == kept(page, "outbox") == []
    assert page.evaluate("caches.keys()") == []
    assert Annotation.objects.count() == 1
    assert not Assignment.objects.filter(shift__isnull=False, state="leased").exists()


def test_another_person_finds_nothing_of_the_first(rater: Rater, talk: Project, live_server: LiveServer) -> None:
    page = rater()
    bob = make_user("bob")
    make_member(talk, bob)
    page.context.add_cookies([{"name": "sessionid", "value": session_of(bob), "url": live_server.url}])
    page.goto("/projects/talk/annotate/")
    wait_for_names(page, 2)
    page.wait_for_timeout(1000)
    rows = page.evaluate(
        """async () => {
            const all = {};
            for (const { name } of await indexedDB.databases()) {
                const db = await new Promise((done) => {
                    const opening = indexedDB.open(name);
                    opening.onsuccess = () => done(opening.result);
                });
                all[name] = await new Promise((done) => {
                    const asked = db.transaction("ready").objectStore("ready").count();
                    asked.onsuccess = () => done(asked.result);
                });
                db.close();
            }
            return all;
        }"""
    )
    assert min(rows.values()) == 0


def wait_for_names(page: Page, number: int) -> None:
    for _ in range(50):
        if len(page.evaluate("indexedDB.databases()")) == number:
            return
        page.wait_for_timeout(100)


def test_two_people_and_the_last_tasks(rater: Rater, open_page: Open, talk: Project) -> None:
    Project.objects.update(base_annotators=1, max_annotators=1)
    page = rater(tasks=3, ready=1)  # one is shown, one ahead, one for somebody who comes
    bob = make_user("bob")
    make_member(talk, bob)
    other = open_page(bob)
    other.goto("/projects/talk/annotate/")
    assert shown(other) != shown(page)
    other.wait_for_timeout(500)
    rate(page)
    rate_everything(page, 3)
    page.keyboard.press("Enter")
    rate_everything(other, 3)
    other.keyboard.press("Enter")
    wait_for_ratings(page, 3)
    stored = rated(talk)
    assert len(stored) == len(set(stored)) == 3
    assert not Assignment.objects.filter(extra=True).exists()


def test_a_project_without_tasks_ahead_works_as_before(open_page: Open, alice: User, talk: Project) -> None:
    Project.objects.update(tasks_ahead=0)
    for _ in range(3):
        make_task(talk)
    page = open_page(alice)
    page.goto("/projects/talk/annotate/")
    rate(page)
    assert Annotation.objects.count() == 1
    assert Assignment.objects.count() == 2
