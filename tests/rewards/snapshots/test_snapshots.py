"""Labels become files that never change."""

import hashlib
import json
from typing import Any

import pytest

from annotator.models import NEITHER_VALID, Consensus, Label, Project, Response, Task
from annotator.models.splits import is_held_out
from annotator.stages.pii.redaction import Choice, redact
from annotator.stages.review import adjudicate
from rewards import snapshots
from rewards.learning.data import read_snapshot
from rewards.models import Snapshot
from rewards.snapshots import building
from tests.builders import ATTRIBUTES, NOW, imported, label_row, make_project, make_task, rate
from tests.conftest import Cast
from tests.each import each
from tests.refusals import refusal
from tests.rewards.labelled import labelled_project, preferred_project


def rows(taken: Snapshot) -> list[dict[str, object]]:
    names = ("train.jsonl", "validation.jsonl")
    return [json.loads(line) for name in names for line in (taken.directory() / name).read_text().splitlines()]


def test_the_trainer_reads_what_was_written(db: None) -> None:
    taken = snapshots.take(labelled_project(), now=NOW)
    read = read_snapshot(taken.directory())
    assert (len(read.train), len(read.validation)) == (taken.train_tasks, taken.validation_tasks)
    assert taken.train_tasks + taken.validation_tasks == 40
    assert taken.labels == 80


def test_rows_name_the_model_and_the_source_where_they_are_known(db: None) -> None:
    project = labelled_project()
    assert all("model" not in str(row) and "source" not in row for row in rows(snapshots.take(project, now=NOW)))
    Response.objects.update(model="small-1")
    Task.objects.update(metadata={"source": "forum"})
    read = read_snapshot(snapshots.take(project, now=NOW).directory()).train[0]
    assert (read.source, read.responses[0].model) == ("forum", "small-1")


def test_unchanged_labels_give_the_same_snapshot(db: None) -> None:
    project = labelled_project()
    assert snapshots.take(project, now=NOW) == snapshots.take(project, now=NOW)


def test_a_changed_label_gives_another_snapshot(db: None) -> None:
    project = labelled_project()
    first = snapshots.take(project, now=NOW)
    label = Label.objects.all()[0]
    label.means = label.scores = dict.fromkeys(label.scores, 1)
    label.save()
    assert snapshots.take(project, now=NOW).content_hash != first.content_hash


def test_the_manifest_names_the_files_hashes(db: None) -> None:
    taken = snapshots.take(labelled_project(), now=NOW)
    for name, digest in each(taken.manifest["files"].items()):
        assert hashlib.sha256((taken.directory() / name).read_bytes()).hexdigest() == digest


def test_the_manifest_counts_the_labels_of_each_version_of_the_rubric(db: None) -> None:
    project = labelled_project()
    Label.objects.filter(response__position=1).update(rubric_version=2)
    manifest = snapshots.take(project, now=NOW).manifest
    assert manifest["rubric"] == {"key": "helpsteer2", "version": 1, "labels_by_version": {"1": 40, "2": 40}}


def test_a_prompt_never_changes_side(db: None) -> None:
    small, large = labelled_project("small", tasks=20), labelled_project("large", tasks=40)
    side = {row["prompt_hash"]: name for name in ("train", "validation") for row in side_rows(small, name)}
    for name in ("train", "validation"):
        for row in side_rows(large, name):
            assert side.get(row["prompt_hash"], name) == name


def side_rows(project: Project, side: str) -> list[dict[str, str]]:
    path = snapshots.take(project, now=NOW).directory() / f"{side}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_share_is_about_kept() -> None:
    prompts = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(2000)]
    assert 0.08 < sum(is_held_out(prompt, 0.1) for prompt in prompts) / 2000 < 0.12


def test_quarantined_tasks_are_left_out(db: None) -> None:
    project = labelled_project()
    Task.objects.filter(pk=Task.objects.all()[0].pk).update(state=Task.State.QUARANTINED)
    assert len(rows(snapshots.take(project, now=NOW))) == 39


def test_kept_ratings_and_means_are_written(cast: Cast) -> None:
    project = make_project("small", validation_share=0.5)
    for number in range(12):
        make_task(project, prompt=f"Prompt {number}")
        for user, level in zip(cast.annotators, (3, 3, 4), strict=True):
            rate(project, user, level)
    first = rows(snapshots.take(project, now=NOW))[0]["responses"][0]  # type: ignore[index]
    assert first["scores"]["helpfulness"] == pytest.approx(10 / 3)
    assert first["labels"]["helpfulness"] == 3
    assert sorted(rating["helpfulness"] for rating in first["ratings"]) == [3, 3, 4]


def settled_task(cast: Cast, **fields: Any) -> dict[str, Any]:
    """The row of a task that annotators rated 3, 3, 4 and preferred by 1, and carol settled at 0."""
    project = make_project("small", validation_share=0.5)
    for number in range(12):
        make_task(project, prompt=f"Prompt {number}")
        for user, level in zip(cast.annotators, (3, 3, 4), strict=True):
            rate(project, user, level)
    task = Task.objects.filter(project=project).order_by("pk")[0]
    scores = {response.pk: dict.fromkeys(ATTRIBUTES, 0) for response in task.responses.all()}
    adjudicate(task.pk, scores=scores, reason="slip", by=cast.carol, now=NOW, **fields)
    Consensus.objects.update(preference=1)
    matching = [row for row in rows(snapshots.take(project, now=NOW)) if row["task"] == task.external_id]
    return dict(matching[0])


def test_a_reviewers_scores_and_preference_are_written(cast: Cast) -> None:
    row = settled_task(cast, preference=-2)
    assert [response["scores"]["helpfulness"] for response in row["responses"]] == [0, 0]
    assert sorted(rating["helpfulness"] for rating in row["responses"][0]["ratings"]) == [3, 3, 4]
    assert row["preference"] == -2


@pytest.mark.parametrize(("settled", "written"), [(None, 1), (NEITHER_VALID, None)])
def test_a_reviewer_may_leave_the_preference_or_refuse_it(cast: Cast, settled: int | None, written: int | None) -> None:
    assert settled_task(cast, preference=settled)["preference"] == written


def test_preferences_alone_are_something_to_learn_from(db: None) -> None:
    project = preferred_project()
    assert snapshots.has_answers(project)
    taken = snapshots.take(project, now=NOW)
    read = read_snapshot(taken.directory())
    tasks = [*read.train, *read.validation]
    assert [len(task.responses) for task in tasks] == [2] * 12
    assert sorted(task.preference or 0 for task in tasks) == [1] * 4 + [2] * 4 + [3] * 4
    assert not any(response.scores for task in tasks for response in task.responses)
    assert (taken.labels, str(taken).partition(" ")[2]) == (0, "(0 labels, 12 preferences)")
    assert snapshots.take(project, now=NOW) == taken


def test_labels_and_preferences_of_other_tasks_stand_in_the_order_of_the_tasks(db: None) -> None:
    project = preferred_project(tasks=6)
    imported(project, *(label_row(f"Rated {n}", text, helpfulness=n % 5) for n in range(8) for text in ("A.", "B.")))
    imported(project, {"prompt": "Later", "response_1": "C.", "response_2": "D.", "preference_strength": -1})
    taken = snapshots.take(project, now=NOW)
    assert (taken.labels, taken.train_tasks + taken.validation_tasks) == (16, 15)
    places = dict(Task.objects.values_list("external_id", "pk"))
    for name in ("train.jsonl", "validation.jsonl"):
        lines = (taken.directory() / name).read_text().splitlines()
        of_file = [places[json.loads(line)["task"]] for line in lines]
        assert of_file == sorted(of_file)


@pytest.mark.parametrize(
    ("fields", "left"),
    [({"state": "quarantined"}, 11), ({"state": "retired"}, 11), ({"imported_preference": 0}, 11), ({}, 12)],
)
def test_tasks_set_aside_and_preferences_for_neither_teach_nothing(db: None, fields: dict[str, Any], left: int) -> None:
    project = preferred_project()
    if fields:
        Task.objects.filter(pk=Task.objects.all()[0].pk).update(**fields)
    assert len(rows(snapshots.take(project, now=NOW))) == left


def test_what_annotators_dropped_teaches_no_preference(db: None) -> None:
    project = preferred_project()
    task = Task.objects.order_by("pk")[0]
    dropped = {"preference": 1, "drop_reason": "spread", "computed_at": NOW}
    Consensus.objects.create(project=project, task=task, annotators=3, **dropped)
    assert len(rows(snapshots.take(project, now=NOW))) == 11


def test_nothing_to_learn_from_is_said(project: Project) -> None:
    with refusal("not_enough_labels", match="0 tasks with labels or preferences to learn from"):
        snapshots.take(project, now=NOW)
    assert not Snapshot.objects.exists()


# What went later ------------------------------------------------------------------------------------------


def marks(taken: Snapshot) -> tuple[int, int, bool]:
    taken.refresh_from_db()
    return taken.redacted_tasks, taken.deleted_tasks, taken.is_marked()


def test_a_redaction_marks_the_snapshots_that_hold_the_text(cast: Cast) -> None:
    project = labelled_project()
    taken = snapshots.take(project, now=NOW)
    task = project.tasks.all()[0]
    Task.objects.filter(pk=task.pk).update(state=Task.State.QUARANTINED)
    redact(task.pk, Choice(quotes=["what is it"]), now=NOW)
    assert marks(taken) == (1, 0, True)
    again = snapshots.take(project, now=NOW)
    assert again.content_hash != taken.content_hash
    assert marks(again) == (0, 0, False)


def test_deleted_tasks_mark_the_snapshots_that_hold_them(db: None) -> None:
    project = labelled_project()
    taken = snapshots.take(project, now=NOW)
    project.tasks.filter(pk__in=project.tasks.values("pk")[:3]).delete()
    assert marks(taken) == (0, 3, True)


def test_tasks_that_a_snapshot_has_not_seen_do_not_mark_it(db: None) -> None:
    project = labelled_project()
    taken = snapshots.take(project, now=NOW)
    late = make_task(project)
    Task.objects.filter(pk=late.pk).update(redacted_at=NOW)
    late.delete()
    assert marks(taken) == (0, 0, False)


def test_what_goes_while_a_snapshot_is_written_marks_it(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    project = labelled_project()
    first, second = project.tasks.all()[:2]

    def meanwhile(*args: Any) -> None:
        Task.objects.filter(pk=first.pk).update(redacted_at=NOW)
        second.delete()

    monkeypatch.setattr(building, "_check", meanwhile)
    assert marks(snapshots.take(project, now=NOW)) == (1, 1, True)


def test_a_project_is_deleted_with_its_snapshots(db: None) -> None:
    project = labelled_project()
    snapshots.take(project, now=NOW)
    project.delete()
    assert not Snapshot.objects.exists()
