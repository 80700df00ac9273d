"""PostgreSQL knows its tables before long work begins."""

import pytest
from django.db import connection

from annotator.infrastructure.db.planning import take_statistics
from annotator.models import Project, Task
from tests.builders import make_task


def known_rows() -> float:
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples FROM pg_class WHERE relname = %s", [Task._meta.db_table])
        return float(cursor.fetchone()[0])


@pytest.mark.django_db
def test_a_table_that_has_just_been_filled_is_counted(project: Project) -> None:
    for _ in range(3):
        make_task(project)
    take_statistics(Task)
    assert known_rows() == Task.objects.count() == 3


@pytest.mark.django_db
def test_a_large_table_to_which_little_was_added_is_left_alone(project: Project) -> None:
    make_tasks(project, 10)
    take_statistics(Task)
    make_tasks(project, 1)
    take_statistics(Task, added=1)
    assert known_rows() == 10
    take_statistics(Task, added=2)
    assert known_rows() == 11
    take_statistics(added=2)


def make_tasks(project: Project, number: int) -> None:
    for _ in range(number):
        make_task(project)
