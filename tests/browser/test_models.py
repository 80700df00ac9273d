"""A manager starts a run on a small project, watches it, opens the version, promotes it and rolls back."""

from typing import Any, Literal

import pytest
from playwright.sync_api import Page, expect

from annotator.models import Project, Role, User
from rewards import tasks
from rewards.models import RewardModel, RunState, TrainingRun
from tests.browser.conftest import Open
from tests.browser.test_accessible import violations
from tests.builders import ATTRIBUTES, NOW, make_member
from tests.rewards.evaluated import make_evaluation, noisy_metrics
from tests.rewards.labelled import labelled_project
from tests.rewards.leaderboard.test_rated_models import add_tasks, label
from tests.rewards.scored import make_model

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("workers"),
]
QUICK = {"threads": 1, "batch_tokens": 512}


@pytest.mark.xdist_group("scoring")
def test_a_manager_trains_promotes_and_rolls_back(open_page: Open, carol: User) -> None:
    project = labelled_project(tasks=60, training_config=QUICK, promote_automatically=False)
    make_member(project, carol, Role.MANAGER)
    page = open_page(carol)
    for version in (1, 2):
        _train(page, project, seed=version)
        page.get_by_role("link", name=f"Its model: version {version}").click()
        expect(page.get_by_role("heading", name="Predicted against human")).to_be_visible()
        expect(page.get_by_role("heading", name="Where it is furthest from people")).to_be_visible()
        _promote(page)
        expect(page.get_by_text(f"Version {version} is the champion now.")).to_be_visible()
    page.get_by_role("link", name="Runs and versions").click()
    expect(page.get_by_role("heading", name="Version 2 is the champion")).to_be_visible()
    page.get_by_role("link", name="Roll back to version 1").click()
    page.get_by_role("button", name="Roll back to version 1").click()
    expect(page.get_by_text("Version 1 is the champion now.")).to_be_visible()
    assert RewardModel.objects.get(is_champion=True).version == 1


def _train(page: Page, project: Project, *, seed: int) -> None:
    """Starts a run with this seed, sees it wait, lets a worker take it, and sees the page show its end by itself."""
    page.goto(f"/projects/{project.slug}/models/")
    page.get_by_role("link", name="Start a training run").click()
    expect(page.get_by_text("Prompts held out to judge it")).to_be_visible()
    page.get_by_label("How to learn").select_option("quick")
    page.get_by_text("All other settings").click()
    page.get_by_label("Seed").fill(str(seed))
    if (nothing_new := page.get_by_label("Start a run although nothing new has been labelled")).count():
        nothing_new.check()
    page.get_by_role("button", name="Start the run").click()
    expect(page.get_by_text("It waits for a worker of the queue")).to_be_visible()
    run = TrainingRun.objects.get(state=RunState.QUEUED)
    tasks.train(run.pk)
    expect(page.get_by_role("heading", name="On the held-out prompts")).to_be_visible(timeout=15_000)


def _promote(page: Page) -> None:
    """Promotes the version; one that the gate turned down asks for a tick first."""
    if page.get_by_label("I have read this").count():
        page.get_by_label("I have read this").check()
    page.get_by_role("button", name="Promote").click()


@pytest.fixture
def world(talk: Project) -> dict[str, Any]:
    """A champion, a run that trains, and models whose responses were rated."""
    model = make_model(talk, is_champion=True, promoted_at=NOW)
    make_evaluation(model, metrics=noisy_metrics(1, 0.8, list(ATTRIBUTES)))
    for task, levels in zip(add_tasks(talk, -2, -1, 2, 0), ((4, 1), (3, 2), (1, 3), (2, 2)), strict=True):
        label(task, *levels)
    steps = [{"event": "step", "time": n, "step": n, "steps": 90, "loss": 2 / n, "stage": "a"} for n in range(1, 31)]
    run = TrainingRun.objects.create(
        project=talk, reason="a test", state=RunState.TRAINING, losses=steps, progress=steps[-1], started_at=NOW
    )
    return {"model": model.pk, "run": run.pk}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize(
    "address",
    ["", "runs/{run}/", "{model}/", "ranking/", "runs/start/"],
    ids=["list", "run", "version", "rank", "start"],
)
def test_the_pages_fit_phones_and_screens_and_are_accessible(
    open_page: Open,
    carol: User,
    world: dict[str, Any],
    address: str,
    width: int,
    scheme: Literal["light", "dark"],
) -> None:
    page = open_page(carol, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(f"/projects/talk/models/{address.format(**world)}")
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    # In dark only contrast can be otherwise.
    assert violations(page, only=["color-contrast"] if scheme == "dark" else []) == []


def test_the_open_log_stays_open_while_the_run_works(open_page: Open, carol: User, world: dict[str, Any]) -> None:
    page = open_page(carol)
    page.goto(f"/projects/talk/models/runs/{world['run']}/")
    page.get_by_text("The last lines of its log").click()
    TrainingRun.objects.filter(pk=world["run"]).update(log="It has read the prompts.\n")
    expect(page.get_by_text("It has read the prompts.")).to_be_visible(timeout=10_000)
    expect(page.locator("figure[data-drawn] svg").first).to_be_visible()
