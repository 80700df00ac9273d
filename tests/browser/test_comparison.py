"""The comparison of versions in a real browser: it fits a phone, names the champion and lets one choose."""

from typing import Literal

import pytest
from playwright.sync_api import expect

from annotator.models import Project, User
from rewards.models import RewardModel
from tests.annotator.models.test_constraints import make_model
from tests.browser.conftest import Open
from tests.browser.test_accessible import violations
from tests.builders import ATTRIBUTES
from tests.rewards.evaluated import benchmark_metrics, make_evaluation, noisy_metrics

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def judged(talk: Project) -> None:
    """Three versions on the same held-out prompts, and one of them on a benchmark."""
    models = [make_model(talk, version, is_champion=version == 2) for version in (1, 2, 3)]
    RewardModel.objects.update(attributes=list(ATTRIBUTES))
    for model, noise in zip(models, (1.3, 0.9, 0.85), strict=True):
        make_evaluation(model, metrics=noisy_metrics(model.version, noise, list(ATTRIBUTES)))
    make_evaluation(models[0], name="rewardbench2", metrics=benchmark_metrics(0.5))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_it_is_read_on_a_phone_and_on_a_screen(
    open_page: Open, carol: User, judged: None, width: int, scheme: Literal["light", "dark"]
) -> None:
    page = open_page(carol, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto("/projects/talk/comparison/")
    expect(page.get_by_role("columnheader", name="Version 2")).to_contain_text("Champion")
    page.get_by_text("Parts of the data, and more").click()
    expect(page.get_by_role("rowheader", name="Preference of 2")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert violations(page) == []


def test_what_was_judged_on_is_chosen_from_a_list(open_page: Open, carol: User, judged: None) -> None:
    page = open_page(carol)
    page.goto("/projects/talk/comparison/")
    page.get_by_label("Judged on").select_option(label=page.locator("option", has_text="rewardbench2").inner_text())
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("Math has 1 of 183 rows")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Version 2")).to_have_count(0)
