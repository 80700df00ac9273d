"""Every annotator page against axe-core, in light and dark, and in narrow windows."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from annotator.analysis.quality import assessment, flags
from annotator.models import Assignment, Guideline, Membership, Project, Role, User
from annotator.stages.annotation import report, submit
from annotator.stages.gold import qualification
from annotator.stages.review import adjudicate, judge
from tests.browser.conftest import Complaints, Open
from tests.browser.test_annotate import rate_everything
from tests.builders import ATTRIBUTES, NOW, claimed, make_gold, make_member, make_task, make_user, submission

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
RESPONSES = re.compile("/annotate/|/revise/|/tasks/")
RICH = """A **list**, some `code`, a link to <https://example.org>:

- one
- two

| a | b |
|---|---|
| 1 | 2 |

> quoted

```python
def f(x: int) -> str:  # a comment
    return "text" * 3
```

And $e^{i\\pi} = -1$. Write to jane.doe@example.org."""


@pytest.fixture
def addresses(talk: Project, alice: User) -> list[str]:
    """One address of every page that an annotator or a manager sees, with something on it."""
    Project.objects.update(ask_preference=True, ask_safety=True, ask_confidence=True, base_annotators=2)
    talk.refresh_from_db()
    Guideline.objects.create(project=talk, version=1, text=f"# Read this\n\n{RICH}")
    Membership.objects.update(acknowledged_version=1)
    for kind in ("practice", "test"):
        for _ in range(2):
            make_gold(talk, use=kind)
    member = alice.memberships.select_related("project").get()
    run = qualification.begin(member, "practice", now=NOW)
    task = qualification.next_task(run)
    assert task is not None
    answers = {response.pk: response.expert_rating.scores for response in task.responses.all()}
    qualification.answer(run, task, answers, now=NOW)
    done = _rated(talk, alice)
    make_task(talk, prompt=RICH)
    alice.memberships.update(role=Role.MANAGER)  # who may read what others do, too
    return [
        "/",
        "/projects/talk/guidelines/",
        "/projects/talk/annotate/",
        "/projects/talk/annotate/?raw=1",
        "/projects/talk/qualification/",
        f"/qualification/{run.pk}/",
        f"/qualification/{run.pk}/tasks/{task.public_id}/",
        "/projects/talk/history/",
        f"/assignments/{done[0].pk}/revise/",
        f"/assignments/{done[1].pk}/revise/",
        "/projects/talk/agreement/",
        "/projects/talk/data/",
        "/projects/talk/data/?spread=99&q=-x&language=en",
        f"/projects/talk/data/tasks/{done[0].task.public_id}/",
        "/projects/talk/data/quarantine/",
        "/projects/talk/data/export/?layout=annotations",
        "/mine/",
        "/glossary/",
        "/settings/",
        "/password/",
        "/nowhere/",
    ]


def _rated(talk: Project, alice: User) -> list[Assignment]:
    """A closed and an open task that alice has rated."""
    bob = make_user("bob")
    extra: dict[str, Any] = {"preference": 1}
    for _ in range(6):
        make_task(talk)
        _safely(talk, alice, **extra)
        _safely(talk, bob, **extra)
    make_task(talk)
    _safely(talk, alice, **extra)
    mine = Assignment.objects.filter(annotator=alice).order_by("pk")
    return [mine.earliest("pk"), mine.latest("pk")]


def _safely(talk: Project, user: User, *, level: int = 3, **fields: Any) -> None:
    held = claimed(talk, user)
    plain = submission(held.task, level, **fields)
    ratings = {pk: replace(rating, confidence=2, safe=True) for pk, rating in plain.ratings.items()}
    submit(held.pk, replace(plain, ratings=ratings), now=NOW)


def violations(page: Page, *, only: Sequence[str] = ()) -> list[str]:
    """Returns what breaks axe's rules, or only some of them.

    What breaks none stays in the browser: to describe every such element takes longer than to look at it.
    """
    options = {"resultTypes": ["violations"]} | ({"runOnly": list(only)} if only else {})
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    faults = page.evaluate("options => axe.run(options).then(result => result.violations)", options)
    return [
        f"{page.url} {violation['id']}: {violation['nodes'][0]['html'][:200]} ({len(violation['nodes'])})"
        for violation in faults
    ]


def test_axe_finds_what_is_wrong(open_page: Open, alice: User) -> None:
    """Whole, and of some rules only; otherwise none of the others could fail."""
    page = open_page(alice)
    page.goto("/glossary/")
    page.evaluate("document.querySelector('main').insertAdjacentHTML('beforeend', '<p id=faint>Faint</p><button>')")
    page.evaluate("document.querySelector('#faint').style.cssText = 'color: #ddd; background: #fff'")
    assert [fault.split()[1] for fault in violations(page, only=["color-contrast"])] == ["color-contrast:"]
    assert {"color-contrast:", "button-name:"} <= {fault.split()[1] for fault in violations(page)}


@pytest.mark.parametrize(("scheme", "locale"), [("light", "en-US"), ("dark", "de-DE")])
@pytest.mark.parametrize("layout", ["below", "beside"])
def test_axe_finds_nothing(
    open_page: Open, alice: User, addresses: list[str], complaints: Complaints, scheme: str, locale: str, layout: str
) -> None:
    """What axe sees of a language (names, the page's lang) and of a scheme (contrast) does not depend on the other.

    The layout is one of responses and their scales, so the other pages need no second look.
    """
    User.objects.update(layout=layout)
    if layout == "beside":
        addresses = [address for address in addresses if RESPONSES.search(address)]
    page = open_page(alice, color_scheme=scheme, locale=locale)
    faults = []
    for address in addresses:
        page.goto(address)
        faults += violations(page)
    complaints.seen.clear()  # Chromium logs the 404
    assert faults == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_what_opens(open_page: Open, alice: User, addresses: list[str], scheme: str) -> None:
    page = open_page(alice, color_scheme=scheme)
    page.goto("/projects/talk/annotate/")
    rate_everything(page, 1, scales=2)
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_role("alert")).to_be_visible()
    faults = violations(page)
    page.keyboard.press("s")
    faults += violations(page)
    page.keyboard.press("Escape")
    for key in ("?", "g"):
        page.locator("h1").first.focus()
        page.keyboard.press(key)
        expect(page.get_by_role("dialog")).to_be_visible()
        faults += violations(page)
        page.keyboard.press("Escape")
    assert faults == []


def test_axe_finds_nothing_on_the_login_page(open_page: Open, alice: User) -> None:
    page = open_page(alice)
    page.context.clear_cookies()
    page.goto("/login/")
    assert violations(page) == []


@pytest.mark.parametrize("layout", ["below", "beside"])
@pytest.mark.parametrize("width", [360, 720])
def test_nothing_scrolls_sideways(
    open_page: Open, alice: User, addresses: list[str], complaints: Complaints, width: int, layout: str
) -> None:
    """720 pixels are a window of 1440 at 200 % zoom. In German, whose words are longer."""
    User.objects.update(layout=layout)
    page = open_page(alice, viewport={"width": width, "height": 800}, locale="de-DE")
    wide = []
    for address in addresses:
        page.goto(address)
        if page.evaluate("document.documentElement.scrollWidth") > width:
            wide.append(address)
    complaints.seen.clear()
    assert wide == []


# For reviewers and managers --------------------------------------------------------------------------------


@pytest.fixture
def carol(talk: Project, alice: User) -> User:
    """A manager, with one task of each kind that waits: dropped, set aside, settled and partly rejected."""
    Project.objects.update(ask_preference=True, ask_safety=True, ask_confidence=True, max_annotators=3)
    talk.refresh_from_db()
    manager = make_user("carol", is_staff=True)
    make_member(talk, manager, role="manager")
    for number in range(3):
        make_task(talk, f"t-{number}", prompt=RICH)
        for user, level in zip((alice, make_user(f"b{number}"), make_user(f"e{number}")), (0, 4, 4), strict=True):
            _safely(talk, user, level=level, preference=1, justification="Because of the table.")
    _, aside, settled = talk.tasks.order_by("pk")
    report(aside.assignments.earliest("pk").pk, category="bias", note="Look.", now=NOW)
    scores = {response.pk: dict.fromkeys(ATTRIBUTES, 2) for response in settled.responses.all()}
    adjudicate(settled.pk, scores=scores, reason="slip", comment="Look.", preference=1, by=manager, now=NOW)
    judge(settled.assignments.earliest("pk").pk, decision="rejected", comment="Far off.", by=manager, now=NOW)
    _looked_into(talk, alice)
    return manager


def _looked_into(talk: Project, user: User) -> None:
    """Something stands out in the user's work."""
    assessment.assess(talk, now=NOW)
    hurried = {"hurried": 30, "timed": 40, "seconds": 9.0}
    flag = {"kind": flags.FlagKind.SPEEDING, "evidence": hurried, "examples": [talk.tasks.earliest("pk").pk]}
    talk.rater_qualities.filter(annotator=user).update(flags=[flag])


def overseen(talk: Project) -> list[str]:
    tasks = [f"/projects/talk/review/{task.public_id}/" for task in talk.tasks.order_by("pk")]
    return [
        "/",
        "/projects/talk/annotators/",
        "/projects/talk/review/",
        *tasks,
        "/projects/talk/review/submissions/?verdict=all",
    ]


@pytest.mark.parametrize(("scheme", "locale"), [("light", "en-US"), ("dark", "de-DE")])
def test_axe_finds_nothing_in_the_review_and_nothing_scrolls_sideways(
    open_page: Open, talk: Project, carol: User, scheme: str, locale: str
) -> None:
    page = open_page(carol, color_scheme=scheme, locale=locale)
    faults, wide = [], []
    for address in overseen(talk):
        page.set_viewport_size({"width": 1440, "height": 900})
        page.goto(address)
        faults += violations(page)
        page.set_viewport_size({"width": 360, "height": 800})
        if page.evaluate("document.documentElement.scrollWidth") > 360:
            wide.append(address)
    assert (faults, wide) == ([], [])


def test_a_rejected_rating_is_told_to_its_annotator_accessibly(open_page: Open, alice: User, carol: User) -> None:
    page = open_page(alice)
    page.goto("/projects/talk/history/")
    expect(page.get_by_text("Rejected by a reviewer")).to_be_visible()
    assert violations(page) == []
