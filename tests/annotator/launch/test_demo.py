"""The demo project."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client

from annotator.analysis import figures
from annotator.infrastructure.db.clock import database_now
from annotator.launch import run
from annotator.management import demo
from annotator.managing import issues
from annotator.models import Annotation, AuditEntry, Membership, Origin, Project, Task, User
from tests.builders import NOW, claimed, make_project


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


@pytest.mark.slow
def test_the_demo_opens_as_a_project_that_was_left_in_order(client: Client, db: None, workers: None) -> None:
    demo.seed(now=(now := database_now()))
    project = Project.objects.get(slug="demo")
    known = issues.facts(project)
    assert (list(issues.issues(project, known)), known.recounts, known.simulated) == ([], False, True)
    counted = figures.refresh(project, now=now)
    assert min(counted.imported) <= min(counted.annotations)
    client.force_login(User.objects.get(username="manager"))
    page = client.get("/projects/demo/").content.decode()
    assert "done by the demo" in page
    assert "Problem" not in page


@pytest.mark.slow
def test_everybody_begins_with_what_is_to_be_rated_and_ends_with_what_is_to_be_skipped(db: None) -> None:
    demo.seed(now=NOW)
    project = Project.objects.get(slug="demo")
    for name in ("alice", "bob", "erin"):
        task = claimed(project, User.objects.get(username=name)).task
        assert [turn["role"] for turn in task.conversation] == ["user"]
        assert task.conversation[0]["content"].startswith("My kitchen sink drains slowly")
        assert task.metadata["topic"] == "everyday"
    last = project.tasks.filter(priority__lt=0)
    assert {task.metadata["topic"] for task in last} == {"pii", "rtl-hebrew", "rtl-arabic", "about-assistant"}
    assert project.tasks.filter(priority__gte=0, state=Task.State.OPEN).count() > 10


@pytest.fixture
def seeded(db: None, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The project is there, and two of its names belong to people."""
    monkeypatch.setenv("DEMO_PASSWORD", "for the demo")
    for name in ("alice", "manager"):
        User.objects.create_user(name, password="chosen by herself")
    return make_project("demo")


def test_an_account_that_people_made_is_left_alone(seeded: Project) -> None:
    outcome = demo.seed(now=NOW)
    assert (outcome.accounts, outcome.left_alone) == (("bob", "erin"), ("manager", "alice"))
    alice, manager, bob = (User.objects.get(username=name) for name in ("alice", "manager", "bob"))
    assert alice.check_password("chosen by herself")
    assert (manager.is_staff, manager.check_password("for the demo")) == (False, False)
    assert bob.check_password("for the demo")
    assert not Membership.objects.filter(user__in=[alice, manager]).exists()


def test_its_own_accounts_get_their_password_again(seeded: Project) -> None:
    demo.seed(now=NOW)
    bob = User.objects.get(username="bob")
    bob.set_password("something else")
    bob.save()
    demo.seed(now=NOW)
    assert User.objects.get(username="bob").check_password("for the demo")


def test_the_command_names_whom_it_leaves_alone(seeded: Project) -> None:
    out = StringIO()
    call_command("seed_demo", stdout=out)
    assert out.getvalue().splitlines() == [
        "Demo project already exists. Accounts: bob, erin; password: for the demo",
        f"{run.LEFT_ALONE} manager, alice",
    ]
