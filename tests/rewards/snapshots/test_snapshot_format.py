"""The bytes of a snapshot's files never change: the same labels give the content hash that they have always given."""

import hashlib
import json
import re

import pytest

from annotator.models import Adjudication, Consensus, Label, Project, Response, Task
from annotator.stages.review import adjudicate
from rewards import snapshots
from rewards.snapshots import lines
from tests.builders import ATTRIBUTES, NOW, imported, label_row, make_project, make_task, make_user, rate
from tests.conftest import Cast

ODD_TEXTS = (
    'Tab\there, "quotes" and a back\\slash.',
    "Grüße, 你好 🙂 \u2028 next \x7f end.\r\nLine two\n",
    "</script>&é",
)
BYTES = {
    "train.jsonl": "8a6bed66c78766222184a16cad4d926ed0e7ab9bac80763cea9d91496a39475f",
    "validation.jsonl": "8228c92620b65a192f2f94b94c240185ee90cc91db2613c44729c8cd02c7961e",
}
"""The SHA-256 of each file, with responses numbered from the project's first, as the first version wrote it."""


def every_kind_of_task(cast: Cast) -> Project:
    project = make_project("every", ask_preference=True, validation_share=0.5)
    for number in range(4):
        task = make_task(project, f"rated-{number}")
        for user, level in zip(cast.annotators, (3, 3, 4), strict=True):
            rate(project, user, [level, 4 - level], preference=1)
    scores = {response.pk: dict.fromkeys(ATTRIBUTES, 0) for response in task.responses.all()}
    adjudicate(task.pk, scores=scores, preference=-2, reason="slip", by=cast.carol, now=NOW)
    for number in range(3):
        task = make_task(project, f"ranked-{number}", responses=3)
        one, two, three = (response.pk for response in task.responses.all())
        for user in cast.annotators:
            rate(project, user, [2, 3, 4], ranking=[[three], [one, two]])
    settled = {"scores": {}, "reason": "slip", "by": make_user("rita"), "made_at": NOW}
    Adjudication.objects.create(task=task, ranking=[[one], [two], [three]], **settled)
    Label.objects.filter(response__task__external_id="ranked-0").delete()
    Label.objects.filter(response__task__external_id="ranked-1", response__position=1).delete()
    for number, text in enumerate(ODD_TEXTS):
        imported(project, *(label_row(f"{number} {text}", f"{answer} {text}", coherence=2) for answer in "ab"))
    Label.objects.filter(source="imported", response__position=1).update(means={"helpfulness": 1e-05, "verbosity": 2.5})
    Label.objects.filter(source="imported", response__position=0).update(means={})
    for strength in (-3, 0, 2):
        pair = {"response_1": "One.", "response_2": "Two.", "preference_strength": strength}
        imported(project, {"prompt": f"Pair {strength}", **pair})
    # Set here, as annotators see the responses in an order of their own.
    Consensus.objects.filter(task__external_id__startswith="rated-").update(preference=1)
    dropped = Task.objects.get(external_id="rated-1")
    Consensus.objects.filter(task=dropped).update(drop_reason="spread")
    values = {"scores": {}, "means": {}, "made_at": NOW}
    response = dropped.responses.all()[0]
    Label.objects.create(project=dropped.project, response=response, source="adjudicated", **values)
    Consensus.objects.filter(task__external_id="rated-2").update(drop_reason="spread")
    Response.objects.filter(task__external_id="rated-0").update(model='small "1"')
    Task.objects.filter(external_id="rated-0").update(metadata={"source": "forum 🙂", "more": [1]})
    Task.objects.filter(external_id="ranked-2").update(metadata={"source": {"a": 1.50}})
    return project


def test_every_kind_of_task_is_written_as_ever(cast: Cast) -> None:
    project = every_kind_of_task(cast)
    folder = snapshots.take(project, now=NOW).directory()
    first = Response.objects.filter(task__project=project).earliest("pk").pk
    lines = {name: (folder / name).read_bytes() for name in BYTES}
    assert {name: hashlib.sha256(numbered(content, first)).hexdigest() for name, content in lines.items()} == BYTES


def numbered(content: bytes, first: int) -> bytes:
    """The numbers of responses depend on what other tests have stored before."""
    return re.sub(rb'"id": "(\d+)"', lambda match: b'"id": "%d"' % (int(match[1]) - first), content)


def test_a_snapshot_does_not_depend_on_how_many_tasks_are_read_at_once(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = every_kind_of_task(cast)
    taken = snapshots.take(project, now=NOW)
    for number in (1, 3):
        monkeypatch.setattr(lines, "TASKS_AT_ONCE", number)
        assert snapshots.take(project, now=NOW) == taken


def test_each_row_is_json_as_python_writes_it(cast: Cast) -> None:
    folder = snapshots.take(every_kind_of_task(cast), now=NOW).directory()
    for name in BYTES:
        for line in (folder / name).read_text("utf-8").split("\n")[:-1]:
            assert json.dumps(json.loads(line), ensure_ascii=False) == line
