"""What a change of the protocol would do, computed beforehand: the numbers have to be those of the recount."""

import random
from collections.abc import Mapping
from typing import Any

import pytest
from django.db import transaction

from annotator.managing import project_settings
from annotator.managing.settings_check import InvalidProject
from annotator.models import Consensus, Label, Project, Task, User
from annotator.stages import annotation, assignment
from annotator.stages.consensus import ProtocolPreview, previews, protocol_preview
from annotator.stages.review import adjudicate
from tests.builders import NOW, claimed, make_task, make_user, submission

Facts = Mapping[int, Any]


def rated_by_many(project: Project, *, tasks: int, seed: int) -> None:
    """Tasks with ratings at random, some of them settled by a reviewer, set aside, begun or untouched."""
    dice = random.Random(seed)
    Project.objects.filter(pk=project.pk).update(drop_above=1 + seed % 2)
    project.refresh_from_db()
    raters = [make_user(f"rater-{number}") for number in range(5)]
    for number in range(tasks):
        make_task(project, f"t-{number}")
    for user in raters:
        project.memberships.create(user=user)
        for _ in range(dice.randint(tasks // 2, tasks)):
            lease = assignment.claim(project, user, now=NOW).assignment
            if lease is None:
                break
            levels = [dice.choice((0, 1, 2, 3, 4)) for _ in range(2)]
            annotation.submit(lease.pk, submission(lease.task, levels), now=NOW)
    complete = list(project.tasks.filter(state=Task.State.COMPLETE).order_by("pk"))
    reviewer = make_user("reviewer")
    for task in complete[:2]:
        scores = {response.pk: dict.fromkeys(project.attribute_keys(), 2) for response in task.responses.all()}
        adjudicate(task.pk, by=reviewer, scores=scores, reason="settled", now=NOW)
    Task.objects.filter(pk__in=[task.pk for task in complete[2:4]]).update(state=Task.State.QUARANTINED)
    assignment.recount(project, now=NOW)


def facts(project: Project) -> dict[str, Facts]:
    """What is stored of the project's tasks and of the labels in force that its annotators have made."""
    tasks = project.tasks.filter(state__in=["open", "complete"])
    labels = Label.objects.in_force().for_project(project.pk).filter(source=Label.Source.CONSENSUS)
    return {
        "complete": dict.fromkeys(tasks.filter(state="complete").values_list("pk", flat=True)),
        "dropped": dict.fromkeys(
            Consensus.objects.filter(task__in=tasks).exclude(drop_reason="").values_list("task", flat=True)
        ),
        "consensus": dict.fromkeys(Consensus.objects.filter(task__in=tasks).values_list("task", flat=True)),
        "labels": dict(labels.values_list("response", "means")),
        "wanted": {task.pk: task.slots_wanted - task.done for task in tasks if task.state == "open"},
    }


def measured(before: Mapping[str, Facts], after: Mapping[str, Facts]) -> dict[str, int]:
    labels = before["labels"], after["labels"]
    return {
        "reopened": len(before["complete"].keys() - after["complete"].keys()),
        "completed": len(after["complete"].keys() - before["complete"].keys()),
        "dropped": len(after["dropped"].keys() - before["dropped"].keys()),
        "kept_again": len((before["dropped"].keys() - after["dropped"].keys()) & after["consensus"].keys()),
        "labels_lost": len(labels[0].keys() - labels[1].keys()),
        "labels_gained": len(labels[1].keys() - labels[0].keys()),
        "labels_changed": sum(labels[0][key] != labels[1][key] for key in labels[0].keys() & labels[1].keys()),
        "annotations_before": sum(before["wanted"].values()),
        "annotations_after": sum(after["wanted"].values()),
    }


def numbers(preview: ProtocolPreview) -> dict[str, int]:
    names = (*previews.EFFECTS, "annotations_before", "annotations_after")
    return {name: getattr(preview, name).number for name in names}


CHANGES: list[dict[str, Any]] = [
    {"escalate_above": 0},
    {"base_annotators": 2},
    {"base_annotators": 4},
    {"base_annotators": 1, "max_annotators": 1},
    {"keep": 2},
    {"keep": 5, "drop_above": 1},
    {"drop_above": 0},
    {"drop_above": 4, "escalate_above": 4},
    {"spread_scope": "all"},
    {"spread_attribute": "verbosity", "drop_above": 1},
]


@pytest.mark.parametrize("seed", [1, 2])
def test_the_preview_is_what_the_recount_does(project: Project, seed: int) -> None:
    """Each change is made by itself, and taken back before the next: rating the tasks takes longer than both."""
    rated_by_many(project, tasks=24, seed=seed)
    before, found = facts(project), {}
    for change in CHANGES:
        with transaction.atomic():
            expected = project_settings.preview(project, change)
            assert facts(project) == before
            project_settings.change(project, change)
            assignment.recount(project, now=NOW)
            found[str(change)] = numbers(expected), measured(before, facts(project)), expected.is_exact
            transaction.set_rollback(True)
        project.refresh_from_db()
    assert {change: told for change, (told, done, exact) in found.items() if told != done or not exact} == {}
    assert len(found) == len(CHANGES)


def test_the_changes_of_the_test_do_every_kind_of_thing(project: Project) -> None:
    rated_by_many(project, tasks=24, seed=2)
    shown = [numbers(project_settings.preview(project, change)) for change in CHANGES]
    assert all(any(one[name] for one in shown) for name in previews.EFFECTS)


def test_a_change_of_nothing_does_nothing(project: Project) -> None:
    rated_by_many(project, tasks=12, seed=3)
    assert protocol_preview(project, project).changes_nothing


def test_a_sample_says_how_far_its_estimates_may_be_off(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    rated_by_many(project, tasks=60, seed=4)
    exact = project_settings.preview(project, {"escalate_above": 0})
    monkeypatch.setattr(previews, "EXACT", 5)
    monkeypatch.setattr(previews, "SAMPLE", 40)
    sampled = project_settings.preview(project, {"escalate_above": 0})
    assert not sampled.is_exact
    assert sampled.tasks == exact.tasks
    assert sampled.examined <= 40
    assert 0 < sampled.reopened.margin < exact.tasks


def test_a_sample_of_every_task_is_exact(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    rated_by_many(project, tasks=30, seed=5)
    exact = project_settings.preview(project, {"drop_above": 1})
    monkeypatch.setattr(previews, "EXACT", 5)
    sampled = project_settings.preview(project, {"drop_above": 1})
    assert numbers(sampled) == numbers(exact)
    assert sampled.dropped.margin == 0


def test_somebody_who_holds_the_last_slot_is_counted(project: Project) -> None:
    Project.objects.update(base_annotators=1, max_annotators=1, keep=1)
    project.refresh_from_db()
    user: User = make_user("holder")
    project.memberships.create(user=user)
    make_task(project, "held")
    claimed(project, user)
    preview = project_settings.preview(project, {"base_annotators": 2, "max_annotators": 2})
    assert (preview.annotations_before.number, preview.annotations_after.number) == (1, 2)


def test_numbers_that_no_project_can_have_are_refused(project: Project) -> None:
    with pytest.raises(InvalidProject):
        project_settings.preview(project, {"keep": 26})
