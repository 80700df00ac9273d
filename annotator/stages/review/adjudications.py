"""Stores a reviewer's authoritative rating of a task beside the annotators' ratings, which stay as they are."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotator.infrastructure import audit
from annotator.infrastructure.db.retries import in_transaction
from annotator.infrastructure.db.storable_text import check_written
from annotator.infrastructure.refusals import Refusal
from annotator.models import Adjudication, GuidelineGap, Label, Task, User
from annotator.reading.blindness import require_not_rating, require_others_work
from annotator.stages import consensus
from annotator.stages.annotation import Refused, ResponseRating, Submission, check_scores
from annotator.stages.annotation.cuts import cuts_of
from annotator.stages.consensus.rankings import Ranking, tiers

WHY_NOT = {
    Task.State.OPEN: gettext_lazy("This task is still waiting for annotators. You can settle it once it is complete."),
    Task.State.QUARANTINED: gettext_lazy("This task is set aside. A manager must first decide whether it may be used."),
    Task.State.RETIRED: gettext_lazy("This task is retired, so it yields no labels."),
    Task.State.GOLD: gettext_lazy("This task measures annotators, so its scores come from experts."),
}
Scores = Mapping[int, Mapping[str, int]]
"""Scores by response id, then by attribute key."""
SegmentScores = Mapping[int, Sequence[Mapping[str, int | None]]]
"""Scores of segments by response id, in the order of the segments, by aspect; None where one does not apply."""


class SettledMeanwhile(Refusal):
    """Somebody else has settled the task, or taken a decision back, since the caller read it."""

    code = "settled_meanwhile"

    def __init__(self, current: Adjudication | None) -> None:
        super().__init__(_("Somebody else has settled this task meanwhile. Compare both, then settle it again."))
        text = _("The rating in force is %(id)s, by %(name)s.") if current else _("No rating is in force. Send 0.")
        self.errors = {"based_on": [text % {"id": current.pk, "name": current.by} if current else text]}


@in_transaction
def adjudicate(
    task_id: int,
    *,
    scores: Scores,
    segments: SegmentScores | None = None,
    preference: int | None = None,
    ranking: Ranking | None = None,
    reason: str,
    comment: str = "",
    is_example: bool = False,
    by: User,
    now: datetime,
    seen: int | None = None,
) -> Adjudication:
    """Makes these scores the labels of a complete task. The same scores again change nothing, others replace them.

    `preference` is relative to the responses' positions; three responses or more have a `ranking` in its place. Where
    `segments` has no scores of a response's segments, the annotators' agreed ones stay. Raters are shown what
    `is_example`, with its comment (annotator/reading/settled_examples.py). `seen` is the authoritative
    rating that the caller has read, 0 for none; without it these scores replace whichever there is.

    Raises:
        IncompleteRating: a score is missing or off the scale.
        Refused: the task is not complete.
        UnstorableText, TextTooLong: the comment cannot be stored as it is.
        Refusal: the reviewer holds the task, or is the only one who rated it.
        SettledMeanwhile: another rating than `seen` is in force, with other scores.
    """
    check_written(comment, "comment")
    # Locked before anything is checked: of two reviewers who decide at once, the second sees what the first decided.
    task = _locked(task_id)
    require_not_rating(task, by)
    if task.state != Task.State.COMPLETE:
        raise Refused(str(WHY_NOT[Task.State(task.state)]))
    require_others_work(task, by)
    given = segments or {}
    ratings = {
        response: ResponseRating(levels, segments=tuple(given.get(response, ()))) for response, levels in scores.items()
    }
    submission = Submission(ratings, preference, ranking)
    _check(submission, task)
    said = {"reason": reason, "comment": comment.strip(), "is_example": is_example}
    adjudication = Adjudication(task=task, **_decision(submission, task), **said, by=by, made_at=now)
    current = current_of(task)
    asked = GuidelineGap.objects.filter(task=task, closed_at=None).update(closed_at=now)
    if asked:
        audit.record("task.guidelines_answered", f"task {task}", project=task.project, gaps=asked)
    if current and _content(current) == _content(adjudication):
        if asked:
            consensus.settle([task], project=task.project, now=now)
        return current
    if seen is not None and seen != (current.pk if current else 0):
        raise SettledMeanwhile(current)
    task.adjudications.filter(is_current=True).update(is_current=False)
    adjudication.save()
    _write_labels(adjudication, now)
    _settle(task, adjudicated=True, now=now)
    replaces = current.pk if current else None
    audit.record("label.adjudicated", f"task {task}", project=task.project, reason=reason, replaces=replaces)
    return adjudication


def _decision(submission: Submission, task: Task) -> dict[str, Any]:
    """Returns what a submission says, as an adjudication stores it."""
    aspects = [aspect.key for aspect in task.project.aspects()]
    return {
        "scores": {str(response): dict(rating.scores) for response, rating in submission.ratings.items()},
        "aspects": aspects,
        "segments": {
            str(response): rating.segment_scores(aspects)
            for response, rating in submission.ratings.items()
            if rating.segments
        },
        "preference": submission.preference,
        "ranking": None if submission.ranking is None else tiers(submission.ranking),
    }


def _check(submission: Submission, task: Task) -> None:
    """Raises IncompleteRating where a score is missing or off the scale, or where only some segments are scored."""
    responses = list(task.responses.all())
    cuts = cuts_of(task.project, task, responses)
    scored = {response for response, rating in submission.ratings.items() if rating.segments}
    check_scores(
        submission,
        project=task.project,
        responses=[response.pk for response in responses],
        cuts={response: cuts.get(response, ()) for response in scored},
    )


@in_transaction
def withdraw(task_id: int, *, by: User, now: datetime) -> Task:
    """Withdraws the authoritative rating, so that the annotators' consensus applies again. Doing so twice is harmless.

    Raises:
        Refusal: the reviewer holds the task, or is the only one who rated it.
    """
    task = _locked(task_id)
    require_not_rating(task, by)
    require_others_work(task, by)
    if task.adjudicated:
        task.adjudications.filter(is_current=True).update(is_current=False)
        Label.objects.filter(response__task=task, source=Label.Source.ADJUDICATED).delete()
        _settle(task, adjudicated=False, now=now)
        consensus.put_in_force([task.pk], now=now)
        audit.record("label.withdrawn", f"task {task}", project=task.project)
    return task


@in_transaction
def close_gaps(task_id: int, *, by: User, seen: int, now: datetime) -> int:
    """Says that the guidelines answer what raters asked of this task; returns how many gaps that closed.

    `seen` is the newest gap that the reviewer has read: later ones stay open.

    Raises:
        Refusal: the reviewer holds the task, or is the only one who rated it.
    """
    task = _locked(task_id)
    require_not_rating(task, by)
    require_others_work(task, by)
    closed = GuidelineGap.objects.filter(task=task, closed_at=None, pk__lte=seen).update(closed_at=now)
    if closed:
        audit.record("task.guidelines_answered", f"task {task}", project=task.project, gaps=closed)
        consensus.settle([task], project=task.project, now=now)
    return closed


def current_of(task: Task) -> Adjudication | None:
    """Returns the authoritative rating in force, if the task has one."""
    return task.adjudications.filter(is_current=True).select_related("by").first()


def _locked(task_id: int) -> Task:
    tasks = Task.objects.select_for_update(of=("self",)).select_related("project__rubric")
    return tasks.defer("conversation", "metadata").get(pk=task_id)


def _content(adjudication: Adjudication) -> tuple[object, ...]:
    return (
        adjudication.scores,
        adjudication.segments,
        adjudication.preference,
        adjudication.ranking,
        adjudication.reason,
        adjudication.comment,
        adjudication.is_example,
    )


_NO_SEGMENTS: dict[str, Any] = {"aspects": [], "segment_scores": None, "segment_means": None, "cut": None}


def _write_labels(adjudication: Adjudication, now: datetime) -> None:
    """Writes the labels that have changed. A label that stays the same keeps its time, as in consensus."""
    of_responses = Label.objects.filter(response__in=list(map(int, adjudication.scores)))
    rows = of_responses.values("source", "response_id", "scores", *_NO_SEGMENTS)
    present = {(row.pop("source"), row.pop("response_id")): row for row in rows}
    labels, project, version = [], adjudication.task.project_id, adjudication.task.project.rubric.version
    for number, levels in adjudication.scores.items():
        response = int(number)
        agreed = present.get((Label.Source.CONSENSUS, response), {})
        values = _NO_SEGMENTS | agreed | {"scores": levels}
        if rows := adjudication.segments.get(number):
            values |= {"aspects": adjudication.aspects, "segment_scores": rows, "segment_means": rows, "cut": None}
        if present.get((Label.Source.ADJUDICATED, response)) != values:
            own = {"source": Label.Source.ADJUDICATED, "means": levels, "rubric_version": version, "made_at": now}
            labels.append(Label(project_id=project, response_id=response, **values, **own))
    Label.objects.bulk_create(
        labels,
        update_conflicts=True,
        unique_fields=["response", "source"],
        update_fields=["scores", "means", *_NO_SEGMENTS, "rubric_version", "made_at"],
    )


def _settle(task: Task, *, adjudicated: bool, now: datetime) -> None:
    task.adjudicated = adjudicated
    task.save(update_fields=["adjudicated"])
    consensus.settle([task], project=task.project, now=now)
