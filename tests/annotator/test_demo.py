"""The demo project."""

import pytest

from annotator import demo
from annotator.models import Annotation, AuditEntry, Origin, Project, Task
from tests.builders import NOW


@pytest.mark.slow
def test_the_demo_has_enough_to_retrain_at_once(db: None) -> None:
    seeded = demo.seed(now=NOW)
    project = Project.objects.get(slug="demo")
    assert seeded.created
    assert project.tasks.filter(state=Task.State.COMPLETE).count() >= 40
    assert set(Annotation.objects.values_list("origin", flat=True)) == {Origin.SIMULATED}
    rated = AuditEntry.objects.filter(action="annotation.submitted")
    assert {actor.partition("-")[0] for actor in rated.values_list("actor", flat=True)} == {"simulated"}
    assert project.tasks.filter(slots_wanted=5).exists()
    assert project.tasks.gold_for("practice").count() == 3
    assert project.tasks.gold_for("test").count() == 5
    assert not demo.seed(now=NOW).created
