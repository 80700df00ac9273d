"""Chunks, and the lanes that hand them out, without a model and without workers."""

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotator.celery import app
from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.background.heartbeats import QueueHealth
from annotator.models import Project, Response, Task
from rewards import scoring, tasks
from rewards.models import RewardModel, Score, ScoringLane, ScoringPass
from rewards.scoring import chunks, pass_lanes
from rewards.scoring.chunks import Chunk, score_chunk
from tests.builders import NOW, imported, label_row, make_task, task_row
from tests.rewards.scored import FakeScorer, make_model

Message = tuple[int, int]
LATER = timedelta(minutes=5)
SEND = pass_lanes.send


@pytest.fixture(autouse=True)
def alive(monkeypatch: pytest.MonkeyPatch) -> None:
    listen(monkeypatch, 2)


def listen(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(heartbeats, "listening", lambda: dict.fromkeys(heartbeats.QUEUES, QueueHealth(number, 0.0)))


@pytest.fixture(autouse=True)
def queue(monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    """What would have gone to Redis."""
    messages: list[Message] = []
    monkeypatch.setattr(pass_lanes, "send", lambda *message: messages.append(message))
    return messages


@pytest.fixture(autouse=True)
def scorer(monkeypatch: pytest.MonkeyPatch) -> FakeScorer:
    fake = FakeScorer()
    monkeypatch.setattr(pass_lanes, "scorer_of", lambda _: fake)
    monkeypatch.setattr(chunks.pace, "tasks", chunks.FEWEST_TASKS)
    return fake


@pytest.fixture
def champion(project: Project) -> RewardModel:
    return make_model(project, is_champion=True)


def work_off(queue: list[Message]) -> list[int]:
    """What workers would do with the messages; how many responses each turn scored."""
    done = []
    while queue:
        done.append(tasks.score_chunk(*queue.pop(0)))
    return done


def moved_back(since: timedelta) -> None:
    """As if so much time had gone by."""
    ScoringLane.objects.filter(moved_at__isnull=False).update(moved_at=F("moved_at") - since)


# Chunks ----------------------------------------------------------------------------------------------------


def everything(model: RewardModel) -> Chunk:
    return Chunk(model, 0, 2**62)


def test_a_chunk_scored_twice_is_scored_once(champion: RewardModel, scorer: FakeScorer) -> None:
    make_task(champion.project, responses=3)
    assert [score_chunk(everything(champion), scorer, now=NOW) for _ in range(2)] == [3, 0]
    assert (len(scorer.read), Score.objects.count()) == (3, 3)
    score = Score.objects.select_related("response__task").get(response__position=0)
    text = f"{score.response.task.conversation[-1]['content']}|{score.response.text}"
    assert (score.reward, score.uncertainty) == (float(len(text)), 0.1)


def test_equal_tokens_are_read_once(champion: RewardModel, scorer: FakeScorer) -> None:
    twins = [task_row(name, prompt="The same?") | {"responses": [{"text": "Yes."}] * 2} for name in ("a", "b")]
    imported(champion.project, twins[0])
    score_chunk(everything(champion), scorer, now=NOW)
    imported(champion.project, twins[1])
    assert score_chunk(everything(champion), scorer, now=NOW) == 2
    assert scorer.read == ["The same?|Yes."]
    assert Score.objects.values_list("reward", flat=True).distinct().count() == 1


def test_another_model_reads_for_itself(champion: RewardModel, scorer: FakeScorer) -> None:
    make_task(champion.project)
    for model in (champion, make_model(champion.project)):
        score_chunk(everything(model), scorer, now=NOW)
    assert (len(scorer.read), Score.objects.count()) == (4, 4)


def test_all_scores_of_a_model_are_in_the_precision_of_its_first(champion: RewardModel) -> None:
    imported(champion.project, *(task_row() for _ in range(2)))
    first, last = champion.project.tasks.order_by("pk").values_list("pk", flat=True)
    workers = [FakeScorer("bfloat16"), FakeScorer("float32")]
    for task, worker in zip((first, last), workers, strict=True):
        model = RewardModel.objects.get(pk=champion.pk)
        assert score_chunk(Chunk(model, task, task), worker, now=NOW) == 2
    assert [worker.computed_in for worker in workers] == [{"bfloat16"}] * 2
    assert RewardModel.objects.get(pk=champion.pk).score_precision == "bfloat16"


def test_a_model_whose_former_scores_nobody_noted_names_no_precision(champion: RewardModel) -> None:
    imported(champion.project, task_row())
    RewardModel.objects.update(scored=1)
    worker = FakeScorer("bfloat16")
    score_chunk(everything(champion), worker, now=NOW)
    assert (worker.computed_in, RewardModel.objects.get().score_precision) == ({"bfloat16"}, "")


def test_a_redacted_text_is_scored_anew(champion: RewardModel, scorer: FakeScorer) -> None:
    task = make_task(champion.project)
    score_chunk(everything(champion), scorer, now=NOW)
    Response.objects.filter(task=task, position=0).update(text="Removed.")
    Task.objects.filter(pk=task.pk).update(redacted_at=NOW + timedelta(seconds=1))
    assert score_chunk(everything(champion), scorer, now=NOW + LATER) == 2
    assert len(scorer.read) == 3, "the untouched response was known by its tokens"
    assert Score.objects.get(response__position=0).reward == float(len(scorer.read[-1]))


def test_retired_tasks_are_left_out(champion: RewardModel, scorer: FakeScorer) -> None:
    Task.objects.filter(pk=make_task(champion.project).pk).update(state=Task.State.RETIRED)
    assert score_chunk(everything(champion), scorer, now=NOW) == 0


def test_a_chunk_s_queries_do_not_grow_with_it(champion: RewardModel, scorer: FakeScorer) -> None:
    counts = []
    champion.score_precision = "float32"  # as after its first chunk
    for more in (1, 30):
        imported(champion.project, *(task_row() for _ in range(more)))
        with CaptureQueriesContext(connection) as captured:
            score_chunk(everything(champion), scorer, now=NOW)
        counts.append(len(captured))
    assert counts == [4, 4]


# Lanes -----------------------------------------------------------------------------------------------------


def test_every_response_is_scored_once(champion: RewardModel, queue: list[Message], scorer: FakeScorer) -> None:
    imported(champion.project, *(task_row() for _ in range(100)))
    scoring.start(champion, now=timezone.now())
    assert len(queue) == 2, "a message a worker"
    assert sum(work_off(queue)) == len(scorer.read) == Score.objects.count() == 200
    assert not ScoringLane.objects.filter(moved_at__isnull=False).exists()


def test_no_more_messages_than_lanes(champion: RewardModel, queue: list[Message]) -> None:
    imported(champion.project, *(task_row() for _ in range(100)))
    for _ in range(3):
        scoring.start_due(now=timezone.now())
        tasks.score_chunk(*queue.pop(0))
        assert len(queue) == 2


def test_no_turn_reads_a_whole_table(champion: RewardModel) -> None:
    project = champion.project
    made = Task.objects.bulk_create(Task(project=project, external_id=f"t{n}", conversation=[]) for n in range(6000))
    Response.objects.bulk_create(Response(task=task, position=n, text="Yes.") for task in made for n in range(2))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE annotator_task, annotator_response, rewards_score")
    ahead = {"model": champion.pk, "project": project.pk, "after": made[5900].pk, "look": 2000, "tasks": 256}
    due = pass_lanes._DUE.plan(lost=NOW, again=NOW)
    assert "task_by_project" in due
    assert "Seq Scan on annotator_task" not in due
    plans = pass_lanes._NEXT.plan(**ahead) + chunks._UNSCORED.plan(
        **Chunk(champion, made[0].pk, made[15].pk).parameters()
    )
    whole_tables = {"Seq Scan on annotator_task", "Seq Scan on annotator_response"}
    assert not whole_tables & set(re.findall(r"Seq Scan on \w+", plans))


def test_messages_go_behind_small_requests(
    db: None, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(app, "send_task", lambda *message, **options: sent.append((*message, options)))
    with django_capture_on_commit_callbacks(execute=True):
        SEND(1, 7)
    assert sent == [("rewards.tasks.score_chunk", [1, 7], {"priority": 9})]


def test_a_message_that_comes_twice_is_one_turn(champion: RewardModel, queue: list[Message]) -> None:
    imported(champion.project, *(task_row() for _ in range(30)))
    scoring.start(champion, now=timezone.now())
    lane, turn = queue[0]
    assert tasks.score_chunk(lane, turn) == 2 * chunks.FEWEST_TASKS
    assert tasks.score_chunk(lane, turn) == 0
    assert len(queue) == 3


def test_what_a_killed_worker_had_in_hand_is_scored_in_the_end(champion: RewardModel, queue: list[Message]) -> None:
    imported(champion.project, *(task_row() for _ in range(40)))
    scoring.start(champion, now=timezone.now())
    lane, number = queue.pop(0)
    assert pass_lanes.take(lane, number, now=timezone.now(), tasks=8), "and the worker is gone"
    work_off(queue)
    assert Score.objects.count() == 80 - 16
    assert scoring.start_due(now=timezone.now()) == 0, "it may still be at work"
    moved_back(LATER)
    assert scoring.start_due(now=timezone.now()) == 1
    assert sum(work_off(queue)) == 16
    assert Score.objects.count() == 80


def test_who_was_thought_lost_sends_no_second_message(champion: RewardModel, queue: list[Message]) -> None:
    imported(champion.project, *(task_row() for _ in range(40)))
    scoring.start(champion, now=timezone.now())
    turn = pass_lanes.take(*queue.pop(0), now=timezone.now(), tasks=8)
    assert turn
    moved_back(LATER)
    scoring.start_due(now=timezone.now())
    waiting = len(queue)
    pass_lanes.finish(turn, now=timezone.now())
    assert len(queue) == waiting


@pytest.mark.django_db(transaction=True)
def test_a_lane_is_woken_while_it_is_taken(
    project: Project, queue: list[Message], monkeypatch: pytest.MonkeyPatch
) -> None:
    champion = make_model(project, is_champion=True)
    imported(project, *(task_row() for _ in range(4)))
    pass_lanes.wake(champion, now=timezone.now())
    taken, with_chunk = Event(), pass_lanes._with_chunk

    def in_between(lane: ScoringLane, tasks: int) -> pass_lanes.Turn | None:
        taken.set()
        time.sleep(0.5)
        return with_chunk(lane, tasks)

    def wake() -> None:
        taken.wait(10)
        pass_lanes.wake(champion, now=timezone.now() + LATER)
        connection.close()

    monkeypatch.setattr(pass_lanes, "_with_chunk", in_between)
    with ThreadPoolExecutor() as threads:
        waking = threads.submit(wake)
        assert pass_lanes.take(*queue[0], now=timezone.now(), tasks=8)
        waking.result()


def test_a_flushed_redis_loses_no_response(champion: RewardModel, queue: list[Message]) -> None:
    imported(champion.project, *(task_row() for _ in range(20)))
    scoring.start(champion, now=timezone.now())
    queue.clear()
    moved_back(LATER)
    scoring.start_due(now=timezone.now())
    work_off(queue)
    assert Score.objects.count() == 40


def test_new_responses_are_found_and_nothing_is_sent_without_any(champion: RewardModel, queue: list[Message]) -> None:
    make_task(champion.project)
    for _ in range(2):
        assert scoring.start_due(now=timezone.now()) == 1
        work_off(queue)
        with CaptureQueriesContext(connection) as captured:
            assert scoring.start_due(now=timezone.now()) == 0
        assert (len(captured), queue) == (2, []), "the champions that are due, and failures that are over"
        imported(champion.project, label_row("New?", "Yes."))
    assert Score.objects.count() == 3


def test_a_new_worker_gets_a_lane(champion: RewardModel, queue: list[Message], monkeypatch: pytest.MonkeyPatch) -> None:
    imported(champion.project, *(task_row() for _ in range(100)))
    scoring.start(champion, now=timezone.now())
    listen(monkeypatch, 3)
    scoring.start_due(now=timezone.now())
    assert [lane for lane, _ in queue] == list(ScoringLane.objects.order_by("number").values_list("pk", flat=True))
    listen(monkeypatch, 1)
    work_off(queue)
    assert Score.objects.count() == 200


def test_a_model_that_is_champion_no_more_stops(champion: RewardModel, queue: list[Message]) -> None:
    imported(champion.project, *(task_row() for _ in range(40)))
    scoring.start(champion, now=timezone.now())
    RewardModel.objects.update(is_champion=False)
    assert work_off(queue) == [0, 0]


def test_what_was_committed_behind_a_lane_is_found_later(champion: RewardModel, queue: list[Message]) -> None:
    late = make_task(champion.project)
    make_task(champion.project)
    ScoringPass.objects.create(reward_model=champion, began_at=timezone.now(), handed_out=late.pk)
    scoring.start_due(now=timezone.now())
    work_off(queue)
    assert Score.objects.count() == 2
    assert scoring.start_due(now=timezone.now() + pass_lanes.LOOK_AGAIN_AFTER + LATER) == 1
    work_off(queue)
    assert Score.objects.count() == 4


def test_a_failure_is_told_and_tried_again(
    champion: RewardModel, queue: list[Message], monkeypatch: pytest.MonkeyPatch, scorer: FakeScorer
) -> None:
    make_task(champion.project)
    scoring.start(champion, now=timezone.now())
    with monkeypatch.context() as broken:
        broken.setattr(scorer, "score_encoded", fails)
        with pytest.raises(OSError, match="no space"):
            work_off(queue)
    assert ScoringPass.objects.get().error == "OSError: no space"
    moved_back(LATER)
    scoring.start_due(now=timezone.now())
    work_off(queue)
    assert (Score.objects.count(), ScoringPass.objects.get().error) == (2, "")


def fails(_: Any) -> Iterator[Any]:
    raise OSError("no space")


def test_a_chunk_takes_about_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.5, 10.0, 14.0, 20.0, 20.001, 30.0, 31.0])
    monkeypatch.setattr("rewards.scoring.chunks.time.monotonic", lambda: next(clock))
    pace, sizes = chunks.Pace(), []
    for size in (8, 16, 8, 0):
        with pace.timed(size):
            pass
        sizes.append(pace.tasks)
    assert sizes == [16, 8, 16, 16]


def test_progress_counts_what_is_to_be_scored(champion: RewardModel, scorer: FakeScorer) -> None:
    make_task(champion.project)
    score_chunk(everything(champion), scorer, now=NOW)
    make_task(champion.project)
    assert scoring.progress(champion) == scoring.ScoringProgress(2, 4)


def test_a_manager_sees_how_far_it_is(champion: RewardModel, scorer: FakeScorer, admin_client: Client) -> None:
    make_task(champion.project, responses=3)
    ScoringPass.objects.create(reward_model=champion, began_at=NOW, error="OSError: no space")
    shown = admin_client.get(f"/projects/{champion.project.slug}/models/{champion.pk}/").content.decode()
    assert "about 0 % are done" in shown
    assert "OSError: no space" in shown
