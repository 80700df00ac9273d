"""What an annotator does with a task: submit, revise, skip, report. Each is one transaction, and safe to repeat."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _

from annotator import audit, consensus, gold
from annotator.assignment import free_slot, locked
from annotator.assignment.holding import responses_of
from annotator.models import (
    NEITHER_VALID,
    PREFERENCES,
    Annotation,
    Assignment,
    Draft,
    Origin,
    Project,
    Report,
    Response,
    Skip,
    SkipReason,
    Task,
    Verdict,
)
from annotator.pii import quoting
from annotator.refusals import Refusal
from annotator.retrying import in_transaction
from annotator.statements import Columns, Statement

Errors = dict[str, list[str]]
UNDO_FOR = timedelta(seconds=10)
ON_THE_WAY = timedelta(seconds=5)
"""What an undo in the last of the ten seconds may take to arrive."""


class Refused(Refusal):
    """What was asked for cannot be done with this task now; the message says why."""


class IncompleteRating(Refusal):
    """The rating lacks an answer or has one off the scale. `errors` maps each place to what is wrong there."""

    status = 400
    code = "incomplete"

    def __init__(self, errors: Errors) -> None:
        texts = "; ".join(text for texts in errors.values() for text in texts)
        super().__init__(_("The rating is not complete: %(errors)s") % {"errors": texts})
        self.errors = errors


@dataclass(frozen=True)
class ResponseRating:
    """Scores by attribute key, each 0..4, and what else was answered about one response."""

    scores: Mapping[str, int]
    checks: tuple[str, ...] = ()
    confidence: int | None = None
    safe: bool | None = None
    unsafe_category: str = ""


@dataclass(frozen=True)
class Submission:
    """A filled form: ratings by response id. A preference is relative to the order the annotator saw."""

    ratings: Mapping[int, ResponseRating]
    preference: int | None = None
    justification: str = ""
    active_seconds: float | None = field(default=None, compare=False)

    def content_hash(self) -> str:
        content = asdict(self) | {"active_seconds": None}
        content["ratings"] = sorted(content["ratings"].items())
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Submitted:
    """The annotation that now stands for the assignment, and whether this call made the first one."""

    annotation: Annotation
    created: bool


@in_transaction
def submit(assignment_id: int, submission: Submission, *, now: datetime, origin: str = Origin.PERSON) -> Submitted:
    """Stores a finished rating: the same again changes nothing, another one is a revision while the task is open.

    A lease that ran out is no obstacle: the work takes a free slot, or is kept beside the slots.

    Raises:
        IncompleteRating: an answer is missing or off the scale.
        Refused: the task was skipped by this person, or is closed for edits.
    """
    assignment = locked(assignment_id)
    task = assignment.task
    check_complete(submission, project=task.project, responses=responses_of(task))
    current = _current(assignment)
    if current and current.content_hash == submission.content_hash():
        return Submitted(current, created=False)
    if current:
        _allow_revision(assignment)
        Annotation.objects.filter(pk=current.pk).update(is_current=False)
    else:
        _may_be_taken(assignment)
    revision = current.revision + 1 if current else 1
    annotation = _store(assignment, submission, revision=revision, now=now, origin=origin)
    if task.state == Task.State.GOLD and current is None:
        gold.judge(assignment, now=now)
    consensus.settle([task], project=task.project, now=now)
    _record("annotation.revised" if current else "annotation.submitted", task, revision=revision)
    return Submitted(annotation, created=current is None)


def _record(action: str, task: Task, **details: Any) -> None:
    audit.record(action, f"task {task.external_id}", project=task.project, **details)


_ANNOTATION = Columns(Annotation, "a")
_CURRENT = Statement(f"""
SELECT {_ANNOTATION} FROM annotator_annotation a WHERE a.assignment_id = %(assignment)s AND a.is_current
""")


def _current(assignment: Assignment) -> Annotation | None:
    row = _CURRENT.row(assignment=assignment.pk)
    return _ANNOTATION.instance(row) if row else None


def _allow_revision(assignment: Assignment) -> None:
    verdict = assignment.verdicts.order_by("-pk").first()
    if verdict and verdict.decision == Verdict.Decision.REJECTED:
        raise Refused(_("A reviewer has rejected this rating: %(comment)s") % {"comment": verdict.comment})
    if assignment.task.state != Task.State.QUARANTINED and not assignment.task.may_be_revised():
        raise Refused(_("This task is complete: its labels are made, so the rating can no longer be changed."))


def _may_be_taken(assignment: Assignment) -> None:
    if assignment.state == Assignment.State.SKIPPED:
        raise Refused(_("You skipped this task, so it cannot be rated."))
    if assignment.slot is None and assignment.counts:
        assignment.slot = free_slot(assignment.task)


# All rows of one submission in one statement: this runs more often than anything else that writes.
_STORE = Statement("""
WITH annotation AS (
    INSERT INTO annotator_annotation (assignment_id, revision, is_current, origin, preference, justification,
        active_seconds, guideline_version, content_hash, submitted_at)
    SELECT %(assignment)s, %(revision)s, true, %(origin)s, %(preference)s, %(justification)s, %(active_seconds)s,
        coalesce((SELECT acknowledged_version FROM annotator_membership
                  WHERE user_id = %(annotator)s AND project_id = %(project)s), 0),
        %(content_hash)s, %(now)s
    RETURNING id
), ratings AS (
    INSERT INTO annotator_rating (annotation_id, response_id, scores, checks, confidence, safe, unsafe_category)
    SELECT annotation.id, r.response, r.scores, r.checks, r.confidence, r.safe, r.unsafe_category
    FROM annotation, jsonb_to_recordset(%(ratings)s) AS r (
        response bigint, scores jsonb, checks jsonb, confidence smallint, safe boolean, unsafe_category text
    )
), held AS (
    UPDATE annotator_assignment SET state = 'submitted', slot = %(slot)s WHERE id = %(assignment)s
), tally AS (
    INSERT INTO annotator_tally (annotator_id, project_id, done) SELECT %(annotator)s, %(project)s, 1
    WHERE %(revision)s = 1
    ON CONFLICT (annotator_id, project_id) DO UPDATE SET done = annotator_tally.done + 1
), draft AS (
    DELETE FROM annotator_draft WHERE assignment_id = %(assignment)s
)
SELECT id FROM annotation
""")


def _store(assignment: Assignment, submission: Submission, *, revision: int, now: datetime, origin: str) -> Annotation:
    """The annotation with its ratings; the assignment is submitted, its draft gone, the annotator's tally counted."""
    preference = by_position(submission.preference, assignment.response_order)
    values = {
        "assignment": assignment.pk,
        "annotator": assignment.annotator_id,
        "project": assignment.task.project_id,
        "slot": assignment.slot,
        "revision": revision,
        "origin": origin,
        "preference": preference,
        "justification": submission.justification,
        "active_seconds": submission.active_seconds,
        "content_hash": submission.content_hash(),
        "ratings": json.dumps([{"response": pk} | asdict(rating) for pk, rating in submission.ratings.items()]),
        "now": now,
    }
    ((number,),) = _STORE.rows(**values)
    assignment.state = Assignment.State.SUBMITTED
    return Annotation(pk=number, assignment=assignment, revision=revision, preference=preference, submitted_at=now)


def by_position(preference: int | None, order: Sequence[int]) -> int | None:
    """Stored preferences are relative to the responses' positions, whatever order was shown; the same leads back."""
    if preference is None or preference == NEITHER_VALID or list(order) == sorted(order):
        return preference
    return -preference


# Completeness ----------------------------------------------------------------------------------------------


def check_complete(submission: Submission, *, project: Project, responses: Sequence[Response]) -> None:
    """Raises IncompleteRating unless everything that the project asks for is answered, on its scale."""
    errors: Errors = {}
    known = {response.pk for response in responses}
    for stranger in set(submission.ratings) - known:
        text = _("response id %(id)s does not belong to this task") % {"id": stranger}
        errors.setdefault("ratings", []).append(text)
    for number, response in enumerate(responses):
        rating = submission.ratings.get(response.pk)
        place = f"ratings.{response.pk}"
        if rating is None:
            errors[place] = [_("response %(number)s is not rated") % {"number": number + 1}]
        elif found := _rating_errors(rating, project):
            errors[place] = found
    if found := _preference_errors(submission, project, len(responses)):
        errors["preference"] = found
    if errors:
        raise IncompleteRating(errors)


def _rating_errors(rating: ResponseRating, project: Project) -> list[str]:
    attributes = project.attributes_for()
    keys = {each.key for each in attributes}
    errors = [_no_answer(_(each.name)) for each in attributes if each.key not in rating.scores]
    errors += [
        _("%(key)s is not an attribute of this project") % {"key": key} for key in sorted(set(rating.scores) - keys)
    ]
    errors += [
        _("%(key)s is %(score)r: it must be a whole number from 0 to 4") % {"key": key, "score": score}
        for key, score in rating.scores.items()
        if type(score) is not int or not 0 <= score <= 4
    ]
    known_checks = {check[0] for each in attributes for check in each.checks}
    errors += [
        _("%(check)s is not a check of this project") % {"check": check}
        for check in rating.checks
        if check not in known_checks
    ]
    if project.ask_confidence and rating.confidence is None:
        errors.append(_no_answer(_("Confidence")))
    if project.ask_safety and rating.safe is None:
        errors.append(_no_answer(_("Safety")))
    return errors


def _no_answer(question: str) -> str:
    return _("%(question)s has no answer") % {"question": question}


def _preference_errors(submission: Submission, project: Project, responses: int) -> list[str]:
    if submission.preference is not None and submission.preference not in PREFERENCES:
        return [_("the preference must be -3, -2, -1, 1, 2 or 3, or -100 for neither valid")]
    if submission.preference is not None and responses != 2:
        return [_("a preference needs exactly two responses")]
    if project.ask_preference and responses == 2 and submission.preference is None:
        return [_no_answer(_("Preference"))]
    return []


# Passing a task by -----------------------------------------------------------------------------------------


@in_transaction
def skip(
    assignment_id: int,
    *,
    reason: str,
    note: str = "",
    spans: Collection[int] = (),
    quotes: Sequence[str] = (),
    now: datetime,
) -> Skip:
    """Passes the task by. PII takes it from everyone until a manager decides; the rest is for this person only.

    With PII the annotator may say what is personal: detected spans by id, and quotes of the task's texts.

    Raises:
        Refused: it has been rated already.
        pii.quoting.NotInTheText, pii.quoting.MarksWithoutReason: what is marked makes no sense.
    """
    if (spans or quotes) and reason != SkipReason.PII:
        raise quoting.MarksWithoutReason
    assignment = locked(assignment_id)
    if assignment.state == Assignment.State.SUBMITTED:
        raise Refused(_("You have rated this task already, so it cannot be skipped."))
    if assignment.state == Assignment.State.SKIPPED:
        return assignment.skips.latest("created_at")
    _let_go(assignment, Assignment.State.SKIPPED)
    if reason == SkipReason.PII:
        quoting.mark(assignment.task, spans=spans, quotes=quotes, by=assignment.annotator, now=now)
        _quarantine(assignment.task)
    consensus.settle([assignment.task], project=assignment.task.project, now=now)
    _record("task.skipped", assignment.task, reason=reason)
    return Skip.objects.create(assignment=assignment, reason=reason, note=note, created_at=now)


@in_transaction
def undo_skip(assignment_id: int, *, now: datetime) -> Assignment:
    """Takes a skip back: the task, with its draft, is the annotator's next one again.

    Raises:
        Refused: too late, or others have the task or have set it aside by now.
    """
    assignment = locked(assignment_id)
    task, skipped = assignment.task, assignment.skips.order_by("-created_at").first()
    if skipped is None or assignment.state != Assignment.State.SKIPPED:
        raise Refused(_("This task is not skipped, so there is nothing to undo."))
    if now > skipped.created_at + UNDO_FOR + ON_THE_WAY:
        raise Refused(_("It is too late to undo the skip."))
    skipped.delete()
    quoting.unmark(task, by=assignment.annotator)
    if task.state == Task.State.QUARANTINED and not _set_aside_by_others(task):
        task.state = task.state_in_use()
    if task.state == Task.State.GOLD:
        gold.make_room(task)
    slot = free_slot(task)
    if slot is None or task.state not in (Task.State.OPEN, Task.State.GOLD):
        raise Refused(_("The skip cannot be undone: by now others have this task, or it is set aside."))
    assignment.state, assignment.slot = Assignment.State.LEASED, slot
    assignment.leased_at, assignment.lease_expires_at = now, now + timedelta(minutes=task.project.lease_minutes)
    assignment.save(update_fields=["state", "slot", "leased_at", "lease_expires_at"])
    task.save(update_fields=["state"])
    consensus.settle([task], project=task.project, now=now)
    _record("task.unskipped", task)
    return assignment


def _set_aside_by_others(task: Task) -> bool:
    skips = Skip.objects.filter(assignment__task=task, reason=SkipReason.PII)
    return skips.exists() or Report.objects.filter(assignment__task=task, decision="").exists()


@in_transaction
def report(assignment_id: int, *, category: str, note: str = "", now: datetime) -> Report:
    """Reports unsafe content and takes the task from everyone until a manager decides. A finished rating stays."""
    assignment = locked(assignment_id)
    if assignment.state == Assignment.State.LEASED:
        _let_go(assignment, Assignment.State.RELEASED)
    _quarantine(assignment.task)
    consensus.settle([assignment.task], project=assignment.task.project, now=now)
    _record("task.reported", assignment.task, category=category)
    found, _ = Report.objects.update_or_create(
        assignment=assignment, decision="", defaults={"category": category, "note": note, "created_at": now}
    )
    return found


def _let_go(assignment: Assignment, state: str) -> None:
    assignment.state = state
    assignment.slot = None
    assignment.save(update_fields=["state", "slot"])


def _quarantine(task: Task) -> None:
    if task.state != Task.State.RETIRED:
        task.state = Task.State.QUARANTINED
        task.save(update_fields=["state"])


@in_transaction
def decide_quarantine(task_id: int, *, safe_to_use: bool, now: datetime) -> Task:
    """A manager's word on a quarantined task: back into the queue, or retired for good."""
    task = Task.objects.select_for_update().select_related("project").get(pk=task_id)
    if task.state != Task.State.QUARANTINED:
        raise Refused(f"{task} is {task.state}, not quarantined.")
    task.state = task.state_in_use() if safe_to_use else Task.State.RETIRED
    task.save(update_fields=["state"])
    decision = Report.Decision.DISMISSED if safe_to_use else Report.Decision.UPHELD
    Report.objects.filter(assignment__task=task, decision="").update(decision=decision)
    consensus.settle([task], project=task.project, now=now)
    decided = "task.released" if safe_to_use else "task.retired"
    _record(decided, task)
    return task


@in_transaction
def save_draft(
    assignment_id: int, form: Mapping[str, object], *, changed: Collection[str] = (), revision: int = 0, now: datetime
) -> datetime:
    """Keeps a half-filled form and renews the lease of whoever is filling it; returns since when it is kept.

    Of a form that names what was changed only that counts: an old tab must not undo what was chosen in another.
    `revision` is the one that the form would replace; what arrives after its submission is stored already.
    """
    assignment = locked(assignment_id)
    current = assignment.annotations.current().first()
    if current and current.revision > revision:
        return current.submitted_at
    if assignment.state == Assignment.State.LEASED:
        assignment.lease_expires_at = now + timedelta(minutes=assignment.task.project.lease_minutes)
        assignment.save(update_fields=["lease_expires_at"])
    earlier = Draft.objects.filter(assignment=assignment).first()
    if earlier and changed:
        fresh = {*changed, "active_seconds"}
        rest = {name: value for name, value in earlier.form.items() if name not in fresh}
        form = rest | {name: value for name, value in form.items() if name in fresh}
    Draft.objects.update_or_create(assignment=assignment, defaults={"form": dict(form), "saved_at": now})
    return now
