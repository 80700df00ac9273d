"""The admin: who enters, what its opening page lists, rows that lead to the workspace, and the ratings of experts."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotator.models import Annotation, ExpertRating, Membership, Project, Role
from tests.annotator.models.test_constraints import make_model
from tests.builders import ATTRIBUTES, NOW, claimed, make_gold, make_project, make_task, rate
from tests.conftest import Cast

pytestmark = pytest.mark.django_db


def test_whoever_is_not_staff_is_told_so_and_led_back(cast: Cast) -> None:
    browser = Client()
    browser.force_login(cast.alice)
    answer = browser.get("/admin/annotator/task/", follow=True)
    assert answer.status_code == 403
    assert "Not allowed" in answer.content.decode()
    assert 'href="/">Your projects</a>' in answer.content.decode()


def test_whoever_is_not_logged_in_comes_back_after_the_one_login(cast: Cast) -> None:
    answer = Client().get("/admin/", follow=True)
    assert answer.redirect_chain[-1][0] == "/login/?next=/admin/"


def test_the_opening_page_lists_all_projects(project: Project, cast: Cast, staff: Client) -> None:
    staff.get("/admin/")
    with CaptureQueriesContext(connection) as alone:
        staff.get("/admin/")
    make_task(project)
    claimed(project, cast.alice)
    for number in range(12):
        made = make_project(f"young-{number}")
        Membership.objects.create(project=made, user=cast.carol, role=Role.MANAGER)
    Project.objects.filter(slug="young-11").update(archived_at=NOW)
    staff.get("/admin/")
    with CaptureQueriesContext(connection) as together:
        table = staff.get("/admin/").content.decode().partition("annotators at work</th>")[2]
    assert len(together) <= len(alone) <= 20
    listed = re.findall('href="/projects/([^/]+)/"', table)
    assert listed == [*(f"young-{number}" for number in reversed(range(11))), "talk", "young-11"]
    assert table.count("(archived)") == 1
    assert '<td class="pr-3">1</td>' in table


def test_rows_lead_to_the_workspace_and_change_nothing(project: Project, cast: Cast, staff: Client) -> None:
    task = make_task(project)
    rate(project, cast.alice)
    model = make_model(project, 1)
    leads = {
        f"annotator/project/{project.pk}": "/projects/talk/",
        f"annotator/membership/{cast.alice.memberships.get().pk}": "/projects/talk/people/alice/",
        f"annotator/task/{task.pk}": f"/projects/talk/data/tasks/{task.public_id}/",
        f"annotator/annotation/{Annotation.objects.get().pk}": f"/projects/talk/data/tasks/{task.public_id}/",
        f"rewards/trainingrun/{model.run_id}": f"/projects/talk/models/runs/{model.run_id}/",
        f"rewards/rewardmodel/{model.pk}": f"/projects/talk/models/{model.pk}/",
    }
    for row, place in leads.items():
        page = staff.get(f"/admin/{row}/change/").content.decode()
        assert f'href="{place}">Open in the workspace</a>' in page, row
        assert 'name="_save"' not in page
        assert staff.post(f"/admin/{row}/change/", {"name": "new"}).status_code == 403
        assert staff.get(place).status_code == 200


def test_a_gold_tasks_row_leads_nowhere(project: Project, staff: Client) -> None:
    gold = make_gold(project)
    assert "Open in the workspace" not in staff.get(f"/admin/annotator/task/{gold.pk}/change/").content.decode()


def change_gold(client: Client, project: Project, scores: dict[str, int]) -> str:
    gold = make_gold(project).gold
    form = {"use": "test", "ratings-TOTAL_FORMS": 2, "ratings-INITIAL_FORMS": 2}
    for number, rating in enumerate(gold.ratings.order_by("pk")):
        form |= {f"ratings-{number}-id": rating.pk, f"ratings-{number}-gold": gold.pk}
        form |= {f"ratings-{number}-level_{key}": score for key, score in scores.items()}
        form |= {f"ratings-{number}-explanation": "Why not."}
    return client.post(f"/admin/annotator/gold/{gold.pk}/change/", form, follow=True).content.decode()


def test_the_experts_ratings_can_be_mended(project: Project, staff: Client) -> None:
    change_gold(staff, project, dict.fromkeys(ATTRIBUTES, 2))
    assert set(ExpertRating.objects.values_list("scores__helpfulness", "explanation")) == {(2, "Why not.")}


def test_the_experts_ratings_are_shown_as_levels(project: Project, staff: Client) -> None:
    gold = make_gold(project, levels=(3, 1)).gold
    page = staff.get(f"/admin/annotator/gold/{gold.pk}/change/").content.decode()
    chosen = re.findall(r'<option value="(\d)" selected>(\d): ', page)
    assert chosen == [("3", "4")] * 5 + [("1", "2")] * 5


@pytest.mark.parametrize("scores", [{"helpfulness": 2}, dict.fromkeys(ATTRIBUTES, 7), {}])
def test_scores_off_the_rubric_are_refused(project: Project, staff: Client, scores: dict[str, int]) -> None:
    page = change_gold(staff, project, scores)
    assert "errorlist" in page or "Please correct the error" in page
    assert set(ExpertRating.objects.values_list("scores__helpfulness", flat=True)) == {3, 1}


def test_gold_of_others_is_not_listed(project: Project, staff: Client) -> None:
    theirs = make_gold(make_project("theirs"), "secret-gold")
    assert "secret-gold" not in staff.get("/admin/annotator/gold/").content.decode()
    assert staff.get(f"/admin/annotator/gold/{theirs.gold.pk}/change/").status_code in (302, 404)
