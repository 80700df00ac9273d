"""The admin in a real browser: every page opens, silently, for a manager who is no superuser."""

import re

import pytest
from playwright.sync_api import expect

from annotator.models import Project, User
from annotator.stages.annotation import report
from rewards.models import RewardModel, Score
from tests.annotator.models.test_constraints import make_model
from tests.browser.conftest import PASSWORD, Open
from tests.browser.test_accessible import violations
from tests.builders import NOW, imported, label_row, make_member, make_project, make_task, make_user, rate

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
LISTS = [
    "annotator/project",
    "annotator/task",
    "annotator/annotation",
    "annotator/membership",
    "annotator/exclusion",
    "rewards/snapshot",
    "rewards/trainingrun",
    "rewards/rewardmodel",
    "rewards/score",
]


@pytest.fixture
def carol(talk: Project) -> User:
    user = make_user("carol", is_staff=True)
    user.set_password(PASSWORD)
    user.save()
    make_member(talk, user, role="manager")
    return user


@pytest.fixture
def busy(talk: Project, alice: User) -> Project:
    make_task(talk)
    rate(talk, alice)
    imported(talk, label_row("What is it?", "It is this."))
    champion = make_model(talk, 1, is_champion=True)
    RewardModel.objects.update(attributes=["helpfulness"])
    response = talk.tasks.all()[0].responses.all()[0]
    Score.objects.create(reward_model=champion, response=response, scores={"helpfulness": 3.14159}, reward=2.0)
    make_model(talk, 2)
    return talk


def test_every_page_opens(open_page: Open, carol: User, busy: Project) -> None:
    page = open_page(carol)
    page.goto("/admin/")
    expect(page.get_by_role("link", name="Talk").last).to_be_visible()
    expect(page.get_by_text("no worker is running").first).to_be_visible()
    for name in LISTS:
        page.goto(f"/admin/{name}/")
        link = page.locator("#result_list tbody a").first
        if link.count():
            link.click()
            expect(page.locator("#content-main")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_its_colours_have_contrast_and_it_fetches_no_font_but_ours(
    open_page: Open, carol: User, busy: Project, alice: User, scheme: str
) -> None:
    task = busy.tasks.earliest("pk")
    report(task.assignments.earliest("pk").pk, category="bias", note="Look.", now=NOW)
    page, fonts = open_page(carol, color_scheme=scheme, viewport={"width": 1440, "height": 900}), []
    page.on("request", lambda request: fonts.append(request.url) if "nter" in request.url else None)
    model = busy.reward_models.get(version=1)
    pages = ["", f"annotator/task/{task.pk}/change/", "rewards/score/"]
    faint = []
    for address in [*pages, f"rewards/rewardmodel/{model.pk}/change/", "annotator/project/"]:
        page.goto(f"/admin/{address}")
        faint += violations(page, only=["color-contrast"])
    assert faint == []
    assert page.evaluate("document.fonts.check('16px \"Inter Variable\"')")
    assert not [url for url in fonts if url.endswith(".woff2") and "/vendor/inter-" not in url]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_scrolls_sideways(open_page: Open, carol: User, busy: Project, scheme: str) -> None:
    task = busy.tasks.earliest("pk")
    report(task.assignments.earliest("pk").pk, category="bias", note="Look.", now=NOW)
    page = open_page(carol, color_scheme=scheme, viewport={"width": 360, "height": 800})
    wide = []
    for address in ("", f"annotator/task/{task.pk}/change/"):
        page.goto(f"/admin/{address}")
        if page.evaluate("document.documentElement.scrollWidth") > 360:
            wide.append(address)
    assert wide == []


def test_scores_are_listed_in_words(open_page: Open, carol: User, busy: Project) -> None:
    page = open_page(carol)
    page.goto("/admin/rewards/score/")
    expect(page.get_by_text("helpfulness 4.14")).to_be_visible()


def test_a_manager_sees_only_their_own_projects(open_page: Open, carol: User, busy: Project) -> None:
    make_task(make_project("secret"), "hidden-task")
    page = open_page(carol)
    for name in ("annotator/project", "annotator/task"):
        page.goto(f"/admin/{name}/")
        expect(page.get_by_text("secret")).to_have_count(0)
        expect(page.get_by_text("hidden-task")).to_have_count(0)


def test_annotations_cannot_be_changed(open_page: Open, carol: User, busy: Project) -> None:
    page = open_page(carol)
    page.goto("/admin/annotator/annotation/")
    page.locator("#result_list tbody a").first.click()
    expect(page.get_by_role("button", name="Save", exact=True)).to_have_count(0)
    page.get_by_role("link", name="Open in the workspace").click()
    expect(page).to_have_url(re.compile("/projects/talk/data/tasks/"))
