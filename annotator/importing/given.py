"""Labels and annotations that came with a file: labels as they stand, annotations under anonymous raters."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from annotator import consensus
from annotator.importing.layouts import Rejected, TaskRow
from annotator.models import Annotation, Assignment, Label, Origin, Project, Rating, Response, Task, User

Pairs = Sequence[tuple[Task, TaskRow]]


@dataclass(frozen=True)
class _Given:
    """One imported rater's work on one task: ratings by response position, or a preference."""

    task: Task
    rater: str
    ratings: dict[int, dict[str, int]]
    preference: int | None = None
    justification: str = ""

    def content_hash(self) -> str:
        content = [sorted(self.ratings.items()), self.preference, self.justification]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_labels(pairs: Pairs, *, now: datetime) -> list[Rejected]:
    """Stores given labels; a response whose imported label differs keeps the first and is reported."""
    labelled = [(task, row) for task, row in pairs if any(response.label for response in row.responses)]
    if not labelled:
        return []
    ids = _response_ids([task for task, _ in labelled])
    wanted = {
        ids[task.pk][position]: (row, response.label)
        for task, row in labelled
        for position, response in enumerate(row.responses)
        if response.label
    }
    present = dict(
        Label.objects.filter(source=Label.Source.IMPORTED, response__in=wanted).values_list("response", "scores")
    )
    Label.objects.bulk_create(
        Label(response_id=response, source=Label.Source.IMPORTED, scores=label, means=label, made_at=now)
        for response, (_, label) in wanted.items()
        if response not in present
    )
    return [
        Rejected(row.line, "this response has an imported label with other scores; the first one stays")
        for response, (row, label) in wanted.items()
        if response in present and present[response] != label
    ]


def _response_ids(tasks: Sequence[Task]) -> dict[int, list[int]]:
    """The responses of each task, by position."""
    found: dict[int, list[int]] = {}
    rows = Response.objects.filter(task__in=tasks).order_by("task", "position").values_list("task", "pk")
    for task, response in rows:
        found.setdefault(task, []).append(response)
    return found


def write_annotations(project: Project, pairs: Pairs, *, now: datetime) -> None:
    """Stores given ratings and preferences as annotations of imported raters, and settles the tasks they touch.

    Ratings take the task's slots; preferences alone take none, as the ratings are still wanted.
    """
    given = [each for task, row in pairs for each in _given(project, task, row)]
    if not given:
        return
    raters = _raters({each.rater for each in given})
    tasks = list(Task.objects.filter(pk__in={each.task.pk for each in given}).select_for_update().order_by("pk"))
    fresh = _unknown(given, raters)
    _store(fresh, raters, tasks, now)
    consensus.settle(tasks, project=project, now=now)


def _given(project: Project, task: Task, row: TaskRow) -> Iterator[_Given]:
    """Place n of the lists is rater n. The files name nobody, so neither do we."""
    most = max((len(response.ratings) for response in row.responses), default=0)
    for number in range(most):
        ratings = {
            position: response.ratings[number]
            for position, response in enumerate(row.responses)
            if number < len(response.ratings)
        }
        yield _Given(task, f"imported.{project.slug}.rater-{number + 1}", ratings)
    for number, given in enumerate(row.preferences):
        rater = f"imported.{project.slug}.preference-{number + 1}"
        yield _Given(task, rater, {}, given.strength, given.justification)


def _raters(names: set[str]) -> dict[str, User]:
    """Accounts that nobody can log in to, made on first use."""
    User.objects.bulk_create(
        [User(username=name, is_active=False, password="!") for name in sorted(names)], ignore_conflicts=True
    )
    return {user.username: user for user in User.objects.filter(username__in=names)}


def _unknown(given: Sequence[_Given], raters: dict[str, User]) -> list[_Given]:
    present = set(
        Assignment.objects.filter(task__in={each.task.pk for each in given}, annotator__in=raters.values()).values_list(
            "task", "annotator"
        )
    )
    fresh = {}
    for each in given:
        key = (each.task.pk, raters[each.rater].pk)
        if key not in present:
            fresh.setdefault(key, each)
    return list(fresh.values())


def _store(given: Sequence[_Given], raters: dict[str, User], tasks: Sequence[Task], now: datetime) -> None:
    slots = _free_slots(tasks)
    assignments = Assignment.objects.bulk_create(
        Assignment(
            task=each.task,
            annotator=raters[each.rater],
            slot=slots[each.task.pk].pop(0) if each.ratings and slots[each.task.pk] else None,
            state=Assignment.State.SUBMITTED,
            response_order=sorted(each.ratings),
            leased_at=now,
            lease_expires_at=now,
        )
        for each in given
    )
    annotations = Annotation.objects.bulk_create(
        Annotation(
            assignment=assignment,
            origin=Origin.IMPORTED,
            preference=each.preference,
            justification=each.justification,
            content_hash=each.content_hash(),
            submitted_at=now,
        )
        for assignment, each in zip(assignments, given, strict=True)
    )
    ids = _response_ids(tasks)
    Rating.objects.bulk_create(
        Rating(annotation=annotation, response_id=ids[each.task.pk][position], scores=scores)
        for annotation, each in zip(annotations, given, strict=True)
        for position, scores in each.ratings.items()
    )


def _free_slots(tasks: Sequence[Task]) -> dict[int, list[int]]:
    held: dict[int, set[int]] = {}
    for task, slot in Assignment.objects.filter(task__in=tasks, slot__isnull=False).values_list("task", "slot"):
        held.setdefault(task, set()).add(slot)
    return {
        task.pk: [slot for slot in range(1, task.slots_wanted + 1) if slot not in held.get(task.pk, set())]
        for task in tasks
    }
