"""Keeps half-filled forms, so that nothing is lost when an annotator leaves or a browser closes."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from functools import partial

from django.utils.translation import gettext as _

from annotator.infrastructure.background import pacing
from annotator.infrastructure.db.retries import in_transaction
from annotator.infrastructure.db.statements import Statement
from annotator.infrastructure.db.storable_text import require_storable_form
from annotator.infrastructure.limits import LARGEST_DRAFT
from annotator.infrastructure.refusals import Refusal
from annotator.models import Assignment, Draft
from annotator.reading.assignment_rows import locked
from annotator.stages.annotation.submissions import allow_revision
from annotator.stages.assignment import expiry, require_holding_or_at_work

KEPT = timedelta(days=90)
"""How long a form is kept for an annotator whose lease has run out, and who may get the task again."""
FORGOTTEN_AT_ONCE = 1_000


def check_draft(form: Mapping[str, object]) -> None:
    """Checks that the form can be stored and is no larger than LARGEST_DRAFT.

    Raises:
        UnstorableText: PostgreSQL cannot store one of its texts.
        Refusal: it is larger than LARGEST_DRAFT.
    """
    require_storable_form(form)
    size = sum(len(name.encode()) + len(str(value).encode()) for name, value in form.items())
    if size > LARGEST_DRAFT:
        raise Refusal(_("The form is too large to save. Shorten what you wrote."), code="too_large", status=413)


@in_transaction
def save_draft(
    assignment_id: int, form: Mapping[str, object], *, changed: Collection[str] = (), revision: int = 0, now: datetime
) -> datetime:
    """Keeps a half-filled form and renews the lease of whoever fills it in; returns the time at which it was kept.

    If `changed` names fields, only those replace what is stored: an old tab must not undo a choice made in another.
    `revision` is the revision that the form would replace. A draft that arrives after that form was submitted is
    dropped, because its content is stored already.

    Raises:
        UnstorableText, Refusal: the form cannot be kept as it is.
        Refusal: the annotator is excluded or paused, and does not hold the task.
        Refused: the rating that was submitted can no longer be changed.
    """
    check_draft(form)
    assignment = locked(assignment_id)
    current = assignment.annotations.current().first()
    if current and current.revision > revision:
        return current.submitted_at
    require_holding_or_at_work(assignment)
    if current:
        allow_revision(assignment)
    if assignment.state == Assignment.State.LEASED:
        assignment.lease_expires_at = expiry(assignment.task.project, now)
        assignment.save(update_fields=["lease_expires_at"])
    earlier = Draft.objects.filter(assignment=assignment).first()
    if earlier and changed:
        fresh = {*changed, "active_seconds"}
        rest = {name: value for name, value in earlier.form.items() if name not in fresh}
        form = rest | {name: value for name, value in form.items() if name in fresh}
        check_draft(form)  # many small forms with different names must not add up to a large one
    Draft.objects.update_or_create(assignment=assignment, defaults={"form": dict(form), "saved_at": now})
    return now


# A form whose task its annotator still holds is being filled in, however slowly.
_FORGET = Statement("""
DELETE FROM annotator_draft WHERE id IN (
    SELECT d.id FROM annotator_draft d JOIN annotator_assignment s ON s.id = d.assignment_id
    WHERE d.saved_at < %(before)s AND s.state <> 'leased' LIMIT %(most)s
)
""")


def forget_old(*, now: datetime) -> int:
    """Deletes half-filled forms that were left KEPT ago, of tasks that their annotators no longer hold."""
    return pacing.alone_in_slices("drafts", 0, partial(_FORGET.run, before=now - KEPT, most=FORGOTTEN_AT_ONCE))
