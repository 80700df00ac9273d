"""The overview of a project: its figures, what is wrong, and what is to be done first."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from annotator.analysis import figures as figures_module
from annotator.analysis.figures import figures, refresh
from annotator.infrastructure.background import heartbeats, messages
from annotator.infrastructure.background.heartbeats import QUEUES, QueueHealth
from annotator.managing import webhooks as endpoints
from annotator.managing.guidelines import publish_guidelines, template
from annotator.managing.issues import Problem, facts, issues
from annotator.models import (
    BackgroundFailure,
    Guideline,
    Membership,
    Project,
    ProjectFigures,
    Role,
    Task,
    Webhook,
)
from annotator.models.rubric import attributes_by_version
from annotator.pages.projects import overview_charts
from annotator.stages.annotation import skip
from annotator.stages.assignment import recount_later
from annotator.tasks import count_figures
from rewards.models import RunState, TrainingRun
from rewards.pages.overview import OF_MANAGERS, Reader
from tests.builders import NOW, claimed, make_gold, make_task, make_user, pseudonym, rate
from tests.conftest import Cast

PAGE = "/projects/talk/"


@pytest.fixture(autouse=True)
def _workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every queue has a worker; tests take them away."""
    alive = {queue: QueueHealth(1, 1.0) for queue in QUEUES}
    monkeypatch.setattr(heartbeats, "listening", lambda: alive)


def worked_on(project: Project, cast: Cast) -> None:
    """Three complete tasks, one of which is dropped, and one that nobody has touched."""
    Project.objects.update(drop_above=1, ask_preference=True)
    project.refresh_from_db()
    now = timezone.now()
    for task, levels in enumerate(((1, 1, 3), ([4, 0], [4, 1], [4, 0]), ([2, 3], [2, 3], [2, 2]))):
        make_task(project)
        for day, (user, level) in enumerate(zip(cast.annotators, levels, strict=True)):
            rate(project, user, level, now=now - timedelta(days=4 - day), preference=(-2, 1, 3)[task])  # type: ignore[arg-type]
    make_task(project, prompt="Untouched?")


def test_the_figures_are_those_of_the_rows(project: Project, cast: Cast) -> None:
    worked_on(project, cast)
    seen = refresh(project, now=timezone.now())
    assert (seen.tasks, seen.complete, seen.wanted) == (4, 3, 3)
    assert (seen.escalated, seen.judged, seen.dropped) == (0, 3, 1)
    assert sum(sum(by_person.values()) for by_person in seen.annotations.values()) == 9
    assert len(seen.annotations) == 3
    # Each annotator has seen the responses in an order of their own.
    assert (
        sorted(abs(strength) for strength, n in seen.preferences.items() for _ in range(n))
        == [1] * 3 + [2] * 3 + [3] * 3
    )
    assert seen.labels == 4
    assert list(seen.levels["helpfulness"].counts) == [1, 0, 1, 1, 1]
    assert seen.levels["helpfulness"].mean == pytest.approx((4 + 0 + 2 + 3) / 4)
    assert seen.correlations["helpfulness"]["verbosity"] == pytest.approx(1)
    assert sum(seen.completed.values()) == 3


def test_gold_tasks_skips_and_exports_are_told_apart(project: Project, cast: Cast, pages: Client) -> None:
    make_gold(project)
    make_task(project)
    skip(claimed(project, cast.alice, timezone.now()).pk, reason="needs_coding", now=timezone.now())
    seen = refresh(project, now=timezone.now())
    assert (seen.tasks, dict(seen.skips), seen.exports) == (1, {"needs_coding": 1}, 0)
    list(pages.get("/api/v1/projects/talk/export/").streaming_content)  # type: ignore[attr-defined]
    assert refresh(project, now=timezone.now()).exports == 1


def test_labels_of_a_sample_are_a_part_of_all(project: Project, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    worked_on(project, cast)
    monkeypatch.setattr(figures_module, "LABELS_READ", 3)
    Task.objects.filter(project=project).update(shuffle=2**31 - 1)
    assert refresh(project, now=timezone.now()).labels == 0
    Task.objects.filter(project=project).update(shuffle=0)
    assert refresh(project, now=timezone.now()).labels == 4


# How old they may be -----------------------------------------------------------------------------------------


def test_a_small_project_is_counted_at_every_look(project: Project, cast: Cast) -> None:
    now = timezone.now()
    first = figures(project, now=now)
    make_task(project)
    second = figures(project, now=now + timedelta(seconds=2))
    assert first is not None
    assert second is not None
    assert (first.tasks, second.tasks) == (0, 1)


def test_a_large_project_is_left_to_the_light_worker(
    project: Project, cast: Cast, monkeypatch: pytest.MonkeyPatch, pages: Client
) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(messages, "send_on_commit", lambda *message: sent.append(message))
    make_task(project)
    sent.clear()
    monkeypatch.setattr(figures_module, "RECOUNT_INLINE_BELOW", 0)
    assert "being counted in the background" in pages.get(PAGE).content.decode()
    pages.get(PAGE)
    assert sent == [("annotator.tasks.count_figures", [project.pk])]
    count_figures(project.pk)
    Task.objects.all().delete()
    ProjectFigures.objects.update(took=3.0, as_of=timezone.now() - timedelta(seconds=60))
    assert "As of" in pages.get(PAGE).content.decode()
    assert len(sent) == 1  # thirty times three seconds are not over yet
    ProjectFigures.objects.update(as_of=timezone.now() - timedelta(seconds=120), wanted_at=None)
    seen = pages.get(PAGE).context["figures"]
    assert (len(sent), seen.tasks) == (2, 1)


def test_figures_of_before_a_change_of_the_rubric_are_not_drawn(project: Project, cast: Cast) -> None:
    worked_on(project, cast)
    seen = refresh(project, now=timezone.now())
    other = Project(rubric=project.rubric, name="Other")
    other.attributes_for = lambda scope="response": list(project.attributes_for()[:1])  # type: ignore[method-assign]
    other.attributes_for()[0].levels = ["low", "high"]
    assert not [chart for chart in overview_charts.labels(other, seen) if chart.name in ("levels", "means")]


# The page ----------------------------------------------------------------------------------------------------


def test_it_shows_figures_beside_the_published_ones(project: Project, cast: Cast, pages: Client) -> None:
    worked_on(project, cast)
    page = pages.get(PAGE).content.decode()
    for part in ("20.5", "about 10", "0.47", "Labels by level", "HelpSteer2", "Complete at this pace", "alice"):
        assert part in page
    assert pages.get(PAGE).context["dropped"] == pytest.approx(1 / 3)


def test_reviewers_see_pseudonyms(project: Project, cast: Cast, client: Client) -> None:
    worked_on(project, cast)
    Membership.objects.filter(user=cast.erin).update(role=Role.REVIEWER)
    client.force_login(cast.erin)
    page = client.get(PAGE).content.decode()
    assert pseudonym(cast.alice, project) in page
    assert "alice" not in page
    assert "/settings/" not in page.replace('"/settings/', "")


def test_another_rubric_stands_alone(project: Project, cast: Cast, pages: Client) -> None:
    worked_on(project, cast)
    for attribute in project.rubric.attributes.all():
        attribute.key = f"my-{attribute.key}"
        attribute.save()
    Project.objects.update(spread_attribute="my-helpfulness")
    attributes_by_version.cache_clear()
    page = pages.get(PAGE).content.decode()
    assert "HelpSteer2</th>" not in page


def test_a_young_project_says_what_to_do_first(project: Project, cast: Cast, pages: Client) -> None:
    steps = {step.text: step.done for step in pages.get(PAGE).context["steps"]}
    assert steps == {
        "Import data": False,
        "Write guidelines": False,
        "Add people": True,
        "Rate": False,
        "Review": False,
        "Train a reward model": False,
        "Export the labels": False,
    }
    worked_on(project, cast)
    Guideline.objects.create(project=project, version=1, text="Read")
    TrainingRun.objects.create(project=project, reason="a test", state=RunState.FAILED)
    ProjectFigures.objects.all().delete()
    steps = {step.text: step.done for step in pages.get(PAGE).context["steps"]}
    assert all(steps[text] for text in ("Import data", "Write guidelines", "Rate", "Train a reward model"))
    assert not steps["Review"]  # the dropped task waits
    assert "look at it" in pages.get(PAGE).content.decode()


def test_nothing_is_wrong_with_a_project_that_is_new(project: Project, cast: Cast, pages: Client) -> None:
    page = pages.get(PAGE).content.decode()
    assert "What is wrong now" not in page
    assert all(f'href="/projects/talk/data/{part}/"' in page for part in ("import", "export"))
    worked_on(project, cast)
    ProjectFigures.objects.all().delete()
    assert "There are no guidelines," in pages.get(PAGE).content.decode()


def test_it_is_for_reviewers_and_managers(project: Project, cast: Cast, client: Client) -> None:
    assert client.get(PAGE)["Location"].startswith("/login/")
    for user, status in ((cast.alice, 403), (cast.dave, 404), (cast.carol, 200)):
        client.force_login(user)
        assert client.get(PAGE).status_code == status
    client.force_login(make_user("root", is_superuser=True))
    assert client.get(PAGE).status_code == 200


# What is wrong -----------------------------------------------------------------------------------------------


def wrong(project: Project) -> set[Problem]:
    project.refresh_from_db()
    return {issue.problem for issue in issues(project, facts(project))}


def test_a_webhook_that_was_ended_is_a_problem_until_a_manager_has_seen_to_it(
    project: Project, cast: Cast, pages: Client
) -> None:
    given = {"url": "https://example.org/", "active": False, "end_reason": "gone", "created_at": NOW}
    hook = Webhook.objects.create(project=project, **given)
    make_task(project)
    assert Problem.WEBHOOK_ENDED in wrong(project)
    assert "A webhook has been made inactive" in pages.get(PAGE).content.decode()
    endpoints.change(hook, endpoints.WebhookInput(hook.url, active=False))
    assert Problem.WEBHOOK_ENDED not in wrong(project)


def test_each_problem_is_found_and_goes_away(project: Project, cast: Cast, pages: Client) -> None:
    assert wrong(project) == {Problem.NO_TASKS, Problem.NO_GUIDELINES, Problem.TOO_FEW_ANNOTATORS}
    Project.objects.update(max_annotators=3)
    publish_guidelines(project, template())
    assert wrong(project) == {Problem.NO_TASKS, Problem.NO_GUIDELINES}
    publish_guidelines(project, "Read")
    make_task(project)
    assert wrong(project) == set()
    annotators = Membership.objects.filter(role=Role.ANNOTATOR)
    annotators.update(paused_at=timezone.now())
    assert wrong(project) == {Problem.ALL_PAUSED}
    annotators.update(paused_at=None)
    Project.objects.update(qualification_required=True, gold_every=5, paused=True)
    assert wrong(project) == {Problem.NO_TEST, Problem.NO_STREAM, Problem.PAUSED}
    make_gold(project, use="test")
    make_gold(project, use="stream")
    Project.objects.update(paused=False)
    assert wrong(project) == {Problem.NOBODY_QUALIFIED}
    annotators.filter(user=cast.bob).update(qualified_at=timezone.now())
    assert wrong(project) == set()
    annotators.delete()
    assert wrong(project) == {Problem.NO_ANNOTATORS}
    Project.objects.update(archived_at=timezone.now())
    assert Problem.ARCHIVED in wrong(project)


def test_a_limit_that_no_ratings_exceed_is_a_problem(project: Project, pages: Client) -> None:
    Project.objects.update(escalate_above=4, drop_above=4)
    page = pages.get(PAGE).content.decode()
    for said in ("so the spread never asks for more annotators", "so no task is ever dropped"):
        assert said in page
    Project.objects.update(escalate_above=2, drop_above=2)
    assert Problem.NEVER_MET not in wrong(project)


def test_missing_workers_and_failures_are_named(
    project: Project, cast: Cast, pages: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeats, "listening", lambda: dict.fromkeys(QUEUES, QueueHealth(0, None)))
    now = timezone.now()
    BackgroundFailure.objects.create(
        project=project, task="find_pii", error="ValueError: <b>", first_at=now, last_at=now
    )
    page = pages.get(PAGE).content.decode()
    for queue in QUEUES:
        assert f"No worker is running for the queue “{queue}”" in page
    assert "find_pii: ValueError: &lt;b&gt;" in page


def test_it_says_that_a_change_of_the_protocol_is_under_way(
    project: Project, pages: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "send_on_commit", lambda *message: None)
    recount_later(project)
    assert "is being applied to the tasks" in pages.get(PAGE).content.decode()


def test_an_issue_links_to_the_page_where_it_is_put_right(project: Project, pages: Client, cast: Cast) -> None:
    worked_on(project, cast)
    publish_guidelines(project, "Read")
    (issue,) = pages.get(PAGE).context["issues"]
    assert issue["issue"].text() == "Tasks can need up to 5 annotators; the project has 3."
    assert (issue["link"], str(issue["page"])) == (f"{PAGE}people/", "People")
    Membership.objects.filter(user=cast.carol).update(role=Role.REVIEWER)
    assert [issue["link"] for issue in pages.get(PAGE).context["issues"]] == [""]


def test_every_problem_leads_to_a_page_of_managers(project: Project, cast: Cast) -> None:
    cast.carol.is_staff = True
    reader = Reader(cast.carol, project, manages=True)
    assert all(reader.link(problem.value.page) for problem in Problem)
    assert {problem.value.page for problem in Problem} == set(OF_MANAGERS)
