"""Every page of a project's workspace, of the admin and every list of REST needs few queries, however much it lists.

`make bench-pages` asks for the same pages of the same project with a million annotations, and measures the time.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, resolve, reverse

from annotator.models import Project, ProjectFigures, User
from benchmarks import workspace_pages, workspace_project
from benchmarks.workspace_pages import ANNOTATOR, MANAGER, READERS, REVIEWER, STAFF
from tests.builders import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
MOST_QUERIES = 20
DOWNLOADS = {
    "export-file", "export-job-file", "import-errors", "model-archive", "model-file", "policy-archive", "policy-file",
    "release-archive", "release-file", "run-log",
}  # fmt: skip


def costs(*, annotations: int, rows: int) -> dict[str, int]:
    """Returns the queries of each page and reader, in a project that is gone afterwards."""
    with transaction.atomic():
        project = workspace_project.write(annotations, rows=rows)
        workspace_project.count(project)
        counted = {}
        User.objects.create_superuser(STAFF)
        for name in READERS:
            user = User.objects.get(username=name)
            for view, address in _one_of_each_view(project, name).items():
                # Old and quick figures are counted anew, however long ago another page has done so.
                ProjectFigures.objects.update(as_of=NOW, took=0)
                status, counted[f"{view} as {name}"] = workspace_pages.queries(user, address)
                assert status == 200, address
        transaction.set_rollback(True)
    return counted


def _one_of_each_view(project: Project, name: str) -> dict[str, str]:
    pages = workspace_pages.all_addresses(project, name)
    return {resolve(urlsplit(page).path).view_name: page for page in reversed(pages)}


def test_no_page_needs_more_queries_for_more_rows() -> None:
    few, many = costs(annotations=300, rows=20), costs(annotations=1_500, rows=200)
    assert {page: queries for page, queries in many.items() if queries > MOST_QUERIES} == {}
    # What only large projects need costs a query or two. One for each row would cost a page of 25 rows that many.
    assert {page: (few[page], queries) for page, queries in many.items() if queries > few[page] + 2} == {}


def test_every_page_of_a_project_is_asked_for(client: Client) -> None:
    project = workspace_project.write(300, rows=20)
    pages = [page for name in (MANAGER, REVIEWER, ANNOTATOR) for page in workspace_pages.addresses(project, name)]
    asked = {resolve(urlsplit(page).path).url_name for page in pages}
    client.force_login(User.objects.get(username=MANAGER))
    for pattern in _of_projects():
        if pattern.name not in asked | DOWNLOADS:
            answer = client.get(_filled(pattern, project))
            assert answer.status_code == 405, f"{pattern.name} is a page that nobody measures"


def _of_projects() -> Iterator[URLPattern]:
    """Yields the addresses below a project's; those of REST are included under a beginning of their own."""
    included = (one for one in get_resolver().url_patterns if isinstance(one, URLResolver) and not str(one.pattern))
    for part in included:
        for pattern in part.url_patterns:
            if isinstance(pattern, URLPattern) and str(pattern.pattern).startswith("projects/<slug:slug>/"):
                yield pattern


def _filled(pattern: URLPattern, project: Project) -> str:
    values = {name: project.slug if name == "slug" else 1 for name in pattern.pattern.converters}
    assert pattern.name
    return reverse(pattern.name, kwargs=values)
