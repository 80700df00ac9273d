"""Chooses the next task: begun ones first, in their line; then untouched ones, by priority and by what the reward model
is least certain of, those first that were searched for personal information, from a random place. Now and then a gold
task goes before them.

The cost grows neither with the number of tasks nor with what an annotator has done. Each read follows an index and
stops at its first row; begun tasks that an annotator cannot take are passed once, as their Tally remembers their place
in the line. Everything is read only when these reads find nothing, so no task is ever missed.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from annotator.infrastructure.db.statements import Row, Statement
from annotator.models import Assignment, Gold, Project, Task, User

OUT_OF_REACH = ["leased", "submitted", "skipped"]
HAD_BEFORE = [*OUT_OF_REACH, "released"]
LOOK_BACK = 32
"""Places in line that are read again: a transaction may take a place and commit later than those behind it."""
STEP = 64
"""Places after which it pays to store how far an annotator has looked."""


@dataclass(frozen=True)
class Candidate:
    """An annotator who looks for a task of a project, from their place in line; `languages` is None for any."""

    project: int
    annotator: int
    line: int = 0
    languages: tuple[str, ...] | None = None

    def parameters(self) -> dict[str, Any]:
        languages = None if self.languages is None else [*self.languages, ""]
        return {**vars(self), "languages": languages, "states": HAD_BEFORE}


class Picked(NamedTuple):
    """A task whose row is locked, with the positions of its responses."""

    task: int
    positions: list[int]


# As an UPDATE locks it: who adds rows that refer to the task, or takes the words of its texts, is in nobody's way.
_LOCK = "FOR NO KEY UPDATE OF t SKIP LOCKED"
_ROOM = "t.project_id = %(project)s AND t.state = 'open' AND t.open_slots > 0"
# OFFSET 0 has each task looked up by itself, in the index of task and annotator. As a join it would be planned, while
# the table is small, as a read of all that the annotator has done; connections keep such a plan while the table grows.
_MINE = """(SELECT FROM annotator_assignment s
            WHERE s.task_id = t.id AND s.annotator_id = %(annotator)s AND s.state = ANY(%(states)s) OFFSET 0)"""
_POSITIONS = "ARRAY(SELECT r.position FROM annotator_response r WHERE r.task_id = {task} ORDER BY r.position)"
_SPOKEN = "({languages}::text[] IS NULL OR t.language = ANY({languages}::text[]))"
_SPOKEN_BY_SEEKER = _SPOKEN.format(languages="%(languages)s")


def pick(candidate: Candidate, line: "QueuePosition") -> Picked | None:
    """Locks the best task with room for the candidate, and returns it. Tasks locked by others are passed over.

    `line` is what the statement read that holds NEXT_IN_LINE.
    """
    if line.passed - LOOK_BACK >= candidate.line + STEP:
        _look_from(candidate, line.passed - LOOK_BACK)
    return line.picked() or _untouched(candidate) or _any_at_all(candidate)


# Begun tasks -----------------------------------------------------------------------------------------------


class QueuePosition(NamedTuple):
    """The first begun task that the candidate may take, and the last place in line that is of no use to them."""

    task: int | None
    positions: list[int]
    passed: int

    def picked(self) -> Picked | None:
        return Picked(self.task, self.positions) if self.task else None


_SPOKEN_BY_STANDING = _SPOKEN.format(languages="(SELECT spoken FROM standing)")
# Part of the statement that reads how the annotator stands, as `standing` with the columns `line` and `spoken`: every
# claim runs both. `first` counts locked tasks too. With SKIP LOCKED the stored place could move beyond a task that is
# locked for a moment only, and the annotator would not see it again.
NEXT_IN_LINE = f"""
first AS (
    SELECT t.line FROM annotator_task t
    WHERE {_ROOM} AND t.begun AND t.line > (SELECT line FROM standing) AND {_SPOKEN_BY_STANDING} AND NOT EXISTS {_MINE}
    ORDER BY t.line LIMIT 1
), picked AS (
    SELECT t.id FROM annotator_task t
    WHERE {_ROOM} AND t.begun AND t.line >= (SELECT line FROM first) AND {_SPOKEN_BY_STANDING} AND NOT EXISTS {_MINE}
    ORDER BY t.line LIMIT 1 {_LOCK}
)"""
"""Reads, as `first` and `picked`, the begun tasks of a project that an annotator may take, and locks one."""
LINE = f"""
    (SELECT id FROM picked), {_POSITIONS.format(task="(SELECT id FROM picked)")}, coalesce(
        (SELECT line FROM first) - 1,
        (SELECT t.line FROM annotator_task t WHERE {_ROOM} AND t.begun ORDER BY t.line DESC LIMIT 1),
        0
    )
"""
"""The columns of a QueuePosition, after NEXT_IN_LINE."""
_LOOKED = Statement("""
INSERT INTO annotator_tally (annotator_id, project_id, line) VALUES (%(annotator)s, %(project)s, %(line)s)
ON CONFLICT (annotator_id, project_id) DO UPDATE SET line = excluded.line
""")


def _look_from(candidate: Candidate, line: int) -> None:
    _LOOKED.run(annotator=candidate.annotator, project=candidate.project, line=line)


# Untouched tasks -------------------------------------------------------------------------------------------

# Reads of equal rank start at a random place: annotators then do not contend for the same row, and topics that were
# imported one after the other are mixed. `around` starts from the front if nothing lies behind that place, and is the
# one that reaches lower priorities.
_UNTOUCHED = f"""
WITH top AS (
    SELECT t.priority, t.pii_scanned_at IS NULL AS unscanned FROM annotator_task t
    WHERE {_ROOM} AND NOT t.begun {{language}} ORDER BY t.priority DESC, t.pii_scanned_at IS NULL LIMIT 1
), onwards AS (
    SELECT t.id FROM annotator_task t
    WHERE {_ROOM} AND NOT t.begun {{language}} AND t.priority = (SELECT priority FROM top)
        AND (t.pii_scanned_at IS NULL) = (SELECT unscanned FROM top)
        AND t.shuffle >= %(place)s AND NOT EXISTS {_MINE}
    ORDER BY t.shuffle LIMIT 1 {_LOCK}
), around AS (
    SELECT t.id FROM annotator_task t
    WHERE {_ROOM} AND NOT t.begun {{language}} AND NOT EXISTS (SELECT FROM onwards) AND NOT EXISTS {_MINE}
    ORDER BY t.priority DESC, t.pii_scanned_at IS NULL, t.shuffle LIMIT 1 {_LOCK}
)
SELECT t.id, {_POSITIONS.format(task="t.id")} FROM (SELECT id FROM onwards UNION ALL SELECT id FROM around) t
"""
_IN_ANY_LANGUAGE = Statement(_UNTOUCHED.format(language=""))
# One read per language, best first: a list of languages could not follow the order of task_untouched_by_language.
_IN_ONE_LANGUAGE = Statement(_UNTOUCHED.format(language="AND t.language = %(language)s"))
_LANGUAGES_BY_PRIORITY = Statement(f"""
SELECT spoken.language FROM unnest(%(languages)s::text[]) AS spoken (language), LATERAL (
    SELECT t.priority FROM annotator_task t
    WHERE {_ROOM} AND NOT t.begun AND t.language = spoken.language ORDER BY t.priority DESC LIMIT 1
) best ORDER BY best.priority DESC, random()
""")


def random_place() -> int:
    """Returns a random place among the values of Task.shuffle."""
    return random.randrange(2**31)


def _untouched(candidate: Candidate) -> Picked | None:
    values = candidate.parameters() | {"place": random_place()}
    if candidate.languages is None:
        return _picked(_IN_ANY_LANGUAGE.row(**values))
    languages = [language for (language,) in _LANGUAGES_BY_PRIORITY.rows(**values)]
    found = (_picked(_IN_ONE_LANGUAGE.row(**values, language=language)) for language in languages)
    return next((task for task in found if task), None)


def _picked(row: Row | None) -> Picked | None:
    return Picked(row[0], row[1]) if row else None


def untouched_plan(candidate: Candidate) -> str:
    """Returns what EXPLAIN says of the read of untouched tasks."""
    return _IN_ANY_LANGUAGE.plan(**candidate.parameters(), place=random_place())


# Gold tasks ------------------------------------------------------------------------------------------------


def gold_instead(project: Project, annotator: User) -> Task | None:
    """Locks and returns a gold task that the annotator has not had, once in about `gold_every` calls, by chance."""
    # At a fixed place in the stream annotators would recognise it.
    if not project.gold_every or random.random() * project.gold_every >= 1:
        return None
    # SKIP LOCKED: annotators who ask at the same time get different gold tasks instead of waiting for each other.
    return (
        Task.objects.filter(project=project, state=Task.State.GOLD, gold__use=Gold.Use.STREAM)
        .untouched_by(annotator.pk, states=tuple(Assignment.State.values))
        .select_for_update(skip_locked=True, no_key=True, of=("self",))
        .order_by("?")
        .first()
    )


# When nothing was found ------------------------------------------------------------------------------------

# The only read that may see every task of a project; it runs when the two above return nothing.
_ANY = f"""
SELECT t.id, {_POSITIONS.format(task="t.id")}, CASE WHEN t.begun THEN t.line END FROM annotator_task t
WHERE {_ROOM} AND {_SPOKEN_BY_SEEKER} AND NOT EXISTS {_MINE}
ORDER BY t.begun DESC, t.line, t.priority DESC LIMIT 1
"""
_ANY_UNLOCKED, _ANY_WITH_ROOM = Statement(f"{_ANY} {_LOCK}"), Statement(_ANY)
_ONE_OF = Statement(f"""
SELECT t.id, {_POSITIONS.format(task="t.id")} FROM annotator_task t
WHERE t.id = ANY(%(tasks)s) AND t.state = 'open' AND t.open_slots > 0
ORDER BY array_position(%(tasks)s::bigint[], t.id) LIMIT 1 {_LOCK}
""")


def _any_at_all(candidate: Candidate) -> Picked | None:
    """Locks a task that the line has hidden from this annotator, else one that they once gave back.

    In the first case the annotator's place in the line moves back to that task.
    """
    if row := _ANY_UNLOCKED.row(**candidate.parameters()):
        *_, line = row
        if line is not None and line <= candidate.line:
            _look_from(candidate, line)
        return _picked(row)
    return _picked(_ANY_UNLOCKED.row(**candidate.parameters() | {"states": OUT_OF_REACH}))


def is_locked(candidate: Candidate) -> bool:
    """Returns whether a task has room for a candidate who was given none: others have locked it for a moment."""
    return _ANY_WITH_ROOM.row(**candidate.parameters() | {"states": OUT_OF_REACH}) is not None


def lock_one(tasks: Iterable[int]) -> Picked | None:
    """Locks the first of these tasks that has room and is not locked, and returns it."""
    return _picked(_ONE_OF.row(tasks=list(tasks)))


MANY = 100

# Begun tasks behind the annotator's place in the line, and untouched ones, each read through its own partial index.
# Both counts stop at `many`, so that the page costs the same however many tasks there are.
_LEFT = Statement("""
WITH me AS (
    SELECT coalesce(y.line, 0) AS line, coalesce(y.done, 0) AS done, coalesce(m.quota, p.quota) AS quota,
        coalesce(m.languages, '{}') AS languages
    FROM annotator_project p
    LEFT JOIN annotator_membership m ON m.user_id = %(annotator)s AND m.project_id = p.id
    LEFT JOIN annotator_tally y ON y.annotator_id = %(annotator)s AND y.project_id = p.id
    WHERE p.id = %(project)s
), begun AS (
    SELECT count(*) AS number FROM (
        SELECT FROM annotator_task t, me
        WHERE t.project_id = %(project)s AND t.state = 'open' AND t.open_slots > 0 AND t.begun AND t.line > me.line
            AND (cardinality(me.languages) = 0 OR t.language = '' OR t.language = ANY(me.languages))
            AND NOT EXISTS (SELECT FROM annotator_assignment s WHERE s.task_id = t.id
                            AND s.annotator_id = %(annotator)s AND s.state = ANY(%(states)s))
        LIMIT %(many)s
    ) reachable
), untouched AS (
    SELECT count(*) AS number FROM (
        SELECT FROM annotator_task t, me
        WHERE t.project_id = %(project)s AND t.state = 'open' AND t.open_slots > 0 AND NOT t.begun
            AND (cardinality(me.languages) = 0 OR t.language = '' OR t.language = ANY(me.languages))
            AND NOT EXISTS (SELECT FROM annotator_assignment s WHERE s.task_id = t.id
                            AND s.annotator_id = %(annotator)s AND s.state = ANY(%(states)s))
        LIMIT %(many)s
    ) reachable
), mine AS (
    SELECT count(*) FILTER (WHERE s.shift IS NULL) AS shown, count(s.shift) AS ahead
    FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id
    WHERE s.annotator_id = %(annotator)s AND s.state = 'leased' AND t.project_id = %(project)s
)
SELECT least(begun.number + untouched.number + mine.ahead, %(many)s),
    CASE WHEN me.quota > 0 THEN greatest(me.quota - me.done - greatest(mine.shown, 1), 0) END
FROM begun, untouched, me, mine
""")


def tasks_left(project: Project, annotator: User) -> int:
    """Counts the tasks that the annotator can get after the one they hold, within their quota.

    MANY stands for any number from MANY on.
    """
    available, allowed = available_to(project, annotator, most=MANY)
    return available if allowed is None else min(available, allowed)


def available_to(project: Project, annotator: User, *, most: int) -> tuple[int, int | None]:
    """Counts, up to `most`, the tasks that the annotator holds ahead or can get, and how many their quota allows.

    The tasks that they have begun use up the quota as well. The second number is None where there is no quota.
    """
    (row,) = _LEFT.rows(project=project.pk, annotator=annotator.pk, states=HAD_BEFORE, many=most)
    return row[0], row[1]
