"""What an upgrade brings over from an older installation."""

from importlib import import_module

import pytest
from django.db import connection

from annotator.models import Annotation, Project, Task
from tests.builders import make_task, rate
from tests.conftest import Cast

CLIP = import_module("annotator.migrations.0027_active_seconds_clipped").CLIP
BOUND = import_module("annotator.migrations.0028_active_seconds_within_a_week").Migration.operations[0].constraint
FILL = import_module("annotator.migrations.0025_set_aside_waits_for_review").FILL


@pytest.mark.parametrize(("state", "because"), [("quarantined", "quarantine"), ("open", "")])
def test_what_was_set_aside_before_waits_for_review(project: Project, cast: Cast, state: str, because: str) -> None:
    task = make_task(project)
    Task.objects.filter(pk=task.pk).update(state=state, review_reason="")
    with connection.cursor() as cursor:
        cursor.execute(FILL)
    task.refresh_from_db()
    assert task.review_reason == because


@pytest.mark.parametrize(("before", "after"), [(1e39, 604_800), (float("nan"), 604_800), (-1, 0), (12.5, 12.5)])
def test_seconds_of_work_are_brought_within_their_bounds(
    project: Project, cast: Cast, before: float, after: float
) -> None:
    make_task(project)
    rate(project, cast.alice)
    connection.check_constraints()  # no table with events that wait can be altered
    with connection.schema_editor() as editor:
        editor.remove_constraint(Annotation, BOUND)
    Annotation.objects.update(active_seconds=before)
    with connection.cursor() as cursor:
        cursor.execute(CLIP)
    assert Annotation.objects.get().active_seconds == after
