"""Who may still act in a project: excluded and paused people hand in what they hold, and do nothing else.

A project that is paused as a whole gives out no tasks; its people go on with what they have begun.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from annotator.annotation.refused import Refused
from annotator.assignment import REASONS
from annotator.models import Assignment, PauseReason, Project
from annotator.statements import Statement

# One row of values, for whichever statement reads the annotator's situation.
ENTITLEMENT = """
    EXISTS (SELECT FROM annotator_exclusion e WHERE e.project_id = %(project)s AND e.annotator_id = %(annotator)s),
    (SELECT m.paused_because FROM annotator_membership m
     WHERE m.user_id = %(annotator)s AND m.project_id = %(project)s AND m.paused_at IS NOT NULL),
    (SELECT m.quota FROM annotator_membership m WHERE m.user_id = %(annotator)s AND m.project_id = %(project)s),
    coalesce((SELECT y.done FROM annotator_tally y
              WHERE y.annotator_id = %(annotator)s AND y.project_id = %(project)s), 0)
"""
_ENTITLEMENT = Statement(f"SELECT {ENTITLEMENT}")


class NotAtWork(Refused):
    """The person is excluded or paused, and does not hold the task."""

    code = "not_at_work"


@dataclass(frozen=True)
class Entitlement:
    """What bars an annotator in a project.

    `paused` is why they are, None for who is not; `quota` is their own, None for the project's.
    """

    project: Project
    excluded: bool
    paused: str | None
    quota: int | None
    done: int

    COLUMNS: ClassVar[int] = 4

    @classmethod
    def read(cls, row: Sequence[Any], project: Project) -> "Entitlement":
        """From the columns of ENTITLEMENT."""
        return cls(project, *row)

    @classmethod
    def of(cls, assignment: Assignment) -> "Entitlement":
        """What the assignment's annotator may do now."""
        project = assignment.task.project
        (row,) = _ENTITLEMENT.rows(annotator=assignment.annotator_id, project=project.pk)
        return cls.read(row, project)

    def barred_because(self) -> str:
        """A key of assignment.REASONS, or empty."""
        if self.excluded:
            return "excluded"
        if self.paused is None:
            return ""
        return "paused_for_gold" if self.paused == PauseReason.GOLD else "paused"

    def has_filled_quota(self) -> bool:
        """Whether the annotator has rated as many tasks as the project asks of them."""
        quota = self.project.quota if self.quota is None else self.quota
        return 0 < quota <= self.done

    def require_at_work(self) -> None:
        """Raises NotAtWork for somebody who is excluded or paused."""
        if barred := self.barred_because():
            raise NotAtWork(str(REASONS[barred]))


def require_holding_or_at_work(assignment: Assignment) -> None:
    """Raises NotAtWork for somebody excluded or paused who does not hold the task."""
    if assignment.state != Assignment.State.LEASED:
        Entitlement.of(assignment).require_at_work()
