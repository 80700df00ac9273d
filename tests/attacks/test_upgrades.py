"""What an upgrade brings over from an older installation."""

from importlib import import_module

import pytest
from django.db import connection

from annotator.models import Project, Task
from tests.builders import make_task
from tests.conftest import Cast

FILL = import_module("annotator.migrations.0025_set_aside_waits_for_review").FILL


@pytest.mark.parametrize(("state", "because"), [("quarantined", "quarantine"), ("open", "")])
def test_what_was_set_aside_before_waits_for_review(project: Project, cast: Cast, state: str, because: str) -> None:
    task = make_task(project)
    Task.objects.filter(pk=task.pk).update(state=state, review_because="")
    with connection.cursor() as cursor:
        cursor.execute(FILL)
    task.refresh_from_db()
    assert task.review_because == because
