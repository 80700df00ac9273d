"""Stores the labels and annotations of a file. Labels are stored unchanged, annotations under anonymous raters."""

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import chain, starmap

from django.db.models import F

from annotator import consensus
from annotator.importing.bulk_copy import copy_rows, next_ids
from annotator.importing.rows import Placed, Rejected, ResponseRow, SegmentLabel
from annotator.models import Annotation, Assignment, ImportedRater, Label, Origin, Project, Rating, Tally, Task, User


@dataclass(frozen=True)
class _RaterEntry:
    """One imported rater's work on one task: ratings by the position of the response, or a preference.

    `rater` is the rater's place in the file's lists, such as `rater-1`, or the hash of a name.
    """

    placed: Placed
    rater: str
    ratings: Mapping[int, dict[str, int]]
    preference: int | None = None
    justification: str = ""
    segments: Mapping[int, SegmentLabel] = field(default_factory=dict)
    ranking: tuple[tuple[int, ...], ...] = ()

    @cached_property
    def content_hash(self) -> str:
        content: list[object] = [sorted(self.ratings.items()), self.preference, self.justification]
        if self.segments:  # hashes stored before segments existed stay valid
            content.append([(n, one.aspects, one.scores, one.cut) for n, one in sorted(self.segments.items())])
        if self.ranking:  # as well as those stored before rankings could be imported
            content.append(self.ranking)
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_labels(project: Project, placed: Sequence[Placed], *, now: datetime) -> list[Rejected]:
    """Stores the rows' labels. A response that has another imported label keeps it, and the row is reported."""
    # Not strict: known tasks have no response ids here unless their rows have labels or ratings.
    labelled = [
        (pk, response, placed_row.is_new)
        for placed_row in placed
        for pk, response in zip(placed_row.responses, placed_row.row.responses, strict=False)
        if response.is_labelled
    ]
    present: dict[int, _LabelValues] = {}
    if known := {pk for pk, _, is_new in labelled if not is_new}:
        imported = Label.objects.filter(source=Label.Source.IMPORTED, response__in=known)
        rows = imported.values_list("response", "scores", "aspects", "segment_scores", "cut")
        present = {pk: (scores, aspects, segments, cut) for pk, scores, aspects, segments, cut in rows}
    new, refused = {}, []
    for pk, response, _ in labelled:
        values = _label_values(response)
        if pk not in present:
            present[pk] = new[pk] = values
        elif present[pk] != values:
            why = "this response has an imported label with other scores; the first one is kept"
            refused.append(Rejected(response.line, why))
    if new:
        copy_rows(Label, _LABEL_COLUMNS, (_label_record(project, pk, *values, now) for pk, values in new.items()))
    return refused


_LabelValues = tuple[dict[str, int], list[str], list[list[int | None]] | None, list[list[int]] | None]
_LABEL_COLUMNS = (
    "project_id",
    "response_id",
    "source",
    "scores",
    "means",
    "aspects",
    "segment_scores",
    "segment_means",
    "cut",
    "made_at",
)


def _label_values(response: ResponseRow) -> _LabelValues:
    given = response.segment_label
    if given is None:
        return response.label, [], None, None
    return response.label, list(given.aspects), [list(row) for row in given.scores], _stored_cut(given)


def _stored_cut(given: SegmentLabel) -> list[list[int]] | None:
    return [list(segment) for segment in given.cut] or None


def _label_record(
    project: Project,
    pk: int,
    scores: dict[str, int],
    aspects: list[str],
    segments: list[list[int | None]] | None,
    cut: list[list[int]] | None,
    now: datetime,
) -> tuple[object, ...]:
    text, of_segments = json.dumps(scores), _json(segments)
    return project.pk, pk, Label.Source.IMPORTED.value, text, text, aspects, of_segments, of_segments, _json(cut), now


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value)


def write_annotations(project: Project, placed: Sequence[Placed], *, now: datetime) -> list[Rejected]:
    """Stores the rows' ratings and preferences as annotations of imported raters, and settles the tasks concerned.

    Ratings take slots of the task; preferences alone take none, as the task still needs its ratings. The first
    annotation of a rater on a task stays, and rows that contradict it are reported.
    """
    entries, unfit = _fitting([entry for placed_row in placed for entry in _entries(placed_row, project)])
    if not entries:
        return unfit
    raters = _raters(project, {entry.rater for entry in entries})
    touched = {entry.placed.task for entry in entries}
    # Settling needs the row locks. They are taken by id, as everywhere, or two transactions could wait for each other.
    locked = Task.objects.filter(pk__in=touched).select_for_update().order_by("pk")
    tasks = {task.pk: task for task in locked.defer("conversation", "metadata")}
    fresh, refused = _unknown(entries, raters)
    if fresh:
        rated = {entry.placed.task for entry in fresh}
        tasks = {pk: task for pk, task in tasks.items() if pk in rated}
        _make_room(tasks, fresh, project)
        _store(fresh, raters, list(tasks.values()), project, now)
        _count_work(project, fresh, raters)
        consensus.settle(list(tasks.values()), project=project, now=now)
    return unfit + refused


def _entries(placed: Placed, project: Project) -> Iterator[_RaterEntry]:
    """Yields the work of each rater. Where the file names nobody, the nth place of every list is rater n."""
    for number in range(placed.row.listed_raters()):
        ratings = {
            position: response.ratings[number]
            for position, response in enumerate(placed.row.responses)
            if number < len(response.ratings)
        }
        yield _RaterEntry(placed, f"rater-{number + 1}", ratings)
    for number, preference in enumerate(placed.row.preferences):
        yield _RaterEntry(placed, f"preference-{number + 1}", {}, preference.strength, preference.justification)
    for number, given in enumerate(placed.row.annotations):
        place = _place_of(given.rater, project) if given.rater else f"rater-{number + 1}"
        said = (given.ratings, given.preference, given.justification, given.segments, given.ranking)
        yield _RaterEntry(placed, place, *said)


def _place_of(name: str, project: Project) -> str:
    """Returns what stands for a person's name, which is not stored: a hash that is different in every project."""
    return f"person-{hashlib.sha256(f'{project.pk} {name}'.encode()).hexdigest()[:24]}"


def _fitting(entries: Sequence[_RaterEntry]) -> tuple[list[_RaterEntry], list[Rejected]]:
    """Returns the entries that fit the responses of their tasks, and the rows of those that do not."""
    fit, refused = [], []
    for entry in entries:
        there, line = len(entry.placed.responses), entry.placed.row.line
        if entry.ratings and max(entry.ratings) >= there:
            why = f"the task has {there} responses, and the row rates response {max(entry.ratings) + 1}"
            refused.append(Rejected(line, why))
        elif entry.placed.row.refers and entry.preference is not None and there != 2:
            refused.append(Rejected(line, f"the task has {there} responses, and preferences are for two"))
        else:
            fit.append(entry)
    return fit, refused


def _raters(project: Project, places: set[str]) -> dict[str, User]:
    """Returns the accounts of the project's imported raters by place, and makes those that are missing.

    Nobody can log in to them. The import's lock keeps another import from making the same accounts.
    """
    known = ImportedRater.objects.filter(project=project, place__in=places).select_related("user")
    raters = {rater.place: rater.user for rater in known}
    missing = sorted(places - set(raters))
    names = {place: f"imported.{project.pk}.{place}" for place in missing}
    # A person may have chosen such a name, and must not be taken for the rater.
    taken = set(User.objects.filter(username__in=names.values()).values_list("username", flat=True))
    users = User.objects.bulk_create(
        User(
            username=f"{names[place]}.{secrets.token_hex(4)}" if names[place] in taken else names[place],
            is_active=False,
            password="!",
        )
        for place in missing
    )
    new = dict(zip(missing, users, strict=True))
    ImportedRater.objects.bulk_create(
        ImportedRater(project=project, place=place, user=user) for place, user in new.items()
    )
    return raters | new


def _unknown(entries: Sequence[_RaterEntry], raters: Mapping[str, User]) -> tuple[list[_RaterEntry], list[Rejected]]:
    """Returns the entries that are not stored yet, and the rows that contradict stored ones."""
    annotations = Annotation.objects.current().filter(
        assignment__task__in={entry.placed.task for entry in entries}, assignment__annotator__in=raters.values()
    )
    rows = annotations.values_list("assignment__task", "assignment__annotator", "content_hash")
    present = {(task, rater): digest for task, rater, digest in rows}
    fresh, refused = [], {}
    for entry in entries:
        key, digest = (entry.placed.task, raters[entry.rater].pk), entry.content_hash
        if key not in present:
            present[key] = digest
            fresh.append(entry)
        elif present[key] != digest:
            line = entry.placed.row.line
            refused[line] = Rejected(
                line, "this task has other ratings by its imported raters; the first ones are kept"
            )
    return fresh, list(refused.values())


def _make_room(tasks: Mapping[int, Task], entries: Sequence[_RaterEntry], project: Project) -> None:
    """Gives an open task that was imported before its ratings as many slots as if it had come with them."""
    narrow = {}
    for entry in entries:
        task, slots = tasks[entry.placed.task], min(entry.placed.row.raters(), project.max_annotators)
        if task.state == Task.State.OPEN and task.slots_wanted < slots:
            task.slots_wanted = slots
            narrow[task.pk] = task
    Task.objects.bulk_update(narrow.values(), ["slots_wanted"])


def _store(
    entries: Sequence[_RaterEntry],
    raters: Mapping[str, User],
    tasks: Sequence[Task],
    project: Project,
    now: datetime,
) -> None:
    free = _free_slots(tasks)
    slots = [free[entry.placed.task].pop(0) if entry.ratings and free[entry.placed.task] else None for entry in entries]
    assignments, annotations = next_ids(Assignment, len(entries)), next_ids(Annotation, len(entries))
    submitted, imported, version = Assignment.State.SUBMITTED.value, Origin.IMPORTED.value, project.rubric.version
    copy_rows(
        Assignment,
        _ASSIGNMENT_COLUMNS,
        (
            (
                pk,
                entry.placed.task,
                raters[entry.rater].pk,
                slot,
                # Ratings for which the task has no slot are kept as extra, and do not count.
                slot is not None or not entry.ratings,
                slot is None and bool(entry.ratings),
                submitted,
                sorted(entry.ratings),
                now,
                now,
            )
            for pk, entry, slot in zip(assignments, entries, slots, strict=True)
        ),
    )
    copy_rows(
        Annotation,
        _ANNOTATION_COLUMNS,
        (
            (
                pk,
                assignment,
                1,
                True,
                imported,
                entry.preference,
                _ranking_of_ids(entry),
                entry.justification,
                0,
                version,
                next((list(one.aspects) for one in entry.segments.values()), []),
                entry.content_hash,
                now,
            )
            for pk, assignment, entry in zip(annotations, assignments, entries, strict=True)
        ),
    )
    ratings = chain.from_iterable(starmap(_rating_records, zip(annotations, entries, strict=True)))
    copy_rows(Rating, _RATING_COLUMNS, ratings)


def _ranking_of_ids(entry: _RaterEntry) -> str | None:
    """Returns the ranking as it is stored: tiers of the responses' ids."""
    responses = entry.placed.responses
    return _json([[responses[place] for place in tier] for tier in entry.ranking]) if entry.ranking else None


def _rating_records(annotation: int, entry: _RaterEntry) -> Iterator[tuple[object, ...]]:
    for position, scores in entry.ratings.items():
        of_segments = _of_segments(entry.segments.get(position))
        yield annotation, entry.placed.responses[position], json.dumps(scores), "[]", "", *of_segments


_RATING_COLUMNS = ("annotation_id", "response_id", "scores", "checks", "unsafe_category", "segment_scores", "cut")
_ASSIGNMENT_COLUMNS = (
    "id",
    "task_id",
    "annotator_id",
    "slot",
    "counts",
    "extra",
    "state",
    "response_order",
    "leased_at",
    "lease_expires_at",
)
_ANNOTATION_COLUMNS = (
    "id",
    "assignment_id",
    "revision",
    "is_current",
    "origin",
    "preference",
    "ranking",
    "justification",
    "guideline_version",
    "rubric_version",
    "aspects",
    "content_hash",
    "submitted_at",
)


def _of_segments(given: SegmentLabel | None) -> tuple[str | None, str | None]:
    """Returns the scores of segments and the rater's own cut, as they are stored."""
    return (None, None) if given is None else (_json(given.scores), _json(_stored_cut(given)))


def _count_work(project: Project, entries: Sequence[_RaterEntry], raters: Mapping[str, User]) -> None:
    done = Counter(raters[entry.rater].pk for entry in entries)
    # By id: transactions that update several tallies in different orders could wait for each other.
    Tally.objects.bulk_create(
        (Tally(annotator_id=rater, project=project) for rater in sorted(done)), ignore_conflicts=True
    )
    for rater in sorted(done):
        Tally.objects.filter(annotator=rater, project=project).update(done=F("done") + done[rater])


def _free_slots(tasks: Sequence[Task]) -> dict[int, list[int]]:
    """Returns the free slots of each task, the lowest first, and no more than the task has room for."""
    free = {task.pk: list(range(1, task.slots_wanted + 1)) for task in tasks}
    taken = Counter[int]()
    for task, slot in Assignment.objects.filter(task__in=tasks, slot__isnull=False).values_list("task", "slot"):
        taken[task] += 1
        if slot in free[task]:
            free[task].remove(slot)
    # A slot beyond `slots_wanted` may be taken, from when the task wanted more. It takes room, though no slot of these.
    return {task.pk: free[task.pk][: max(task.slots_wanted - taken[task.pk], 0)] for task in tasks}
