"""The page that creates a project, from scratch or as a copy."""

from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client

from annotator.managing.presets import PRESETS, workload
from annotator.managing.project_settings import free_slug, settings_of
from annotator.models import AuditEntry, Guideline, Project, Role
from tests.builders import make_member, make_project, make_task, make_user
from tests.conftest import Cast

SENT = {"name": "Our talks", "rubric": "helpsteer2", "protocol": "helpsteer2", "guidelines": "# Read"}
OWN = {"protocol": "own", "base_annotators": 2, "max_annotators": 4, "escalate_above": 1, "keep": 2, "drop_above": 3}


def test_a_manager_creates_a_project_and_lands_on_its_overview(pages: Client, cast: Cast) -> None:
    answer = pages.post("/new-project/", SENT)
    assert (answer.status_code, answer["Location"]) == (302, "/projects/our-talks/")
    project = Project.objects.get(slug="our-talks")
    assert project.memberships.get().user == cast.carol
    assert project.memberships.get().role == Role.MANAGER
    assert Guideline.objects.get(project=project).text == "# Read"
    assert AuditEntry.objects.get(action="project.created", project="our-talks").actor == "carol"


def test_what_the_product_brings_is_in_the_language_of_the_reader(pages: Client, german: Mapping[str, str]) -> None:
    page = pages.get("/new-project/", headers=german).content.decode()
    assert "Eine Skala für die Qualität insgesamt" in page
    assert "# Richtlinien für Bewertende" in page


@pytest.mark.parametrize("key", PRESETS)
def test_a_preset_gives_its_numbers(pages: Client, key: str) -> None:
    pages.post("/new-project/", SENT | {"protocol": key, "base_annotators": 9, "keep": 7})
    project = Project.objects.get(slug="our-talks")
    assert {name: getattr(project, name) for name in PRESETS[key].numbers} == PRESETS[key].numbers


def test_own_numbers_that_nothing_exceeds_are_named(pages: Client) -> None:
    sent = SENT | OWN | {"escalate_above": 4}
    said = "so the spread never asks for more annotators"
    assert said in pages.post("/new-project/", sent | {"preview": "1"}, HTTP_HX_REQUEST="true").content.decode()
    assert (
        said not in pages.post("/new-project/", SENT | OWN | {"preview": "1"}, HTTP_HX_REQUEST="true").content.decode()
    )
    assert said in pages.post("/new-project/", sent, follow=True).content.decode()


def test_own_numbers_are_taken(pages: Client) -> None:
    pages.post("/new-project/", SENT | OWN)
    project = Project.objects.get(slug="our-talks")
    assert (project.base_annotators, project.max_annotators, project.keep) == (2, 4, 2)
    assert (project.escalate_above, project.drop_above) == (1, 3)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": " "}, "This field is required"),
        ({"slug": "talk"}, "already exists"),
        ({"slug": "ä ö"}, "Enter a valid"),
        ({"rubric": "none"}, "Select a valid choice"),
        ({"protocol": "none"}, "Select a valid choice"),
        (OWN | {"keep": ""}, "Give a number."),
        (OWN | {"max_annotators": 1}, "annotators who are asked first: "),
        (OWN | {"base_annotators": 10**9}, "less than or equal to 25"),
        (OWN | {"escalate_above": -1}, "greater than or equal to 0"),
        ({"description": "x" * 3000}, "at most 2000"),
    ],
)
def test_what_no_project_can_have_comes_back_with_a_reason(pages: Client, wrong: dict[str, Any], said: str) -> None:
    answer = pages.post("/new-project/", SENT | wrong)
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert "# Read" in answer.content.decode()
    assert Project.objects.count() == 1


def test_hostile_names_are_shown_as_text(pages: Client) -> None:
    pages.post("/new-project/", SENT | {"name": "<script>alert(1)</script>"})
    page = pages.get(f"/projects/{Project.objects.latest('pk').slug}/").content.decode()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_the_slug_follows_from_the_name(pages: Client) -> None:
    make_project("our-talks")
    pages.post("/new-project/", SENT)
    assert Project.objects.filter(slug="our-talks-2").exists()
    assert free_slug("Ünïcode & more") == "unicode-more"
    assert free_slug("日本") == "project"
    assert len(free_slug("x" * 300)) == 50
    make_project("x" * 50)
    assert len(free_slug("x" * 300)) <= 50


# The estimate ------------------------------------------------------------------------------------------------


def test_the_estimate_works_without_scripts(pages: Client) -> None:
    answer = pages.post("/new-project/", SENT | {"preview": "1", "tasks_planned": 2000, "name": "", "keep": ""})
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "About 6,820 annotations for 2,000 tasks" in page
    assert "# Read" in page
    assert "not been created" not in page
    assert Project.objects.count() == 1


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"protocol": "quick", "tasks_planned": 10}, "10 annotations for 10 tasks"),
        (OWN | {"tasks_planned": 10}, "20 to 40 annotations for 10 tasks"),
        (OWN | {"tasks_planned": 10, "keep": "no"}, "Complete the numbers"),
        (OWN | {"tasks_planned": 10, "max_annotators": 1}, "Complete the numbers"),
        ({"tasks_planned": "9" * 30}, "Complete the numbers"),
        ({"tasks_planned": ""}, "Complete the numbers"),
    ],
)
def test_htmx_gets_the_estimate_alone(pages: Client, sent: dict[str, Any], said: str) -> None:
    page = pages.post("/new-project/", SENT | {"preview": "1"} | sent, headers={"HX-Request": "true"}).content.decode()
    assert said in page
    assert "<form" not in page


def test_the_published_share_gives_the_published_mean() -> None:
    assert workload(PRESETS["helpsteer2"].numbers, tasks=1000).expected == 3410
    assert workload(PRESETS["double"].numbers, tasks=1000).expected is None


# A copy ------------------------------------------------------------------------------------------------------


def test_a_copy_has_the_settings_and_the_guidelines_but_no_data(pages: Client, project: Project, cast: Cast) -> None:
    Project.objects.update(keep=2, quota=7, paused=True, training_config={"epochs": 3}, gold_every=9)
    Guideline.objects.create(project=project, version=1, text="Older")
    Guideline.objects.create(project=project, version=2, text="In force")
    make_task(project)
    answer = pages.post("/new-project/?copy=", {"source": "talk", "name": "Second talk"})
    assert answer["Location"] == "/projects/second-talk/"
    copy, source = Project.objects.get(slug="second-talk"), Project.objects.get(slug="talk")
    assert settings_of(copy) == settings_of(source)
    assert not copy.paused
    assert [guideline.text for guideline in copy.guidelines.all()] == ["In force"]
    assert copy.tasks.count() == 0
    assert [member.user for member in copy.memberships.all()] == [cast.carol]


def test_nobody_copies_a_project_that_they_do_not_manage(pages: Client, cast: Cast) -> None:
    make_project("secret")
    make_member(make_project("rated"), cast.carol)
    for slug in ("secret", "rated"):
        answer = pages.post("/new-project/?copy=", {"source": slug, "name": "Mine"})
        assert answer.status_code == 422
        assert f'value="{slug}"' not in answer.content.decode()
    assert not Project.objects.filter(name="Mine").exists()


# Who may -----------------------------------------------------------------------------------------------------


def test_annotators_reviewers_and_strangers_are_not_led_to_it(cast: Cast, client: Client, project: Project) -> None:
    project.memberships.filter(user=cast.bob).update(role=Role.REVIEWER)
    for user in (cast.alice, cast.bob, cast.dave):
        client.force_login(user)
        assert "/new-project/" not in client.get("/").content.decode()


def test_a_superuser_of_an_empty_installation_is_led_to_it(client: Client, db: None) -> None:
    make_project("there").delete()
    client.force_login(make_user("root", is_superuser=True))
    page = client.get("/").content.decode()
    assert "Create your first project" in page
    assert '"/new-project/"' in page
    assert client.post("/new-project/", SENT).status_code == 302


def test_the_spreads_of_presets_are_in_proportion_to_the_scale() -> None:
    of_levels = [PRESETS["helpsteer2"].numbers_for(levels) for levels in (2, 3, 4, 5, 6, 7)]
    assert [numbers["escalate_above"] for numbers in of_levels] == [0, 1, 1, 2, 2, 3]
    assert [numbers["drop_above"] for numbers in of_levels] == [0, 1, 1, 2, 2, 3]
    assert {numbers["base_annotators"] for numbers in of_levels} == {3}


@pytest.mark.parametrize("protocol", PRESETS)
@pytest.mark.parametrize(("rubric", "spread"), [("helpsteer2", 2), ("yes_no", 0)])
def test_every_preset_fits_every_rubric(pages: Client, protocol: str, rubric: str, spread: int) -> None:
    assert pages.post("/new-project/", SENT | {"rubric": rubric, "protocol": protocol}).status_code == 302
    project = Project.objects.get(slug="our-talks")
    assert (project.escalate_above, project.drop_above) == (spread, spread)
