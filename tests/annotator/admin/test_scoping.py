"""Lists of the admin: their late pages, and the search by a task's id."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotator.admin.scoping import KeysFirst
from annotator.models import Project, Task
from tests.builders import make_project, make_task

TASKS = "/admin/annotator/task/"


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_page_is_that_part_of_the_whole_list(project: Project, number: int) -> None:
    for name in "abcdefg":
        make_task(project, name)
    rows = Task.objects.order_by("-priority", "-pk")
    assert list(KeysFirst(rows, 2).page(number)) == list(rows)[2 * (number - 1) : 2 * number]


def test_a_late_page_is_counted_from_the_end(project: Project) -> None:
    for name in "abcdefg":
        make_task(project, name)
    paginator = KeysFirst(Task.objects.order_by("-pk"), 2)
    assert paginator.count == 7
    with CaptureQueriesContext(connection) as asked:
        list(paginator.page(4))
    assert "OFFSET" not in asked[0]["sql"]


def test_a_list_without_rows_has_a_first_page(db: None) -> None:
    assert list(KeysFirst(Task.objects.order_by("pk"), 2).page(1)) == []


def test_a_task_is_found_by_its_whole_id(project: Project, staff: Client) -> None:
    elsewhere = make_project("elsewhere")
    for one in (project, elsewhere):
        make_task(one, "t-1")
        make_task(one, "t-10")
    assert [task.project for task in staff.get(TASKS, {"q": " t-1 "}).context["cl"].result_list] == [project]
    assert not staff.get(TASKS, {"q": "t-"}).context["cl"].result_list
    assert len(staff.get(TASKS, {"q": ""}).context["cl"].result_list) == 2


def test_its_search_says_what_it_looks_for(project: Project, staff: Client) -> None:
    make_task(project)
    assert "The whole id of a task." in staff.get(TASKS).content.decode()
