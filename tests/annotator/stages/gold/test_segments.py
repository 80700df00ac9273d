"""Gold tasks of segments: experts' scores come in, practice explains them, test and stream measure by them."""

from typing import Any

import pytest
from django.test import Client

from annotator.models import ExpertRating, Project, QualificationAnswer, QualificationRun, Task, User
from annotator.stages.annotation import change_cuts
from annotator.stages.gold import gold_tasks, qualification
from annotator.stages.pii.redaction import Choice, redact
from tests.annotator.segmented import ASPECTS, TEXT, make_segmented_project
from tests.builders import NOW, imported, make_member, make_user, task_row
from tests.refusals import refusal

CUT = [[0, 10], [10, 20], [20, 28]]


def gold_row(name: str, *levels: int | None, use: str = "practice", **fields: Any) -> dict[str, Any]:
    expert = {"segments": [dict.fromkeys(ASPECTS, level) for level in levels], "explanation": "It rains."}
    response = {"text": f"{TEXT}", "segments": CUT, "expert": expert | fields}
    return task_row(name, prompt=f"How is it in {name}?") | {"responses": [response], "gold": use}


@pytest.fixture
def project(db: None) -> Project:
    return make_segmented_project(qualification_required=True)


@pytest.fixture
def alice(project: Project) -> User:
    user = make_user("alice")
    make_member(project, user)
    return user


def refused(project: Project, row: Any) -> str:
    (rejected,) = imported(project, row).rejected
    return rejected.error


def test_experts_scores_of_segments_are_stored(project: Project) -> None:
    assert imported(project, gold_row("g1", 4, None, 0)).rejected == []
    stored = ExpertRating.objects.get()
    assert (stored.aspects, stored.segment_scores) == (list(ASPECTS), [[4] * 5, [None] * 5, [0] * 5])
    assert Task.objects.get().state == Task.State.GOLD


@pytest.mark.parametrize(
    ("expert", "says"),
    [
        ({"segments": []}, "a list of scores by aspect"),
        ({"segments": [dict.fromkeys(ASPECTS, 1)]}, "a list of scores by aspect"),
        ({"segments": [{"clarity": 1}] * 3}, "must be an object with helpfulness"),
        ({"segments": [dict.fromkeys(ASPECTS, 7)] * 3}, "its scores go from 0 to 4"),
    ],
)
def test_experts_scores_that_do_not_fit_are_refused(project: Project, expert: dict[str, Any], says: str) -> None:
    row = gold_row("g1", 4, 4, 4)
    row["responses"][0]["expert"] = expert
    assert says in refused(project, row)


def filled(task: Task, *levels: int) -> dict[str, Any]:
    number = task.responses.get().public_id
    cells = {
        f"seg-{number}-{index}-{aspect}": str(level + 1) for index, level in enumerate(levels) for aspect in ASPECTS
    }
    return cells | {"task": str(task.public_id)}


def take(client: Client, alice: User, kind: str, *answers: tuple[int, ...]) -> QualificationRun:
    client.force_login(alice)
    run = qualification.begin(alice.memberships.get(), kind, now=NOW)
    for levels in answers:
        task = qualification.next_task(run)
        assert task is not None
        page = client.get(f"/qualification/{run.pk}/").content.decode()
        assert 'class="segments"' in page
        answer = client.post(f"/qualification/{run.pk}/", filled(task, *levels))
        assert answer.status_code == 302, answer.content.decode()[-3000:]
    run.refresh_from_db()
    return run


def test_practice_shows_both_levels_of_each_segment(project: Project, alice: User, client: Client) -> None:
    imported(project, gold_row("g1", 4, 1, 0))
    run = take(client, alice, "practice", (4, 2, 0))
    assert QualificationAnswer.objects.get().segment_scores == [[4] * 5, [2] * 5, [0] * 5]
    page = client.get(f"/qualification/{run.pk}/tasks/{Task.objects.get().public_id}/").content.decode()
    assert "your level, then the experts" in page
    assert page.count('<span class="levels-said">5 5</span>') == 5
    assert page.count(">3 2</span>") == 5


@pytest.mark.parametrize(("levels", "passed"), [((4, 1, 0), True), ((0, 4, 4), False)])
def test_the_test_is_measured_by_segments(
    project: Project, alice: User, client: Client, levels: tuple[int, ...], passed: bool
) -> None:
    for name in ("g1", "g2"):
        imported(project, gold_row(name, 4, 1, 0, use="test"))
    run = take(client, alice, "test", levels, levels)
    assert run.passed is passed
    assert run.kappa is not None


def test_the_stream_is_measured_by_segments(project: Project, alice: User, client: Client) -> None:
    Project.objects.update(gold_every=1, gold_window=2, gold_threshold=0.9, qualification_required=False)
    for name in ("g1", "g2"):
        imported(project, gold_row(name, 4, 1, 0, use="stream"))
    imported(project, task_row("work") | {"responses": [{"text": TEXT}]})
    client.force_login(alice)
    member = alice.memberships.select_related("project").get()
    for _ in range(2):
        assert client.get("/projects/talk/annotate/").status_code == 200
        mine = alice.assignments.get(state="leased")
        client.post(f"/assignments/{mine.pk}/submit/", filled(mine.task, 0, 4, 4))
        assert mine.task.state == Task.State.GOLD
    reached = gold_tasks.standing(member)
    assert reached is not None
    assert reached.mean is not None
    assert reached.mean < 0
    member.refresh_from_db()
    assert member.pause_reason == "gold"


def test_a_redaction_takes_what_was_said_of_a_segment_along(project: Project, alice: User, client: Client) -> None:
    imported(project, gold_row("g1", 4, None, 0))
    task, expert = Task.objects.get(), ExpertRating.objects.get()
    run = QualificationRun.objects.create(member=alice.memberships.get(), kind="practice", number=1, started_at=NOW)
    common = {"scores": {}, "aspects": list(ASPECTS), "answered_at": NOW}
    QualificationAnswer.objects.create(
        run=run, response=expert.response, segment_scores=[[1] * 5, [2] * 5, [3] * 5], **common
    )
    Task.objects.update(state="quarantined")
    redact(task.pk, Choice(quotes=("rains. It pours. It",)), now=NOW)
    assert len(Task.objects.get().responses.get().segments or []) == 2
    assert ExpertRating.objects.get().segment_scores == [[4] * 5, [0] * 5]
    assert QualificationAnswer.objects.get().segment_scores == [[1] * 5, [3] * 5]


def test_the_segments_of_a_gold_task_stay(project: Project, alice: User) -> None:
    imported(project, gold_row("g1", 4, None, 0))
    with refusal("in_use", match="gold task"):
        change_cuts(Task.objects.get().pk, {ExpertRating.objects.get().response_id: [TEXT]})
