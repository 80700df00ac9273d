"""The test before the first task: practice, scored runs, limited tries."""

from html import unescape

import pytest
from django.test import Client

from annotator.managing.archive import archive
from annotator.models import Membership, PauseReason, Project, QualificationRun, Role, Task, User
from annotator.stages import assignment
from annotator.stages.assignment import REASONS
from annotator.stages.gold import gold_tasks, qualification
from annotator.stages.review import exclude
from tests.builders import ATTRIBUTES, NOW, make_gold, make_task
from tests.conftest import Cast
from tests.refusals import refusal

pytestmark = pytest.mark.django_db
GOLD = [(4, 0), (1, 3), (2, 4)]


@pytest.fixture
def project(project: Project) -> Project:
    """Three test tasks and one for practice; two tries."""
    project.qualification_required, project.qualification_tries = True, 2
    project.save()
    for number, levels in enumerate(GOLD):
        make_gold(project, f"test-{number}", use="test", levels=levels)
    make_gold(project, "practice", use="practice", levels=(3, 1))
    make_task(project)
    return project


@pytest.fixture
def alice(cast: Cast) -> Membership:
    return member_of(cast.alice)


def member_of(user: User) -> Membership:
    return user.memberships.select_related("project").get()


def take(member: Membership, *, off_by: int = 0, kind: str = "test") -> QualificationRun:
    """A whole run whose every score is the experts', moved by `off_by` around the scale."""
    run = qualification.begin(member, kind, now=NOW)
    while task := qualification.next_task(run):
        experts = {response.pk: response.expert_rating.scores["helpfulness"] for response in task.responses.all()}
        scores = {pk: dict.fromkeys(ATTRIBUTES, (level + off_by) % 5) for pk, level in experts.items()}
        run = qualification.answer(run, task, scores, now=NOW)
    return run


def test_the_experts_scores_pass(project: Project, alice: Membership) -> None:
    run = take(alice)
    assert (run.kappa, run.passed, member_of(alice.user).qualified_at) == (1, True, NOW)


def test_others_fail_and_leave_one_try(project: Project, alice: Membership) -> None:
    run = take(alice, off_by=2)
    assert run.passed is False
    assert run.kappa is not None
    assert run.kappa < 0.5
    assert qualification.standing(alice).tries_left == 1


def test_tries_are_limited(project: Project, alice: Membership) -> None:
    for _ in range(2):
        take(alice, off_by=2)
    with refusal("no_tries_left"):
        qualification.begin(alice, "test", now=NOW)


def test_a_manager_can_give_another_try(project: Project, alice: Membership) -> None:
    for _ in range(2):
        take(alice, off_by=2)
    Membership.objects.filter(pk=alice.pk).update(extra_tries=1)
    assert take(member_of(alice.user)).passed is True


def test_practice_is_free_and_scores_nothing(project: Project, alice: Membership) -> None:
    for number in range(4):
        run = take(alice, off_by=1, kind="practice")
        assert (run.number, run.kappa, run.passed) == (number + 1, None, None)
    assert qualification.standing(alice).tries_left == 2


def test_a_run_under_way_goes_on(project: Project, alice: Membership) -> None:
    begun = qualification.begin(alice, "test", now=NOW)
    assert qualification.begin(alice, "test", now=NOW) == begun
    assert qualification.standing(alice).tries_left == 1


def test_the_first_answer_stands(project: Project, alice: Membership) -> None:
    run = qualification.begin(alice, "test", now=NOW)
    task = qualification.next_task(run)
    assert task is not None
    for level in (1, 4):
        qualification.answer(
            run, task, {response.pk: {"helpfulness": level} for response in task.responses.all()}, now=NOW
        )
    assert set(run.answers.values_list("scores__helpfulness", flat=True)) == {1}


def test_without_gold_there_is_nothing_to_take(project: Project, alice: Membership) -> None:
    Task.objects.filter(gold__isnull=False).delete()
    with refusal("nothing_to_take"):
        qualification.begin(alice, "test", now=NOW)


def test_a_test_that_is_not_asked_for_costs_no_try(project: Project, alice: Membership) -> None:
    Project.objects.update(qualification_required=False)
    with refusal("nothing_to_take", match="no test"):
        qualification.begin(alice, "test", now=NOW)


def test_nobody_rates_before_passing(project: Project, cast: Cast, alice: Membership) -> None:
    assert assignment.claim(project, cast.alice, now=NOW).reason == "not_qualified"
    take(alice)
    assert assignment.claim(project, cast.alice, now=NOW).assignment


def test_managers_and_reviewers_take_no_test(project: Project, cast: Cast) -> None:
    Membership.objects.filter(user=cast.bob).update(role=Role.REVIEWER)
    for user in (cast.bob, cast.carol):
        assert assignment.claim(project, user, now=NOW).assignment


def test_the_rating_page_leads_to_the_test(project: Project, cast: Cast, client: Client) -> None:
    client.force_login(cast.alice)
    assert client.get("/projects/talk/annotate/").headers["Location"] == "/projects/talk/qualification/"


def test_a_run_of_somebody_else_is_not_found(project: Project, cast: Cast, alice: Membership, client: Client) -> None:
    run = qualification.begin(alice, "practice", now=NOW)
    client.force_login(cast.bob)
    task = qualification.next_task(run)
    assert task is not None
    for path in ("", "draft/", f"tasks/{task.public_id}/"):
        assert client.post(f"/qualification/{run.pk}/{path}").status_code in (404, 405)
        assert client.get(f"/qualification/{run.pk}/{path}").status_code in (404, 405)


def test_the_experts_are_not_shown_before_the_answer(
    project: Project, cast: Cast, alice: Membership, client: Client
) -> None:
    client.force_login(cast.alice)
    run = qualification.begin(alice, "practice", now=NOW)
    task = qualification.next_task(run)
    assert task is not None
    assert "Level 3 it is." not in client.get(f"/qualification/{run.pk}/").content.decode()
    assert client.get(f"/qualification/{run.pk}/tasks/{task.public_id}/").status_code == 404


def test_the_experts_are_never_shown_of_a_test(project: Project, cast: Cast, alice: Membership, client: Client) -> None:
    client.force_login(cast.alice)
    run = take(alice)
    for task in Task.objects.filter(gold__use="test"):
        assert client.get(f"/qualification/{run.pk}/tasks/{task.public_id}/").status_code == 404


@pytest.mark.parametrize("how", ["excluded", "paused", "project_paused", "project_archived"])
@pytest.mark.parametrize("kind", ["practice", "test"])
def test_who_gets_no_tasks_takes_no_test(
    project: Project, cast: Cast, alice: Membership, client: Client, how: str, kind: str
) -> None:
    run = qualification.begin(alice, kind, now=NOW)
    task = qualification.next_task(run)
    assert task is not None
    idle(project, cast, how)
    with refusal("not_at_work", match=str(REASONS[how])):
        qualification.begin(alice, kind, now=NOW)
    with refusal("not_at_work", match=str(REASONS[how])):
        qualification.answer(run, task, {}, now=NOW)
    client.force_login(cast.alice)
    page = client.get(f"/qualification/{run.pk}/", follow=True)
    assert str(REASONS[how]) in unescape(page.content.decode())


def idle(project: Project, cast: Cast, how: str) -> None:
    if how == "excluded":
        exclude(project, cast.alice, reason="no", by=cast.carol, now=NOW)
    elif how == "paused":
        gold_tasks.pause(member_of(cast.alice), reason=PauseReason.MANAGER, now=NOW)
    elif how == "project_paused":
        Project.objects.update(paused=True)
    else:
        archive(project, now=NOW)


def test_an_unknown_kind_is_practice(project: Project, cast: Cast, client: Client) -> None:
    client.force_login(cast.alice)
    client.post("/projects/talk/qualification/begin/", {"kind": "exam"})
    assert QualificationRun.objects.get().kind == "practice"
