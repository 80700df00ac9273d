"""Stores the labels and annotations of a file. Labels are stored unchanged, annotations under anonymous raters."""

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import count

from django.db.models import F
from django.db.models.functions import Length

from annotator.infrastructure.limits import MOST_ANNOTATORS
from annotator.models import (
    Annotation,
    Assignment,
    Exclusion,
    ExpertRating,
    Gold,
    ImportedRater,
    Label,
    Origin,
    Project,
    Rating,
    Response,
    Tally,
    Task,
    User,
)
from annotator.stages import consensus
from annotator.stages.annotation import ResponseRating
from annotator.stages.annotation.completeness import evidence_errors, written_fault
from annotator.stages.importing.bulk_copy import copy_rows, next_ids
from annotator.stages.importing.task_rows import LEFT_OUT, Placed, Rejected, SegmentLabel


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
    submitted_at: datetime | None = None
    active_seconds: float | None = None
    evidence: Mapping[int, tuple[tuple[str, int, int, str], ...]] = field(default_factory=dict)

    @cached_property
    def content_hash(self) -> str:
        return self._hash(with_evidence=True)

    @cached_property
    def hash_without_evidence(self) -> str:
        """The hash of the same entry where it was stored before imports read evidence."""
        return self._hash(with_evidence=False)

    def _hash(self, *, with_evidence: bool) -> str:
        content: list[object] = [sorted(self.ratings.items()), self.preference, self.justification]
        if self.segments:  # hashes stored before segments existed stay valid
            content.append([(n, one.aspects, one.scores, one.cut) for n, one in sorted(self.segments.items())])
        if self.ranking:  # as well as those stored before rankings could be imported
            content.append(self.ranking)
        if self.evidence and with_evidence:
            content.append(sorted(self.evidence.items()))
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_labels(project: Project, placed: Sequence[Placed], *, now: datetime) -> list[Rejected]:
    """Stores the rows' labels. A response that has another imported label keeps it, and the row is reported."""
    # Not strict: known tasks have no response ids here unless their rows have labels or ratings.
    labelled = [
        (pk, response, placed_row)
        for placed_row in placed
        for pk, response in zip(placed_row.responses, placed_row.row.responses, strict=False)
        if response.is_labelled
    ]
    present: dict[int, tuple[object, ...]] = {}
    if known := {pk for pk, _, placed_row in labelled if not placed_row.is_new}:
        imported = Label.objects.filter(source=Label.Source.IMPORTED, response__in=known)
        rows = imported.values_list("response", "scores", "aspects", "segment_scores", "cut")
        present = {pk: tuple(values) for pk, *values in rows}
    new, refused = {}, []
    for pk, response, placed_row in labelled:
        given = response.segment_label
        aspects, *of_segments = ([*given.aspects], *_of_segments(given)) if given else ([], None, None)
        values = (response.label, aspects, *of_segments)
        if pk not in present:
            present[pk] = new[pk] = values
        elif present[pk] != values:
            why = "this response has an imported label with other scores; the first one is kept"
            refused.append(Rejected(response.line or placed_row.row.line, why))
    if new:
        # Known before the rows are copied: until they all are, the connection takes no query.
        same = (project.rubric.version, now, project.pk, Label.Source.IMPORTED.value)
        copy_rows(
            Label,
            (
                *("rubric_version", "made_at", "project_id", "source", "response_id", "scores", "means", "aspects"),
                *("segment_scores", "segment_means", "cut"),
            ),
            (
                (*same, pk, _json(scores), _json(scores), aspects, _json(segments), _json(segments), _json(cut))
                for pk, (scores, aspects, segments, cut) in new.items()
            ),
        )
    return refused


def _of_segments(given: SegmentLabel) -> tuple[list[list[int | None]], list[list[int]] | None]:
    """Returns the scores of segments and the cut of their own, as they are stored."""
    return [list(row) for row in given.scores], [list(segment) for segment in given.cut] or None


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value)


def write_annotations(project: Project, placed: Sequence[Placed], *, now: datetime) -> tuple[list[Rejected], int]:
    """Stores the rows' ratings and preferences as annotations of imported raters, and settles the tasks concerned.

    All ratings of a task count, however many annotators it asks for: each takes a slot, and the task is settled from
    all that are stored, so the order of the rows decides nothing. Preferences alone take no slot, as the task still
    needs its ratings. The first annotation of a rater on a task stays, and rows that contradict it are reported.

    Returns the rows and ratings that do not count, and the number of annotations that were added.
    """
    entries = [entry for placed_row in placed for entry in _entries(placed_row, project)]
    entries, refused = _fitting(entries, project)
    if not entries:
        return refused, 0
    raters = _raters(project, {entry.rater for entry in entries})
    touched = {entry.placed.task for entry in entries}
    # Settling needs the row locks. They are taken by id, as everywhere, or two transactions could wait for each other.
    locked = Task.objects.filter(pk__in=touched).select_for_update().order_by("pk")
    tasks = {task.pk: task for task in locked.defer("conversation", "metadata")}
    fresh, contradicting = _unknown(entries, raters)
    _add_evidence(entries, raters)
    fresh, too_many = _within_limits(fresh, tasks)
    barred = Exclusion.objects.filter(project=project, annotator__in=raters.values(), readmitted_at=None)
    accounts = set(barred.values_list("annotator", flat=True))
    excluded = {place for place, user in raters.items() if user.pk in accounts}
    if fresh:
        rated = {entry.placed.task for entry in fresh}
        tasks = {pk: task for pk, task in tasks.items() if pk in rated}
        _store(fresh, raters, _slots(fresh, tasks, excluded), project, now)
        done = Counter(raters[entry.rater].pk for entry in fresh)
        # By id: transactions that update several tallies in different orders could wait for each other.
        Tally.objects.bulk_create(
            (Tally(annotator_id=rater, project=project) for rater in sorted(done)), ignore_conflicts=True
        )
        for rater in sorted(done):
            Tally.objects.filter(annotator=rater, project=project).update(done=F("done") + done[rater])
        consensus.settle(list(tasks.values()), project=project, now=now)
    why = f"{LEFT_OUT}its rater is excluded from the project. It is stored"
    left_out = [Rejected(entry.placed.row.line, why, of_rating=True) for entry in fresh if entry.rater in excluded]
    return refused + contradicting + too_many + left_out, len(fresh) - len(left_out)


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
        place = f"rater-{number + 1}"
        if given.rater:  # a person's name is not stored: what stands for it is different in every project
            place = f"person-{hashlib.sha256(f'{project.pk} {given.rater}'.encode()).hexdigest()[:24]}"
        said = (given.ratings, given.preference, given.justification, given.segments, given.ranking)
        yield _RaterEntry(placed, place, *said, given.submitted_at, given.active_seconds, given.evidence)


def _fitting(entries: Sequence[_RaterEntry], project: Project) -> tuple[list[_RaterEntry], list[Rejected]]:
    """Returns the entries that fit the responses of their tasks, and the rows of those that do not."""
    fit, refused = [], []
    quoted = {pk for entry in entries if entry.evidence for pk in entry.placed.responses}
    lengths = dict(Response.objects.filter(pk__in=quoted).values_list("pk", Length("text"))) if quoted else {}
    for entry in entries:
        there, line = len(entry.placed.responses), entry.placed.row.line
        if entry.ratings and max(entry.ratings) >= there:
            why = f"the task has {there} responses, and the row rates response {max(entry.ratings) + 1}"
            refused.append(Rejected(line, why))
        elif entry.placed.row.refers and entry.preference is not None and there != 2:
            refused.append(Rejected(line, f"the task has {there} responses, and preferences are for two"))
        elif faults := _faults_of_evidence(entry, project, lengths):
            refused.append(Rejected(line, faults[0], "evidence"))
        else:
            fit.append(entry)
    return fit, refused


def _faults_of_evidence(entry: _RaterEntry, project: Project, lengths: Mapping[int, int]) -> list[str]:
    """Returns what is wrong with the evidence of an entry whose responses have texts of these lengths."""
    given = (
        (ResponseRating(entry.ratings[position], evidence=evidence), lengths[entry.placed.responses[position]])
        for position, evidence in entry.evidence.items()
    )
    faults = [fault for rating, length in given for fault in evidence_errors(rating, project, length)]
    notes = [note for evidence in entry.evidence.values() for *_place, note in evidence]
    return faults or [fault for fault in [written_fault([entry.justification, *notes])] if fault and notes]


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
        elif present[key] not in (digest, entry.hash_without_evidence):
            line = entry.placed.row.line
            refused[line] = Rejected(
                line, "this task has other ratings by its imported raters; the first ones are kept"
            )
    return fresh, list(refused.values())


def _add_evidence(entries: Sequence[_RaterEntry], raters: Mapping[str, User]) -> None:
    """Gives stored annotations of the same entries the evidence that an earlier import has not read."""
    late = {
        (entry.placed.task, raters[entry.rater].pk, entry.hash_without_evidence): entry
        for entry in entries
        if entry.evidence
    }
    former = Annotation.objects.current().filter(
        assignment__task__in={task for task, _rater, _digest in late}, content_hash__in={key[2] for key in late}
    )
    stored = former.values_list("pk", "assignment__task", "assignment__annotator", "content_hash")
    for pk, task, rater, digest in stored:
        if entry := late.get((task, rater, digest)):
            for position, evidence in entry.evidence.items():
                rating = Rating.objects.filter(annotation=pk, response=entry.placed.responses[position])
                rating.update(evidence=[list(one) for one in evidence])
            Annotation.objects.filter(pk=pk).update(content_hash=entry.content_hash)


def _within_limits(
    entries: Sequence[_RaterEntry], tasks: Mapping[int, Task]
) -> tuple[list[_RaterEntry], list[Rejected]]:
    """Returns the entries without those of tasks that would have too many raters, and the rows of these.

    Such a task gets none of its new raters, as otherwise the order of the rows would choose among them.
    """
    new = Counter(entry.placed.task for entry in entries if entry.ratings)
    held = Counter(Assignment.objects.filter(task__in=new, slot__isnull=False).values_list("task", flat=True))
    fit, refused = [], {}
    for entry in entries:
        number = new[entry.placed.task] + held[entry.placed.task]
        if entry.ratings and number > MOST_ANNOTATORS:
            line, name = entry.placed.row.line, tasks[entry.placed.task].external_id
            what = f"the task {name!r} would have {number} raters, and at most {MOST_ANNOTATORS} are accepted"
            refused[line, name] = Rejected(line, f"{what}: none of these ratings is added")
        else:
            fit.append(entry)
    return fit, list(refused.values())


def _slots(
    entries: Sequence[_RaterEntry], tasks: Mapping[int, Task], excluded: set[str]
) -> list[tuple[int | None, bool]]:
    """Returns each entry's slot, the lowest free one, and whether it counts. Tasks get the slots that they lack."""
    taken: dict[int, set[int]] = {task: set() for task in tasks}
    for pk, number in Assignment.objects.filter(task__in=tasks, slot__isnull=False).values_list("task", "slot"):
        taken[pk].add(number or 0)
    slots: list[tuple[int | None, bool]] = []
    for entry in entries:
        counts, of_task = entry.rater not in excluded, taken[entry.placed.task]
        slot = next(free for free in count(1) if free not in of_task) if counts and entry.ratings else None
        of_task |= {slot} if slot else set()
        slots.append((slot, counts))
    narrow = [task for pk, task in tasks.items() if task.slots_wanted < max(taken[pk], default=0)]
    for task in narrow:
        task.slots_wanted = max(taken[task.pk])
    Task.objects.bulk_update(narrow, ["slots_wanted"])
    return slots


def _store(
    entries: Sequence[_RaterEntry],
    raters: Mapping[str, User],
    slots: Sequence[tuple[int | None, bool]],
    project: Project,
    now: datetime,
) -> None:
    assignments, annotations = next_ids(Assignment, len(entries)), next_ids(Annotation, len(entries))
    submitted, imported, version = Assignment.State.SUBMITTED.value, Origin.IMPORTED.value, project.rubric.version
    times = [min(entry.submitted_at or now, now) for entry in entries]
    copy_rows(
        Assignment,
        (
            *("id", "task_id", "annotator_id", "slot", "counts"),
            *("state", "response_order", "leased_at", "lease_expires_at"),
        ),
        (
            (pk, entry.placed.task, raters[entry.rater].pk, *slot, submitted, sorted(entry.ratings), time, time)
            for pk, entry, slot, time in zip(assignments, entries, slots, times, strict=True)
        ),
    )
    copy_rows(
        Annotation,
        (
            *("id", "assignment_id", "revision", "is_current", "origin", "guideline_version", "rubric_version"),
            *("preference", "ranking", "justification", "active_seconds", "aspects", "content_hash", "submitted_at"),
        ),
        (
            (pk, assignment, 1, True, imported, 0, version, *_annotation_record(entry), time)
            for pk, assignment, entry, time in zip(annotations, assignments, entries, times, strict=True)
        ),
    )
    copy_rows(
        Rating,
        ("annotation_id", "response_id", "scores", "evidence", "checks", "unsafe_category", "segment_scores", "cut"),
        (
            (
                *(pk, entry.placed.responses[position], json.dumps(scores)),
                *(json.dumps(entry.evidence.get(position, ())), "[]", "", *map(_json, of_segments)),
            )
            for pk, entry in zip(annotations, entries, strict=True)
            for position, scores in entry.ratings.items()
            for given in [entry.segments.get(position)]
            for of_segments in [_of_segments(given) if given else (None, None)]
        ),
    )


def _annotation_record(entry: _RaterEntry) -> tuple[object, ...]:
    responses = entry.placed.responses
    ranking = _json([[responses[place] for place in tier] for tier in entry.ranking]) if entry.ranking else None
    aspects = next((list(one.aspects) for one in entry.segments.values()), [])
    return entry.preference, ranking, entry.justification, entry.active_seconds, aspects, entry.content_hash


def write_experts(placed: Sequence[Placed]) -> list[Rejected]:
    """Makes new tasks gold; returns the rows that contradict the stored gold."""
    gold_rows = [placed_row for placed_row in placed if placed_row.row.gold]
    _make([placed_row for placed_row in gold_rows if placed_row.is_new])
    known = [placed_row for placed_row in gold_rows if not placed_row.is_new]
    golds = Gold.objects.filter(task__in=[placed_row.task for placed_row in known])
    # Most imports have no gold tasks, and then need no query.
    stored = {gold.task_id: gold for gold in golds.prefetch_related("ratings__response")} if known else {}
    wrong = "the task already exists with another gold: change that in the admin, or give the row another id"
    contradicting = [one for one in known if not _same(stored.get(one.task), one)]
    return [Rejected(placed_row.row.line, wrong) for placed_row in contradicting]


def _make(placed: Sequence[Placed]) -> None:
    golds = Gold.objects.bulk_create(Gold(task_id=placed_row.task, use=placed_row.row.gold) for placed_row in placed)
    ExpertRating.objects.bulk_create(
        ExpertRating(
            gold=gold,
            response_id=response,
            scores=row.expert.scores,
            explanation=row.expert.explanation,
            aspects=list(row.expert.segments.aspects) if row.expert.segments else [],
            segment_scores=[list(one) for one in row.expert.segments.scores] if row.expert.segments else None,
        )
        for gold, placed_row in zip(golds, placed, strict=True)
        for response, row in zip(placed_row.responses, placed_row.row.responses, strict=True)
        if row.expert
    )


def _same(gold: Gold | None, placed: Placed) -> bool:
    if gold is None or gold.use != placed.row.gold:
        return False
    # Compared by position: the ids of the responses are read only for rows that have ratings.
    stored = {rating.response.position: (rating.scores, rating.explanation) for rating in gold.ratings.all()}
    experts = enumerate(row.expert for row in placed.row.responses)
    return stored == {position: (expert.scores, expert.explanation) for position, expert in experts if expert}
