"""A manager excludes annotators, and sees before what that changes."""

import pytest
from django.test import Client

from annotator.models import Assignment, Exclusion, Membership, Project, Role, Task, User
from tests.builders import NOW, imported, make_member, make_project, make_task, make_user, rate, ratings_row
from tests.conftest import Cast

LIST = "/admin/annotator/exclusion/"


@pytest.fixture
def client(project: Project, cast: Cast, client: Client) -> Client:
    """carol's, who manages a project with one task that is complete."""
    User.objects.filter(pk=cast.carol.pk).update(is_staff=True)
    make_task(project)
    for user in cast.annotators:
        rate(project, user)
    client.force_login(cast.carol)
    return client


def chosen(client: Client, action: str, kind: str, *rows: int) -> str:
    """Where an action on a list leads."""
    form = {"action": action, "_selected_action": rows}
    return client.post(f"/admin/annotator/{kind}/", form).headers["Location"]


def test_the_count_is_shown_before_anything_changes(client: Client, cast: Cast) -> None:
    page = chosen(client, "exclude_them", "membership", cast.bob.memberships.get().pk)
    said = client.get(page).content.decode()
    assert "Tasks that lose their label" in said
    assert not Exclusion.objects.exists()


def test_it_is_done_once_confirmed_with_a_reason(client: Client, cast: Cast) -> None:
    page = chosen(client, "exclude_them", "membership", cast.bob.memberships.get().pk)
    assert "This field is required." in client.post(page, {}).content.decode()
    said = client.post(page, {"reason": "Clicks without reading."}, follow=True).content.decode()
    assert "bob is excluded" in said
    assert "Clicks without reading." in said
    assert client.get(f"{LIST}{Exclusion.objects.get().pk}/change/").status_code == 200
    assert Task.objects.get().state == Task.State.OPEN


def test_they_come_back_the_same_way(client: Client, cast: Cast) -> None:
    client.post(chosen(client, "exclude_them", "membership", cast.bob.memberships.get().pk), {"reason": "-"})
    page = chosen(client, "readmit", "exclusion", Exclusion.objects.get().pk)
    assert "Annotations that count again" in client.get(page).content.decode()
    assert "bob is back" in client.post(page, follow=True).content.decode()
    assert Task.objects.get().state == Task.State.COMPLETE


def test_a_button_on_the_exclusions_page_brings_them_back(client: Client, cast: Cast) -> None:
    client.post(chosen(client, "exclude_them", "membership", cast.bob.memberships.get().pk), {"reason": "-"})
    made = Exclusion.objects.get()
    where = f"{LIST}readmit/?project={made.project_id}&amp;annotator={made.annotator_id}"
    assert f'action="{where}"' in client.get(f"{LIST}{made.pk}/change/").content.decode()


def test_whoever_is_excluded_already_is_not_excluded_again(client: Client, cast: Cast) -> None:
    page = chosen(client, "exclude_them", "membership", cast.bob.memberships.get().pk)
    client.post(page, {"reason": "First."})
    said = client.post(page, {"reason": "Second."}).content.decode()
    assert "bob is already excluded" in said
    assert f"{LIST}readmit/?" in said
    assert 'name="reason"' not in said
    assert Exclusion.objects.get().reason == "First."


def test_whoever_is_being_readmitted_can_be_excluded_again(client: Client, project: Project, cast: Cast) -> None:
    rows = {"reason": "First.", "by": cast.carol, "made_at": NOW, "readmitted_at": NOW}
    Exclusion.objects.create(project=project, annotator=cast.bob, **rows)
    page = chosen(client, "exclude_them", "membership", cast.bob.memberships.get().pk)
    client.post(page, {"reason": "Second."})
    made = Exclusion.objects.get()
    assert (made.reason, made.readmitted_at) == ("Second.", None)


def test_it_is_said_where_nobody_can_bring_them_back(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.post(chosen(client, "exclude_them", "membership", cast.bob.memberships.get().pk), {"reason": "-"})
    monkeypatch.setattr("annotator.review.exclusions.AT_THE_DOOR", 0)
    page = chosen(client, "readmit", "exclusion", Exclusion.objects.get().pk)
    assert "No worker is running" in client.post(page, follow=True).content.decode()


def test_an_imported_rater_is_chosen_by_name(project: Project, client: Client) -> None:
    imported(project, ratings_row("p", "a", [1, 4, 4]))
    sent = {"project": project.pk, "annotator": f"imported.{project.pk}.rater-1"}
    page = client.post(f"{LIST}add/", sent).headers["Location"]
    client.post(page, {"reason": "Far off."})
    assert Assignment.objects.filter(annotator__imported_places__place="rater-1", counts=False).count() == 1


def test_who_has_never_worked_there_is_not_found(project: Project, client: Client) -> None:
    assert client.get(f"{LIST}add/").status_code == 200
    said = client.post(f"{LIST}add/", {"project": project.pk, "annotator": "dave"}).content.decode()
    assert "Nobody with this name" in said


def test_people_of_two_projects_are_not_mixed(client: Client, cast: Cast) -> None:
    other = make_project("other")
    make_member(other, cast.carol, role=Role.MANAGER)
    make_member(other, cast.bob)
    rows = Membership.objects.filter(user=cast.bob).values_list("pk", flat=True)
    assert chosen(client, "exclude_them", "membership", *rows).endswith("/membership/")


@pytest.mark.parametrize("view", ["exclude", "readmit"])
def test_other_projects_are_out_of_reach(client: Client, view: str) -> None:
    other, stranger = make_project("other"), make_user("frank")
    make_member(other, stranger)
    assert client.get(f"{LIST}{view}/?project={other.pk}&annotator={stranger.pk}").status_code == 404
    assert client.get(f"{LIST}{view}/?project=x&annotator=²").status_code == 404
