"""What managers do in the admin about gold tasks, the test, and people who are paused."""

import re

import pytest
from django.db import connection
from django.forms import model_to_dict
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotator.models import ExpertRating, Membership, Project, QualificationRun, Role
from tests.builders import ATTRIBUTES, NOW, claimed, make_gold, make_project, make_task
from tests.conftest import Cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(cast: Cast, client: Client) -> Client:
    """carol's, who manages."""
    cast.carol.is_staff = True
    cast.carol.save()
    client.force_login(cast.carol)
    return client


def act(client: Client, action: str, *members: Membership) -> str:
    form = {"action": action, "_selected_action": [member.pk for member in members]}
    return client.post("/admin/annotator/membership/", form, follow=True).content.decode()


def test_a_manager_pauses_and_lets_go_on(cast: Cast, client: Client) -> None:
    member = cast.alice.memberships.get()
    assert "Paused." in act(client, "pause", member)
    member.refresh_from_db()
    assert (member.pause_reason, member.paused_at is None) == ("manager", False)
    act(client, "let_go_on", member)
    member.refresh_from_db()
    assert (member.paused_at, member.pause_reason) == (None, "")


def test_a_manager_gives_another_try_and_qualifies(cast: Cast, client: Client) -> None:
    member = cast.alice.memberships.get()
    act(client, "give_another_try", member)
    act(client, "qualify", member)
    member.refresh_from_db()
    assert member.extra_tries == 1
    assert member.qualified_at


def test_the_overview_tells_who_is_paused(cast: Cast, client: Client) -> None:
    Membership.objects.filter(user=cast.alice).update(paused_at=NOW, pause_reason="gold")
    page = client.get("/admin/").content.decode()
    assert "paused since" in page
    assert "ratings of gold tasks" in page


def test_the_overview_shows_the_newest_project_whole_and_the_others_in_a_table(
    project: Project, cast: Cast, client: Client
) -> None:
    client.get("/admin/")
    with CaptureQueriesContext(connection) as alone:
        assert "Other projects" not in client.get("/admin/").content.decode()
    make_task(project)
    claimed(project, cast.alice)
    for name in ("young", "younger"):
        made = make_project(name)
        Membership.objects.create(project=made, user=cast.carol, role=Role.MANAGER)
    client.get("/admin/")
    with CaptureQueriesContext(connection) as together:
        page = client.get("/admin/").content.decode()
    assert len(together) <= len(alone) <= 20
    others = page.partition("Other projects")[2]
    assert others.index('"/projects/young/"') < others.index('"/projects/talk/"')
    assert '"/projects/younger/"' not in others
    assert "annotators at work</th>" in others
    assert '<td class="pr-3">1</td>' in others


def test_a_members_page_shows_their_tries(cast: Cast, client: Client) -> None:
    member = cast.alice.memberships.get()
    QualificationRun.objects.create(member=member, kind="test", number=1, started_at=NOW, finished_at=NOW, kappa=0.25)
    page = client.get(f"/admin/annotator/membership/{member.pk}/change/").content.decode()
    assert "0.25" in page
    assert "fewer than 10 gold tasks rated" in page


def change_gold(client: Client, project: Project, scores: dict[str, int]) -> str:
    gold = make_gold(project).gold
    form = {"use": "test", "ratings-TOTAL_FORMS": 2, "ratings-INITIAL_FORMS": 2}
    for number, rating in enumerate(gold.ratings.order_by("pk")):
        form |= {f"ratings-{number}-id": rating.pk, f"ratings-{number}-gold": gold.pk}
        form |= {f"ratings-{number}-level_{key}": score for key, score in scores.items()}
        form |= {f"ratings-{number}-explanation": "Why not."}
    return client.post(f"/admin/annotator/gold/{gold.pk}/change/", form, follow=True).content.decode()


def test_the_experts_ratings_can_be_mended(project: Project, client: Client) -> None:
    change_gold(client, project, dict.fromkeys(ATTRIBUTES, 2))
    assert set(ExpertRating.objects.values_list("scores__helpfulness", "explanation")) == {(2, "Why not.")}


def test_the_experts_ratings_are_shown_as_levels(project: Project, client: Client) -> None:
    gold = make_gold(project, levels=(3, 1)).gold
    page = client.get(f"/admin/annotator/gold/{gold.pk}/change/").content.decode()
    chosen = re.findall(r'<option value="(\d)" selected>(\d): ', page)
    assert chosen == [("3", "4")] * 5 + [("1", "2")] * 5


@pytest.mark.parametrize("scores", [{"helpfulness": 2}, dict.fromkeys(ATTRIBUTES, 7), {}])
def test_scores_off_the_rubric_are_refused(project: Project, client: Client, scores: dict[str, int]) -> None:
    page = change_gold(client, project, scores)
    assert "errorlist" in page or "Please correct the error" in page
    assert set(ExpertRating.objects.values_list("scores__helpfulness", flat=True)) == {3, 1}


def test_gold_of_others_is_not_listed(project: Project, client: Client) -> None:
    theirs = make_gold(make_project("theirs"), "secret-gold")
    assert "secret-gold" not in client.get("/admin/annotator/gold/").content.decode()
    assert client.get(f"/admin/annotator/gold/{theirs.gold.pk}/change/").status_code in (302, 404)


def test_a_required_test_without_tasks_is_warned_of(project: Project, client: Client) -> None:
    form = {name: value for name, value in model_to_dict(project).items() if value is not False and value is not None}
    form |= {"qualification_required": "on", "gold_every": 5, "training_config": "{}"}
    form |= {"guidelines-TOTAL_FORMS": 0, "guidelines-INITIAL_FORMS": 0}
    page = client.post(f"/admin/annotator/project/{project.pk}/change/", form, follow=True).content.decode()
    assert "Nobody can pass the test yet" in page
    assert "Annotators get no gold tasks yet" in page
