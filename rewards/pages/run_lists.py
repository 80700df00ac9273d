"""What lists of runs show: the state of a run as a word, what came of it, and a page of rows at a time."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext_lazy

from annotator.infrastructure.storage.hidden_paths import value_without_places
from rewards.models import RunState, TrainingRun
from rewards.reports import run_report

PAGE = 15
GOOD, BAD = (RunState.PROMOTED, RunState.DONE), (RunState.FAILED, RunState.REJECTED, RunState.CANCELLED)
STATES: Mapping[str, Any] = {
    RunState.QUEUED: gettext_lazy("waiting for a worker"),
    RunState.SNAPSHOTTING: gettext_lazy("collecting labels"),
    RunState.TRAINING: gettext_lazy("training"),
    RunState.EVALUATING: gettext_lazy("being judged"),
    RunState.AWAITING_PROMOTION: gettext_lazy("waiting for your decision"),
    RunState.PROMOTED: gettext_lazy("promoted"),
    RunState.REJECTED: gettext_lazy("not promoted"),
    RunState.FAILED: gettext_lazy("failed"),
    RunState.CANCELLED: gettext_lazy("cancelled"),
    RunState.DONE: gettext_lazy("done"),
}
"""What the pages call the states; the admin and REST have the rows' own words."""


def state_of(run: TrainingRun) -> dict[str, str]:
    """Returns the state of a run as a word, and the tone of its colour."""
    tone = "good" if run.state in GOOD else "bad" if run.state in BAD else ""
    return {"word": str(STATES[run.state]), "tone": tone}


def page_of(name: str, rows: QuerySet[Any], before: int | None) -> dict[str, Any]:
    """Returns a page of rows from the newest on, and where the next page begins."""
    part = list((rows.filter(pk__lt=before) if before else rows)[: PAGE + 1])
    return {name: part[:PAGE], f"more_{name}": part[PAGE - 1].pk if len(part) > PAGE else None}


def outcome_of(run: TrainingRun) -> str:
    """Returns what came of a run in a sentence: the beginning of its error, or its verdict."""
    if run.error and run.state in (RunState.FAILED, RunState.CANCELLED):
        return str(value_without_places(run.error)).strip().splitlines()[0][:240]
    return run_report.in_words(run.verdict)
