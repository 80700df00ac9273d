"""Half-filled forms are kept."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from annotator.annotation.entitlement import require_holding_or_at_work
from annotator.assignment import locked
from annotator.models import Assignment, Draft
from annotator.retrying import in_transaction


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
    require_holding_or_at_work(assignment)
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
