"""Scores of any number of items, in batches that one call takes."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, cast

from rewardloop.answers import Score, Scores
from rewardloop.connection import Call, Connection
from rewardloop.errors import WorkFailed
from rewardloop.progress import OnProgress, Progress

MOST_ITEMS = 1_000
"""How many items one call of `score/` takes."""


def scored(
    connection: Connection,
    items: Iterable[Mapping[str, Any]],
    *,
    project: str,
    model: int | None,
    on_progress: OnProgress,
    timeout: float | None,
) -> Scores:
    """Scores all items by one model, even if another is promoted meanwhile."""
    results: list[Score] = []
    for batch in batches(items):
        body = {"items": batch} | ({"project": project} if project else {}) | ({"model": model} if model else {})
        given = connection.one(Scores, Call("POST", "score/", body=body))
        if given.results is None and given.id is not None:
            job = Call("GET", f"scoring-jobs/{given.id}/")
            given = connection.finished(
                Scores, job, is_done=lambda now: now.state in {"done", "failed"}, timeout=timeout
            )
        if given.results is None:
            raise WorkFailed(f"The items could not be scored: {given.error or given.state}")
        results += given.results
        model = given.model
        if on_progress:
            on_progress(Progress("scoring", len(results), 0))
    return Scores(model=cast("int", model), results=tuple(results))


def batches(items: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Yields the items in lists that one call takes; an empty list for no items, which the server refuses."""
    left = iter(items)
    batch = list(islice(left, MOST_ITEMS))
    yield batch
    while batch := list(islice(left, MOST_ITEMS)):
        yield batch
