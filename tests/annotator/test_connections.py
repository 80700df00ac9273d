"""New connections go to the worker with the fewest."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from gunicorn.config import Config
from gunicorn.workers.gthread import ThreadWorker

from annotator.connections import GIVE_WAY_SECONDS, EvenWorker, leave_place, take_place


@pytest.fixture
def crew(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EvenWorker]]:
    """Two workers with places, as gunicorn makes them before it forks, whose listener gives nothing."""
    monkeypatch.setattr(ThreadWorker, "accept", lambda self, listener: None)
    workers = [EvenWorker(age, 0, [], SimpleNamespace(), 30, Config(), None) for age in (1, 2)]
    for number, worker in enumerate(workers):
        take_place(worker, workers[:number])
    yield workers
    for worker in workers:
        leave_place(worker)
        worker.tmp.close()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    noted: list[float] = []
    monkeypatch.setattr("annotator.connections.time.sleep", noted.append)
    return noted


def test_a_worker_with_more_connections_gives_way(crew: list[EvenWorker], pauses: list[float]) -> None:
    crew[0].nr_conns, crew[1].nr_conns = 3, 2
    crew[0].accept(None)
    assert pauses == [GIVE_WAY_SECONDS]


@pytest.mark.parametrize("held", [(2, 3), (3, 3)])
def test_a_worker_with_as_few_as_any_does_not_wait(
    crew: list[EvenWorker], pauses: list[float], held: tuple[int, int]
) -> None:
    crew[0].nr_conns, crew[1].nr_conns = held
    crew[0].accept(None)
    assert pauses == []


def test_nobody_waits_for_a_worker_that_has_ended(crew: list[EvenWorker], pauses: list[float]) -> None:
    crew[0].nr_conns = 3
    leave_place(crew[1])
    crew[0].accept(None)
    assert pauses == []


def test_a_new_worker_takes_the_place_of_the_one_that_ended(crew: list[EvenWorker]) -> None:
    new = EvenWorker(3, 0, [], SimpleNamespace(), 30, Config(), None)
    take_place(new, crew[1:])
    new.tmp.close()
    assert (new.place, new.nr_conns) == (crew[0].place, 0)


def test_a_worker_that_is_being_made_changes_nobodys_count(crew: list[EvenWorker]) -> None:
    crew[0].nr_conns, crew[1].nr_conns = 3, 2
    EvenWorker(3, 0, [], SimpleNamespace(), 30, Config(), None).tmp.close()
    assert [worker.nr_conns for worker in crew] == [3, 2]
