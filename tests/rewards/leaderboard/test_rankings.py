"""Rankings become pairs of a snapshot, which a model learns from and is judged by."""

import json
from typing import Any

import pytest
from django.conf import settings

from annotator.models import Adjudication, Consensus, Label, Project
from rewards import snapshots
from rewards.learning.data import Response, Task, Turn, read_snapshot, read_tasks
from rewards.learning.pairs import better, pairs_of
from rewards.learning.refusals import Refused
from rewards.models import Snapshot
from rewards.reasons import in_words
from rewards.runs.new_labels import news_since
from tests.builders import NOW, make_project, make_task, make_user, rate
from tests.conftest import Cast

WEIGHTS = {"helpfulness": 1.0}


def ranked_tasks(cast: Cast, count: int = 12, *, levels: list[int] | None = None) -> Project:
    """Everybody ranks the third response first, and ties the others."""
    project = make_project("asking", ask_preference=True, validation_share=0.5)
    for _ in range(count):
        one, two, three = (response.pk for response in make_task(project, responses=3).responses.all())
        for user in cast.annotators:
            rate(project, user, levels or [2, 3, 4], ranking=[[three], [one, two]])
    return project


def rows(taken: Snapshot) -> list[dict[str, Any]]:
    folder = settings.ARTIFACTS / taken.path
    files = (folder / name for name in ("train.jsonl", "validation.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_a_snapshot_has_the_pairs_by_the_responses_places(cast: Cast) -> None:
    taken = snapshots.take(ranked_tasks(cast), now=NOW)
    written = rows(taken)
    assert [row["pairs"] for row in written] == [[[2, 0], [2, 1]]] * 12
    assert {row["preference"] for row in written} == {None}
    counts = taken.manifest["counts"]
    assert counts["train_preferences"] + counts["validation_preferences"] == 24


def test_the_trainer_reads_them_and_keeps_a_prompt_on_one_side(cast: Cast) -> None:
    taken = snapshots.take(ranked_tasks(cast), now=NOW)
    read = read_snapshot(settings.ARTIFACTS / taken.path)
    assert {task.pairs for task in (*read.train, *read.validation)} == {((2, 0), (2, 1))}
    sides = [{pair.prompt for pair in pairs_of(side, WEIGHTS)} for side in (read.train, read.validation)]
    assert all(sides)
    assert not sides[0] & sides[1]


def test_a_reviewers_ranking_is_in_force(cast: Cast) -> None:
    project = ranked_tasks(cast)
    task = project.tasks.first()
    assert task is not None
    one, two, three = (response.pk for response in task.responses.all())
    rita = make_user("rita")
    fields = {"scores": {}, "reason": "slip", "by": rita, "made_at": NOW}
    Adjudication.objects.create(task=task, ranking=[[one], [two], [three]], **fields)
    pairs_of = {row["task"]: row["pairs"] for row in rows(snapshots.take(project, now=NOW))}
    assert pairs_of[task.external_id] == [[0, 1], [0, 2], [1, 2]]


def test_rankings_alone_are_something_to_learn_from(cast: Cast) -> None:
    project = ranked_tasks(cast)
    Label.objects.all().delete()
    written = rows(snapshots.take(project, now=NOW))
    assert [(len(row["responses"]), row["pairs"]) for row in written] == [(3, [[2, 0], [2, 1]])] * 12
    assert in_words(news_since(None, project).reason()) == "12 new preferences"


def test_dropped_tasks_teach_no_order(cast: Cast) -> None:
    project = ranked_tasks(cast)
    Label.objects.all().delete()
    Consensus.objects.filter(task=project.tasks.first()).update(drop_reason="too far apart")
    assert len(rows(snapshots.take(project, now=NOW))) == 11


# The learning core -----------------------------------------------------------------------------------------


def task_of(*levels: float, pairs: tuple[tuple[int, int], ...] = ()) -> Task:
    responses = tuple(Response(str(n), "a" * n, {"helpfulness": level}, {}, []) for n, level in enumerate(levels))
    return Task("t", "hash", (Turn("user", "?"),), responses, None, pairs=pairs)


def test_a_ranking_tells_the_better_one_whatever_the_labels_say() -> None:
    assert list(better(task_of(0, 1, 4, pairs=((0, 1), (2, 1))), WEIGHTS)) == [(0, 1, 1.0), (2, 1, 1.0)]


def test_without_one_the_labels_do() -> None:
    assert list(better(task_of(0, 1, 1), WEIGHTS)) == [(1, 0, 1.0), (2, 0, 1.0)]


def test_pairs_of_a_ranking_count_as_preferences() -> None:
    assert [pair.strength for pair in pairs_of([task_of(0, 1, 4, pairs=((0, 1),))], WEIGHTS)] == [1]


@pytest.mark.parametrize(
    "pairs", [[[0, 3]], [[0, -1]], [[0]], [[0, 1, 2]], [[0, 0]], [[0, 1], [1, 0]], [[0, "1"]], 5, [5]]
)
def test_pairs_of_no_responses_are_refused(tmp_path: Any, pairs: Any) -> None:
    row = {"task": "t", "prompt_hash": "h", "conversation": [{"role": "user", "content": "?"}], "pairs": pairs}
    row["responses"] = [{"id": str(n), "text": "a", "scores": {}} for n in range(3)]
    file = tmp_path / "train.jsonl"
    file.write_text(json.dumps(row))
    with pytest.raises(Refused, match="line 1"):
        list(read_tasks(file))
