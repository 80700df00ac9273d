"""Labels and annotations that came with a file: labels as they stand, annotations under anonymous raters."""

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F

from annotator import consensus
from annotator.importing.bulk_copy import copy_rows
from annotator.importing.rows import Placed, Rejected
from annotator.models import Annotation, Assignment, ImportedRater, Label, Origin, Project, Rating, Tally, Task, User


@dataclass(frozen=True)
class _Given:
    """One imported rater's work on one task: ratings by response position, or a preference. `rater` is their place."""

    placed: Placed
    rater: str
    ratings: dict[int, dict[str, int]]
    preference: int | None = None
    justification: str = ""

    def content_hash(self) -> str:
        content = [sorted(self.ratings.items()), self.preference, self.justification]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_labels(placed: Sequence[Placed], *, now: datetime) -> list[Rejected]:
    """Stores given labels; a response whose imported label differs keeps the first and is reported."""
    labelled = [
        (pk, response, each.is_new)
        for each in placed
        for pk, response in zip(each.responses, each.row.responses, strict=False)
        if response.label
    ]
    present = _present_labels({pk for pk, _, is_new in labelled if not is_new})
    new, refused = {}, []
    for pk, response, _ in labelled:
        if pk not in present:
            present[pk] = new[pk] = response.label
        elif present[pk] != response.label:
            why = "this response has an imported label with other scores; the first one is kept"
            refused.append(Rejected(response.line, why))
    scores = ((pk, json.dumps(label)) for pk, label in new.items())
    columns = ("response_id", "source", "scores", "means", "made_at")
    if new:
        copy_rows(Label, columns, ((pk, Label.Source.IMPORTED.value, text, text, now) for pk, text in scores))
    return refused


def _present_labels(responses: set[int]) -> dict[int, dict[str, int]]:
    if not responses:
        return {}
    imported = Label.objects.filter(source=Label.Source.IMPORTED, response__in=responses)
    return dict(imported.values_list("response", "scores"))


def write_annotations(project: Project, placed: Sequence[Placed], *, now: datetime) -> list[Rejected]:
    """Stores given ratings and preferences as annotations of imported raters, and settles the tasks they touch.

    Ratings take the task's slots; preferences alone take none, as the ratings are still wanted. A rater's first word
    on a task stays, and rows that contradict it are reported.
    """
    given = [each for where in placed for each in _given(where)]
    if not given:
        return []
    raters = _raters(project, {each.rater for each in given})
    touched = {each.placed.task for each in given}
    locked = Task.objects.filter(pk__in=touched).select_for_update().order_by("pk")
    tasks = {task.pk: task for task in locked.defer("conversation", "metadata")}
    fresh, refused = _unknown(given, raters)
    if fresh:
        tasks = {pk: task for pk, task in tasks.items() if pk in {each.placed.task for each in fresh}}
        _make_room(tasks, fresh, project)
        _store(fresh, raters, list(tasks.values()), now)
        _count_work(project, fresh, raters)
        consensus.settle(list(tasks.values()), project=project, now=now)
    return refused


def _given(placed: Placed) -> Iterator[_Given]:
    """Place n of the lists is rater n. The files name nobody, so neither do we."""
    for number in range(placed.row.raters()):
        ratings = {
            position: response.ratings[number]
            for position, response in enumerate(placed.row.responses)
            if number < len(response.ratings)
        }
        yield _Given(placed, f"rater-{number + 1}", ratings)
    for number, given in enumerate(placed.row.preferences):
        yield _Given(placed, f"preference-{number + 1}", {}, given.strength, given.justification)


def _raters(project: Project, places: set[str]) -> dict[str, User]:
    """The project's accounts by place; nobody can log in to them, and they are made on first use."""
    known = ImportedRater.objects.filter(project=project, place__in=places).select_related("user")
    raters = {each.place: each.user for each in known}
    for place in sorted(places - set(raters)):
        # A person may have taken the name.
        called = f"imported.{project.pk}.{place}"
        free = called if not User.objects.filter(username=called).exists() else f"{called}.{secrets.token_hex(4)}"
        user = User.objects.create(username=free, is_active=False, password="!")
        raters[place] = ImportedRater.objects.create(project=project, place=place, user=user).user
    return raters


def _unknown(given: Sequence[_Given], raters: Mapping[str, User]) -> tuple[list[_Given], list[Rejected]]:
    """The work that is not stored yet, and the rows that say something else than what is."""
    present = _present_work(given, raters)
    fresh, refused = [], {}
    for each in given:
        key, digest = (each.placed.task, raters[each.rater].pk), each.content_hash()
        if key not in present:
            present[key] = digest
            fresh.append(each)
        elif present[key] != digest:
            line = each.placed.row.line
            refused[line] = Rejected(
                line, "this task has other ratings by its imported raters; the first ones are kept"
            )
    return fresh, list(refused.values())


def _present_work(given: Sequence[_Given], raters: Mapping[str, User]) -> dict[tuple[int, int], str]:
    annotations = Annotation.objects.current().filter(
        assignment__task__in={each.placed.task for each in given}, assignment__annotator__in=raters.values()
    )
    rows = annotations.values_list("assignment__task", "assignment__annotator", "content_hash")
    return {(task, rater): digest for task, rater, digest in rows}


def _make_room(tasks: Mapping[int, Task], given: Sequence[_Given], project: Project) -> None:
    """An open task that was here before its ratings wants as many raters as if it had come with them."""
    narrow = {}
    for each in given:
        task, wanted = tasks[each.placed.task], min(each.placed.row.raters(), project.max_annotators)
        if task.state == Task.State.OPEN and task.slots_wanted < wanted:
            task.slots_wanted = wanted
            narrow[task.pk] = task
    Task.objects.bulk_update(narrow.values(), ["slots_wanted"])


def _store(given: Sequence[_Given], raters: Mapping[str, User], tasks: Sequence[Task], now: datetime) -> None:
    free = _free_slots(tasks)
    slots = [free[each.placed.task].pop(0) if each.ratings and free[each.placed.task] else None for each in given]
    assignments = Assignment.objects.bulk_create(
        Assignment(
            task_id=each.placed.task,
            annotator=raters[each.rater],
            slot=slot,
            # Ratings beyond what the task has room for are kept, and do not count.
            counts=slot is not None or not each.ratings,
            extra=slot is None and bool(each.ratings),
            state=Assignment.State.SUBMITTED,
            response_order=sorted(each.ratings),
            leased_at=now,
            lease_expires_at=now,
        )
        for each, slot in zip(given, slots, strict=True)
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
    Rating.objects.bulk_create(
        Rating(annotation=annotation, response_id=each.placed.responses[position], scores=scores)
        for annotation, each in zip(annotations, given, strict=True)
        for position, scores in each.ratings.items()
    )


def _count_work(project: Project, given: Sequence[_Given], raters: Mapping[str, User]) -> None:
    """Adds to the raters' tallies."""
    done = Counter(raters[each.rater].pk for each in given)
    for rater in sorted(done):
        tally, _ = Tally.objects.get_or_create(annotator_id=rater, project=project)
        Tally.objects.filter(pk=tally.pk).update(done=F("done") + done[rater])


def _free_slots(tasks: Sequence[Task]) -> dict[int, list[int]]:
    """The free slots of each task, as many as it has room for, the lowest first."""
    free = {task.pk: list(range(1, task.slots_wanted + 1)) for task in tasks}
    held = Counter[int]()
    for task, slot in Assignment.objects.filter(task__in=tasks, slot__isnull=False).values_list("task", "slot"):
        held[task] += 1
        if slot in free[task]:
            free[task].remove(slot)
    return {task.pk: free[task.pk][: max(task.slots_wanted - held[task.pk], 0)] for task in tasks}
