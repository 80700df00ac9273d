"""A task of many segments is rated as quickly as one of few, and leaves the page whatever its size."""

import os
from statistics import quantiles
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.limits import MOST_SEGMENTS
from annotator.models import Draft, Project, Rating, Rubric, User
from annotator.stages import annotation, assignment
from tests.browser.conftest import Open
from tests.builders import imported, task_row
from tests.celery_workers import wait_for

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
KEY_MS, FILL_MS = 16, 100
ASPECTS = 5
# The time from the key to the end of what it does, layout included.
MEASURED = """() => {
  let began = 0;
  addEventListener("keydown", () => { began = performance.now(); }, { capture: true });
  addEventListener("keydown", () => { document.body.offsetHeight; window.spent.push(performance.now() - began); });
}"""


def imported_task(*segments: int) -> None:
    Project.objects.update(rubric=Rubric.objects.get(key="helpsteer2d", project=None))
    row: dict[str, Any] = task_row("t-1", prompt="How do I boil rice?")
    row["responses"] = [{"text": " ".join(f"Step {n} is boiling it." for n in range(count))} for count in segments]
    assert imported(Project.objects.get(), row).rejected == []


def opened(open_page: Open, user: User, *segments: int) -> Page:
    imported_task(*segments)
    page = open_page(user)
    page.set_default_timeout(60_000)
    page.goto("/projects/talk/annotate/")
    page.wait_for_load_state("load")
    return page


def busy() -> float:
    """How many times as long a page may take where other tests want the processors as well."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def spent(page: Page, *keys: str) -> list[float]:
    page.evaluate("window.spent = []")
    for key in keys:
        page.keyboard.press(key)
    return [float(time) for time in page.evaluate("window.spent")]


def test_keys_and_filling_keep_their_time_with_200_segments(open_page: Open, talk: Project, alice: User) -> None:
    page = opened(open_page, alice, 200)
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
    page.evaluate(MEASURED)
    by_key = spent(page, *"12345x43512345")
    assert quantiles(by_key)[0] < KEY_MS, by_key  # a busy machine only adds to it
    filling = []
    for _ in range(3):
        filling += spent(page, "f")
        page.get_by_role("button", name="Undo").click()
    assert min(filling) < FILL_MS * busy(), filling
    page.keyboard.press("f")
    assert page.locator(".cell").evaluate_all("cells => cells.filter((cell) => !cell.value).length") == 0
    expect(page.locator("#answered")).to_have_text(f"{200 * ASPECTS} of {200 * ASPECTS} answered")


def cells_of(draft: Draft | None) -> list[str]:
    return [name for name in (draft.form if draft else {}) if name.startswith("seg-")]


def test_the_most_segments_are_kept_and_submitted(open_page: Open, talk: Project, alice: User) -> None:
    page = opened(open_page, alice, MOST_SEGMENTS)
    page.keyboard.press("3")
    page.keyboard.press("f")
    # Playwright's own look at a page of thousands of fields takes seconds.
    wait_for(lambda: len(cells_of(Draft.objects.first())) == MOST_SEGMENTS * ASPECTS, what="the draft")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Saved at")).to_be_visible(timeout=30_000)
    scores = Rating.objects.get().segment_scores or []
    assert len(scores) == MOST_SEGMENTS
    assert scores[0] == [2, 4, 4, 4, 4]


def test_many_segments_are_submitted_without_scripts(open_page: Open, talk: Project, alice: User) -> None:
    imported_task(80, 80)
    held = assignment.claim(Project.objects.get(), alice, now=database_now()).assignment
    assert held is not None
    keys = [aspect.key for aspect in held.task.project.aspects()]
    responses = annotation.responses_to_rate(held)
    cells = {f"seg-{response.public_id}-{n}-{key}": "4" for response in responses for n in range(80) for key in keys}
    annotation.save_draft(held.pk, cells, now=database_now())
    page = open_page(alice, java_script_enabled=False)
    page.goto("/projects/talk/annotate/")
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    assert [len(rating.segment_scores or ()) for rating in Rating.objects.all()] == [80, 80]
