"""A task in a real browser, with JavaScript and without."""

import pytest
from playwright.sync_api import Page, expect

from annotator.models import Annotation, Guideline, Project, Rating, Task, User
from tests.browser.conftest import Open, ask
from tests.builders import make_task
from tests.each import each

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def rate_everything(page: Page, level: int, scales: int = 10) -> None:
    for scale in page.locator(".likert").all()[:scales]:
        ask(scale).locator("input[type=radio]").nth(level).check()


@pytest.mark.parametrize("javascript", [True, False])
def test_a_whole_task(open_page: Open, talk: Project, alice: User, javascript: bool) -> None:
    Guideline.objects.create(project=talk, version=1, text="# Read *this*")
    make_task(talk, "first")
    make_task(talk, "second", prompt="And the second?")
    page = open_page(alice, java_script_enabled=javascript)
    page.goto("/")
    page.get_by_role("link", name="Rate Talk").click()
    expect(page.get_by_role("heading", name="Read this")).to_be_visible()
    page.get_by_role("button", name="I have read the guidelines").click()
    expect(page.locator(".response")).to_have_count(2)
    rate_everything(page, 3)
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_text("And the second?")).to_be_visible()
    assert {score for rating in Rating.objects.all() for score in rating.scores.values()} == {3}
    assert Annotation.objects.get().guideline_version == 1


def test_a_missing_answer_is_named_and_nothing_is_lost(open_page: Open, talk: Project, alice: User) -> None:
    make_task(talk)
    page = open_page(alice)
    page.goto("/projects/talk/annotate/")
    rate_everything(page, 2, scales=9)
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_role("alert")).to_contain_text("please answer “Verbosity”.")
    expect(page.locator("input[type=radio]:checked")).to_have_count(9)
    assert not Annotation.objects.exists()


def test_the_list_of_missing_answers_shrinks_as_they_are_given(open_page: Open, talk: Project, alice: User) -> None:
    make_task(talk)
    page = open_page(alice)
    page.goto("/projects/talk/annotate/")
    rate_everything(page, 2, scales=8)
    page.get_by_role("button", name="Submit and next").click()
    expect(page.locator("#errors li:not(.done)")).to_have_count(2)
    page.keyboard.press("4")
    expect(page.locator("#errors li:not(.done)")).to_have_count(1)
    page.keyboard.press("4")
    expect(page.locator("#errors")).to_have_count(0)


def test_nothing_is_chosen_beforehand_and_no_model_is_named(open_page: Open, talk: Project, alice: User) -> None:
    make_task(talk)
    page = open_page(alice)
    page.goto("/projects/talk/annotate/")
    expect(page.locator("input:checked")).to_have_count(0)
    assert "model-0" not in page.content()


def test_a_skip_for_pii_takes_the_task_from_everyone(open_page: Open, talk: Project, alice: User) -> None:
    task = make_task(talk)
    page = open_page(alice)
    page.goto("/projects/talk/annotate/")
    page.locator("#skip > summary").click()
    page.get_by_label("Personal information", exact=True).check()
    page.get_by_role("button", name="Skip", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("until a manager has looked")
    task.refresh_from_db()
    assert task.state == Task.State.QUARANTINED


def test_a_report_takes_the_task_from_everyone(open_page: Open, talk: Project, alice: User) -> None:
    task = make_task(talk)
    page = open_page(alice)
    page.goto("/projects/talk/annotate/")
    page.locator("#report > summary").click()
    page.get_by_label("Illegal").check()
    page.get_by_role("button", name="Report", exact=True).click()
    expect(page.get_by_role("heading", name="No task for you right now")).to_be_visible()
    task.refresh_from_db()
    assert task.state == Task.State.QUARANTINED


def test_everything_that_a_project_may_ask_for_is_asked(open_page: Open, talk: Project, alice: User) -> None:
    Project.objects.update(ask_preference=True, ask_safety=True, ask_confidence=True)
    make_task(talk)
    page = open_page(alice)
    page.goto("/projects/talk/annotate/")
    rate_everything(page, 4)
    for group in page.locator(".choice:not(.category)").all():
        ask(group).locator("input").first.check()
    page.get_by_label("Why? (optional)").fill("It is shorter.")
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_role("heading", name="No task for you right now")).to_be_visible()
    stored = Annotation.objects.get()
    assert abs(stored.preference or 0) == 3
    assert stored.justification == "It is shorter."
    assert {rating.safe for rating in stored.ratings.all()} == {True}


@pytest.mark.parametrize("width", [360, 1440])
def test_no_page_scrolls_sideways(open_page: Open, talk: Project, alice: User, width: int) -> None:
    make_task(
        talk, prompt="x" * 500 + "\n\n| a | b |\n|---|---|\n| " + "y" * 300 + " | z |\n\n```\n" + "z" * 400 + "\n```"
    )
    page = open_page(alice, viewport={"width": width, "height": 800})
    for path in ("/", "/projects/talk/annotate/", "/projects/talk/guidelines/"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt:alert(1))",
    "[click](data:text/html,<script>alert(1)</script>)",
    "[click](vbscript:alert(1))",
    '![x](x"onerror="alert(1))',
    "<a href='javascript:alert(1)'>x</a>",
    "<details open ontoggle=alert(1)>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    '```"><script>alert(1)</script>\nx\n```',
    "`<script>alert(1)</script>`",
    "</textarea><script>alert(1)</script>",
    "<style>@import'javascript:alert(1)'</style>",
    "<form action='javascript:alert(1)'><button autofocus onfocus=alert(1)>x</button></form>",
    "{{constructor.constructor('alert(1)')()}}",
    '<http://x" onmouseover="alert(1)>',
]


def test_hostile_text_is_only_text(open_page: Open, talk: Project, alice: User) -> None:
    """Dialogs count as complaints, and the fixture tolerates none."""
    make_task(talk, prompt="\n\n".join(ATTACKS))
    Task.objects.get().responses.update(text="\n\n".join(ATTACKS))
    page = open_page(alice)
    page.goto("/projects/talk/annotate/")
    for link in each(page.locator(".prose a").all()):
        assert (link.get_attribute("href") or "http:").startswith(("http:", "https:", "mailto:"))
    expect(page.locator(".prose script, .prose img, .prose iframe, .prose form, .prose svg")).to_have_count(0)
