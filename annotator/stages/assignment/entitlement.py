"""Decides who may still act in a project: excluded and paused people hand in what they hold, and do nothing else.

A project that is paused as a whole, or archived, hands out no tasks; its annotators finish what they have begun.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy

from annotator.infrastructure.db.statements import Statement
from annotator.infrastructure.refusals import Refusal
from annotator.models import Assignment, Membership, PauseReason, Project

REASONS = {
    "empty": gettext_lazy("This project has no tasks yet."),
    "all_done": gettext_lazy("All tasks are done. Thank you!"),
    "you_did_all": gettext_lazy("You have rated or skipped every open task."),
    "leased_by_others": gettext_lazy(
        "Another annotator has each of the remaining tasks right now. Come back in a few minutes."
    ),
    "other_languages": gettext_lazy("All remaining tasks are in languages that you are not asked to rate."),
    "quota": gettext_lazy("You have rated as many tasks as this project allows for each annotator. Thank you!"),
    "project_paused": gettext_lazy("The manager has paused this project for everybody. Come back later."),
    "project_archived": gettext_lazy("This project is archived, so it hands out no tasks."),
    "not_qualified": gettext_lazy(
        "This project requires a test before your first task. Take it on the qualification page."
    ),
    "paused": gettext_lazy("The manager has paused you in this project. Ask the manager when you can continue."),
    "paused_for_gold": gettext_lazy(
        "You are paused in this project, because your ratings differ too much from the experts' ratings of the same "
        "tasks. The manager has been notified and can let you continue."
    ),
    "excluded": gettext_lazy("You no longer rate in this project. Ask its manager why."),
}
"""The reasons for which an annotator gets no task, by the keys that REST sends."""

# Subqueries instead of joins, so that any statement can select them as columns; they return a row without a membership.
ENTITLEMENT = """
    EXISTS (SELECT FROM annotator_exclusion e WHERE e.project_id = %(project)s AND e.annotator_id = %(annotator)s),
    (SELECT m.pause_reason FROM annotator_membership m
     WHERE m.user_id = %(annotator)s AND m.project_id = %(project)s AND m.paused_at IS NOT NULL),
    (SELECT m.quota FROM annotator_membership m WHERE m.user_id = %(annotator)s AND m.project_id = %(project)s),
    coalesce((SELECT y.done FROM annotator_tally y
              WHERE y.annotator_id = %(annotator)s AND y.project_id = %(project)s), 0)
"""
_ENTITLEMENT = Statement(f"SELECT {ENTITLEMENT}")


@dataclass(frozen=True)
class Entitlement:
    """What may bar an annotator in a project.

    `paused` is why the annotator is paused, None if they are not. `quota` is their own number of tasks, None if the
    project's applies; `done` is how many they have rated.
    """

    project: Project
    excluded: bool
    paused: str | None
    quota: int | None
    done: int

    COLUMNS: ClassVar[int] = 4

    @classmethod
    def read(cls, row: Sequence[Any], project: Project) -> "Entitlement":
        """Reads an entitlement from the columns that ENTITLEMENT selects."""
        return cls(project, *row)

    @classmethod
    def of(cls, assignment: Assignment) -> "Entitlement":
        """Reads what the assignment's annotator may do now."""
        return cls._now(assignment.annotator_id, assignment.task.project)

    @classmethod
    def of_member(cls, member: Membership) -> "Entitlement":
        """Reads what the member may do now."""
        return cls._now(member.user_id, member.project)

    @classmethod
    def _now(cls, annotator: int, project: Project) -> "Entitlement":
        (row,) = _ENTITLEMENT.rows(annotator=annotator, project=project.pk)
        return cls.read(row, project)

    def bar_reason(self) -> str:
        """Returns why the annotator may only hand in what they hold, as a key of REASONS, or an empty string."""
        if self.excluded:
            return "excluded"
        if self.paused is None:
            return ""
        return "paused_for_gold" if self.paused == PauseReason.GOLD else "paused"

    def idle_reason(self) -> str:
        """Returns why the annotator may begin nothing, as a key of REASONS, or an empty string.

        The reason is what bars the annotator or what stops the project.
        """
        if self.excluded:
            return "excluded"
        if self.project.archived_at:
            return "project_archived"
        return "project_paused" if self.project.paused else self.bar_reason()

    def has_filled_quota(self) -> bool:
        """Says whether the annotator has rated as many tasks as the project asks of them."""
        quota = self.project.quota if self.quota is None else self.quota
        # A quota of 0 means that there is none.
        return 0 < quota <= self.done

    def require_at_work(self) -> None:
        """Raises Refusal for somebody who is excluded or paused."""
        if barred := self.bar_reason():
            raise Refusal(str(REASONS[barred]), code="not_at_work")

    def require_not_idle(self) -> None:
        """Raises Refusal for somebody who may begin nothing now, for whatever reason."""
        if idle := self.idle_reason():
            raise Refusal(str(REASONS[idle]), code="not_at_work")


def require_holding_or_at_work(assignment: Assignment) -> None:
    """Raises Refusal for somebody excluded or paused who does not hold the task."""
    if assignment.state != Assignment.State.LEASED:
        Entitlement.of(assignment).require_at_work()
