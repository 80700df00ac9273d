"""Every page and call of a project whose rubric is about segments alone, which has no score of a whole response."""

import pytest
from django.test import Client
from django.urls import URLResolver, get_resolver, reverse

from annotator.analysis import figures
from annotator.analysis.quality import assessment
from annotator.models import Annotation, Project, Task, User
from annotator.outputs.exporting.layouts import LAYOUTS
from tests.annotator.segmented import make_segmented_project, make_segmented_task, rate_segments
from tests.builders import NOW, make_member, make_user

pytestmark = pytest.mark.slow


@pytest.fixture
def project(db: None) -> Project:
    project = make_segmented_project()
    raters = [make_user(name) for name in ("alice", "bob", "erin")]
    for user in raters:
        make_member(project, user)
    for number in range(6):
        make_segmented_task(project, f"t{number}")
        for place, user in enumerate(raters):
            rate_segments(project, user, ((number + place) % 5, place, None), active_seconds=60.0)
    make_segmented_task(project, "open")
    make_member(project, make_user("carol", is_staff=True), "manager")
    return project


@pytest.fixture
def carol(project: Project, client: Client) -> Client:
    client.force_login(User.objects.get(username="carol"))
    return client


def patterns(resolver: URLResolver, prefix: str = "") -> list[tuple[str, str]]:
    found = []
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            name = f"{entry.namespace}:" if entry.namespace else ""
            found += patterns(entry, prefix + name)
        elif entry.name:
            found.append((prefix + entry.name, str(entry.pattern)))
    return found


def pages_of_a_project() -> list[str]:
    return sorted(
        {name for name, pattern in patterns(get_resolver()) if pattern.count("<") == 1 and "<slug:slug>" in pattern}
    )


def test_every_page_of_the_project_answers(carol: Client, project: Project) -> None:
    for name in pages_of_a_project():
        answer = carol.get(reverse(name, args=[project.slug]))
        assert answer.status_code in (200, 302, 401, 405, 422), (name, answer.status_code, answer.content[:300])


def test_pages_of_tasks_and_people_answer(carol: Client, project: Project) -> None:
    task = Task.objects.get(external_id="t1").pk
    for name in ("data-task", "review-task"):
        assert carol.get(reverse(name, args=[project.slug, task])).status_code == 200
    assert carol.get(reverse("review-submissions", args=[project.slug])).status_code == 200
    for annotation in Annotation.objects.all()[:2]:
        page = carol.get(reverse("person", args=[project.slug, annotation.assignment.annotator.username]))
        assert page.status_code == 200
    assert carol.get(reverse("admin:annotator_annotation_changelist")).status_code == 200


def test_figures_and_quality_are_computed(project: Project, carol: Client) -> None:
    figures.refresh(project, now=NOW)
    assessment.assess(project, now=NOW)
    page = carol.get(reverse("overview", args=[project.slug]))
    assert page.status_code == 200


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_can_be_exported(carol: Client, project: Project, layout: str) -> None:
    for format in ("jsonl", "csv", "parquet"):
        answer = carol.get(f"/api/v1/projects/{project.slug}/export/?layout={layout}&format={format}")
        assert answer.status_code == 200, answer.content
        assert b"".join(answer.streaming_content) is not None  # type: ignore[attr-defined]


def test_annotators_find_their_own_pages(project: Project, client: Client) -> None:
    alice = User.objects.get(username="alice")
    client.force_login(alice)
    mine = Annotation.objects.filter(assignment__annotator=alice).latest("pk")
    for address in (
        reverse("history", args=[project.slug]),
        reverse("revise", args=[mine.assignment_id]),
        reverse("annotate", args=[project.slug]),
        reverse("mine"),
    ):
        assert client.get(address).status_code == 200, address
