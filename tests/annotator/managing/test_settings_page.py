"""The page of a project's settings: what it saves, what it foretells, and how a project ends."""

from typing import Any

import pytest
from django.db.models import Field
from django.test import Client
from django.utils.text import capfirst
from rest_framework.test import APIClient

from annotator.api.projects import AnnotatorsProjectSerializer, ProjectSerializer, ReviewersProjectSerializer
from annotator.infrastructure.limits import MOST_ANNOTATORS
from annotator.managing import project_settings
from annotator.managing.preset_rubrics import AttributeText, RubricText
from annotator.managing.presets import NUMBERS
from annotator.managing.rubrics import offer
from annotator.managing.setting_table import NAMES, RECOUNTING, TRAINER
from annotator.models import AuditEntry, Project, Role, Rubric, Task, User
from annotator.pages.projects.new_project_form import ASKED, NewProjectForm
from annotator.pages.projects.project_settings_form import ProjectSettingsForm
from annotator.stages import assignment
from tests.builders import NOW, make_project, make_task, make_user, rate
from tests.conftest import As, Cast

PAGE = "/projects/talk/settings/"


def shown(client: Client) -> dict[str, Any]:
    """What a browser would send of the page as it is."""
    form = client.get(PAGE).context["form"]
    values = {field.name: field.value() for field in form}
    return {name: value for name, value in values.items() if value is not None and value is not False}


def disputed(project: Project, cast: Cast) -> None:
    """Two complete tasks of three raters, one of them with a spread of two."""
    for levels in ((1, 2, 3), (2, 2, 2)):
        make_task(project)
        for user, level in zip(cast.annotators, levels, strict=True):
            rate(project, user, level)


def test_sending_the_page_as_it_is_changes_nothing(pages: Client, project: Project) -> None:
    Project.objects.update(training_config={"epochs": 3, "stages": ["regression", "scaled"], "seed": 7}, quota=3)
    before = Project.objects.values().get()
    assert pages.post(PAGE, shown(pages)).status_code == 302
    assert Project.objects.values().get() == before
    assert not AuditEntry.objects.filter(action="project.changed").exists()


def test_a_change_is_saved_and_recorded(pages: Client, project: Project) -> None:
    answer = pages.post(PAGE, shown(pages) | {"name": "Better", "keep": 2, "quota": 12}, follow=True)
    project.refresh_from_db()
    assert (project.name, project.keep, project.quota) == ("Better", 2, 12)
    assert "The settings are saved." in answer.content.decode()
    assert "being recomputed in the background" in answer.content.decode()
    changed = AuditEntry.objects.get(action="project.changed").details["changed"]
    assert changed == {"name": ["Talk", "Better"], "keep": [3, 2], "quota": [0, 12]}


def test_a_switch_can_be_switched_off(pages: Client, project: Project) -> None:
    Project.objects.update(paused=True, ask_safety=True)
    sent = shown(pages)
    del sent["paused"]
    pages.post(PAGE, sent)
    project.refresh_from_db()
    assert (project.paused, project.ask_safety) == (False, True)


def test_the_trainers_settings_become_one_object(pages: Client, project: Project) -> None:
    trainer = {"epochs": 4, "stages": "regression,scaled", "learning_rate": "0.00005", "further": '{"seed": 7}'}
    pages.post(PAGE, shown(pages) | trainer)
    project.refresh_from_db()
    expected = {"epochs": 4, "stages": ["regression", "scaled"], "learning_rate": 5e-05, "seed": 7}
    assert project.training_config == expected
    fields = shown(pages)
    assert (fields["epochs"], fields["stages"]) == (4, "regression,scaled")
    assert '"seed": 7' in fields["further"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"keep": 26}, "less than or equal to 25"),
        ({"max_annotators": 2}, "annotators who are asked first: "),
        ({"keep": "3.5"}, "Enter a whole number"),
        ({"slug": "other"}, "already exists"),
        ({"spread_attribute": "mood"}, "The rubric has no such attribute."),
        ({"validation_share": "nan"}, "Enter a number"),
        ({"validation_share": "0.9"}, "less than or equal to 0.5"),
        ({"further": "{"}, "This is not JSON"),
        ({"further": "[1]"}, "Write an object"),
        ({"further": "[" * 9000}, "This is not JSON"),
        ({"further": '{"epochs": 2}', "epochs": 3}, "It has a field of its own: epochs."),
        ({"further": '{"colour": 1}'}, "colour"),
        ({"further": '{"backbone_source": "/etc"}'}, "not among them"),
        ({"epochs": 10**8}, "epochs"),
        ({"backbone": "mine"}, "Select a valid choice"),
        ({"quota": 10**12}, "less than or equal to"),
    ],
)
def test_what_no_project_can_have_is_refused_at_its_field(
    pages: Client, project: Project, cast: Cast, wrong: dict[str, Any], said: str
) -> None:
    make_project("other")
    make_task(project)
    rate(project, cast.alice)
    before = Project.objects.filter(pk=project.pk).values().get()
    answer = pages.post(PAGE, shown(pages) | wrong)
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert Project.objects.filter(pk=project.pk).values().get() == before


def test_the_rubric_stays_once_something_is_rated(pages: Client, project: Project, cast: Cast) -> None:
    make_task(project)
    rate(project, cast.alice)
    assert pages.get(PAGE).context["form"].fields["rubric"].disabled
    assert pages.post(PAGE, shown(pages) | {"rubric": "helpsteer2d"}).status_code == 302
    project.refresh_from_db()
    assert project.rubric.key == "helpsteer2"


def test_another_rubric_offers_its_own_attributes(pages: Client, project: Project, cast: Cast) -> None:
    offer(RubricText("mine", "Mine", (AttributeText("tone", "Tone", ("Rude", "Friendly")),)), by=cast.carol)
    Rubric.objects.update(made_by=None)
    chosen = {"rubric": Rubric.objects.get(key="mine").pk}
    answer = pages.post(PAGE, shown(pages) | chosen)
    assert "The rubric has no such attribute." in answer.content.decode()
    assert answer.context["form"].fields["spread_attribute"].choices == [("tone", "Tone")]
    deciding = {"spread_attribute": "tone", "escalate_above": 1, "drop_above": 1}
    assert pages.post(PAGE, shown(pages) | chosen | deciding).status_code == 302
    project.refresh_from_db()
    assert (project.rubric.key, project.spread_attribute) == ("mine", "tone")


# Limits that nothing exceeds ---------------------------------------------------------------------------------

NEVER = "so the spread never asks for more annotators. Half of the scale is usual: ask more above 2."


def test_a_limit_that_no_ratings_exceed_is_named_before_and_after_it_is_saved(pages: Client, project: Project) -> None:
    sent = shown(pages)
    assert "never asks" not in pages.get(PAGE).content.decode()
    assert NEVER in pages.post(PAGE, sent | {"escalate_above": 4, "preview": "1"}).content.decode()
    pages.post(PAGE, sent | {"escalate_above": 4})
    assert pages.get(PAGE).content.decode().count(NEVER) == 2, "as a message, and beside the numbers"


def test_who_asks_nobody_more_in_any_case_is_not_warned(pages: Client, project: Project) -> None:
    project_settings.change(project, {"max_annotators": 3, "escalate_above": 4})
    assert "never asks" not in pages.get(PAGE).content.decode()


def test_settings_of_segments_are_asked_only_where_segments_are_rated(pages: Client, project: Project) -> None:
    assert "Annotators may join and split segments" not in pages.get(PAGE).content.decode()
    Project.objects.update(allow_recut=True, spread_share=0.25)
    assert pages.post(PAGE, shown(pages) | {"name": "Ours"}).status_code == 302
    project.refresh_from_db()
    assert (project.name, project.allow_recut, project.spread_share) == ("Ours", True, 0.25)
    sent = shown(pages)
    project_settings.change(project, {"allow_recut": False})
    assert "Annotators may join and split segments" in pages.post(PAGE, sent).content.decode(), "changed meanwhile"
    project_settings.change(
        project, {"rubric": Rubric.objects.offered().get(key="helpsteer2d"), "spread_attribute": "clarity"}
    )
    assert 'name="allow_recut"' in pages.get(PAGE).content.decode()


def test_the_unit_is_asked_where_selected_words_are_cut_by_it(pages: Client, project: Project) -> None:
    assert 'name="segment_unit"' not in pages.get(PAGE).content.decode()
    Project.objects.update(learn_evidence=True)
    page = pages.get(PAGE).content.decode()
    assert ('name="segment_unit"' in page, 'name="allow_recut"' in page) == (True, False)
    assert pages.post(PAGE, shown(pages) | {"segment_unit": "step"}).status_code == 302
    project.refresh_from_db()
    assert (project.segment_unit, project.learn_evidence) == ("step", True)


# Every door has every setting ----------------------------------------------------------------------------------

NO_SETTINGS = {"id", "created_at", "archived_at", "deleted_at", "releases_made"}


def test_the_table_has_every_setting_of_the_model_once() -> None:
    of_model = {field.name for field in Project._meta.concrete_fields} - NO_SETTINGS
    assert sorted((*NAMES, TRAINER)) == sorted(of_model)


def test_every_door_has_every_setting_of_the_table() -> None:
    assert ProjectSettingsForm.Meta.fields == NAMES
    assert set(ProjectSerializer.Meta.fields) >= {*NAMES, TRAINER}
    assert set(ReviewersProjectSerializer.Meta.fields) >= RECOUNTING | {"quota", "review_unlikely_percent"}
    assert not set(AnnotatorsProjectSerializer.Meta.fields) & (RECOUNTING | {"gold_every", "validation_share", TRAINER})


def test_a_setting_has_one_name_and_one_sentence_everywhere(project: Project, cast: Cast) -> None:
    forms = (ProjectSettingsForm(project), NewProjectForm(cast.carol))
    shown = {name: form.fields[name] for form in forms for name in (*NUMBERS, *ASKED)}
    assert {name: (field.label, field.help_text) for name, field in shown.items()} == {
        name: (capfirst(field.verbose_name), field.help_text)
        for name in shown
        if isinstance(field := Project._meta.get_field(name), Field)
    }
    assert forms[1].fields["keep"].widget.attrs == {"min": 1, "max": MOST_ANNOTATORS}


# Two at once -------------------------------------------------------------------------------------------------


def test_the_second_of_two_managers_sees_what_the_first_has_changed(pages: Client, project: Project) -> None:
    sent = shown(pages)
    project_settings.change(project, {"quota": 50, "keep": 2})
    answer = pages.post(PAGE, sent | {"name": "Mine", "keep": 1})
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "Tasks for one annotator: <del>0</del> <ins>50</ins>" in page
    assert "you have changed it too" in page
    project.refresh_from_db()
    assert (project.name, project.quota, project.keep) == ("Talk", 50, 2)
    again = answer.context["form"].data.dict()
    assert (again["name"], again["quota"], again["keep"]) == ("Mine", "50", "1")
    assert pages.post(PAGE, again).status_code == 302
    project.refresh_from_db()
    assert (project.name, project.quota, project.keep) == ("Mine", 50, 1)


def test_a_page_of_before_overwrites_nothing_that_it_does_not_change(pages: Client, project: Project) -> None:
    sent = shown(pages)
    project_settings.change(project, {"paused": True})
    assert pages.post(PAGE, sent).status_code == 409
    project.refresh_from_db()
    assert project.paused


@pytest.mark.parametrize("seen", ["", "nonsense", "eyJuYW1lIjoiWCJ9:1x:y"])
def test_a_page_that_does_not_say_what_it_has_seen_is_compared_with_now(
    pages: Client, project: Project, seen: str
) -> None:
    assert pages.post(PAGE, shown(pages) | {"seen": seen, "quota": 3}).status_code == 302
    project.refresh_from_db()
    assert project.quota == 3


# What a change would do --------------------------------------------------------------------------------------


def test_the_page_says_what_a_change_would_do(pages: Client, project: Project, cast: Cast) -> None:
    disputed(project, cast)
    sent = shown(pages) | {"escalate_above": 1, "drop_above": 0, "preview": "1"}
    page = pages.post(PAGE, sent, headers={"HX-Request": "true"}).content.decode()
    assert "<strong>1</strong> complete task would reopen" in page
    assert "<strong>2</strong> labels would be dropped" in page
    assert "<form" not in page
    whole = pages.post(PAGE, sent).content.decode()
    assert "complete task would reopen" in whole
    assert 'name="escalate_above" value="1"' in whole
    project.refresh_from_db()
    assert project.escalate_above == 2


def test_rest_says_the_same_and_the_recount_does_it(project: Project, cast: Cast, as_user: As, pages: Client) -> None:
    disputed(project, cast)
    client: APIClient = as_user(cast.carol)
    answer = client.patch("/api/v1/projects/talk/?dry_run=1", {"escalate_above": 1})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["reopened"], body["labels_lost"]) == ({"number": 1, "margin": 0}, {"number": 2, "margin": 0})
    assert body["is_exact"]
    assert not AuditEntry.objects.filter(action="project.changed").exists()
    assert client.patch("/api/v1/projects/talk/", {"escalate_above": 1}).json()["escalate_above"] == 1
    project.refresh_from_db()
    assignment.recount(project, now=NOW)
    assert project.tasks.filter(state=Task.State.OPEN).count() == 1


def test_a_dry_run_refuses_what_the_change_would_refuse(project: Project, cast: Cast, as_user: As) -> None:
    client: APIClient = as_user(cast.carol)
    assert client.patch("/api/v1/projects/talk/?dry_run=1", {"keep": 26}).status_code == 400
    assert client.patch("/api/v1/projects/talk/?dry_run=maybe", {"keep": 2}).status_code == 400
    assert as_user(cast.alice).patch("/api/v1/projects/talk/?dry_run=1", {"keep": 2}).status_code == 403
    assert as_user(cast.dave).patch("/api/v1/projects/talk/?dry_run=1", {"keep": 2}).status_code == 404


# The end of a project ----------------------------------------------------------------------------------------


def test_a_project_is_archived_brought_back_and_deleted_by_its_name(pages: Client, project: Project) -> None:
    make_task(project)
    assert pages.post(f"{PAGE}archive/").status_code == 302
    assert "1 archived project" in pages.get("/").content.decode()
    pages.post(f"{PAGE}restore/")
    project.refresh_from_db()
    assert project.archived_at is None
    assert pages.post(f"{PAGE}delete/", {"confirm": "Talk"}).status_code == 422
    pages.post(f"{PAGE}archive/")
    page = pages.get(f"{PAGE}delete/").content.decode()
    assert "type the project's name" in page.replace("&#x27;", "'")
    wrong = pages.post(f"{PAGE}delete/", {"confirm": "talks"})
    assert (wrong.status_code, Project.objects.count()) == (422, 1)
    assert pages.post(f"{PAGE}delete/", {"confirm": "Talk"})["Location"] == "/"
    assert not Project.objects.exists()


# Who may -----------------------------------------------------------------------------------------------------


ADDRESSES = [PAGE, f"{PAGE}archive/", f"{PAGE}restore/", f"{PAGE}delete/"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_it_is_for_managers_alone(project: Project, cast: Cast, client: Client, address: str) -> None:
    project.memberships.filter(user=cast.bob).update(role=Role.REVIEWER)
    expected: list[tuple[User, int]] = [(cast.alice, 403), (cast.bob, 403), (cast.dave, 404)]
    for user, status in expected:
        client.force_login(user)
        assert client.post(address, {"confirm": "Talk"}).status_code == status
    client.logout()
    assert client.post(address)["Location"].startswith("/login/")
    client.force_login(make_user("root", is_superuser=True))
    assert client.post(address, {}).status_code in (302, 422)


def test_reviewers_do_not_see_the_tab(project: Project, cast: Cast, client: Client) -> None:
    project.memberships.filter(user=cast.bob).update(role=Role.REVIEWER)
    client.force_login(cast.bob)
    assert PAGE not in client.get("/projects/talk/agreement/").content.decode()


def test_it_asks_seldom(pages: Client, project: Project, cast: Cast, django_assert_max_num_queries: Any) -> None:
    disputed(project, cast)
    sent = shown(pages)
    with django_assert_max_num_queries(20):
        pages.get(PAGE)
    with django_assert_max_num_queries(20):
        pages.post(PAGE, sent | {"escalate_above": 1, "preview": "1"})
