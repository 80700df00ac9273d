"""What managers do about one member or several: pause, resume, one more try of the test, qualify without it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from annotator.managing import members
from annotator.models import Membership, PauseReason
from annotator.stages.gold import gold_tasks


@dataclass(frozen=True)
class MemberAction:
    """What is done, in words for the button and for the answer."""

    label: Promise
    done: Promise
    act: Callable[[Membership, datetime], None]


ACTIONS: Mapping[str, MemberAction] = {
    "pause": MemberAction(
        _("Pause: give them no more tasks"),
        _("Paused. They are told when they ask for a task."),
        lambda member, now: gold_tasks.pause(member, reason=PauseReason.MANAGER, now=now),
    ),
    "resume": MemberAction(
        _("Resume, and count gold tasks from now on"),
        _("They may rate again."),
        lambda member, now: gold_tasks.resume(member, now=now),
    ),
    "another-try": MemberAction(
        _("Allow one more try of the test"),
        _("Each of them has one more try."),
        lambda member, _now: members.give_another_try(member),
    ),
    "qualify": MemberAction(
        _("Qualify without the test"),
        _("Qualified."),
        lambda member, now: members.qualify(member, now=now),
    ),
}
"""By the names that addresses and forms have."""


def act(name: str, rows: Iterable[Membership], *, now: datetime) -> None:
    """Does one of ACTIONS to each of the members."""
    for member in rows:
        ACTIONS[name].act(member, now)
