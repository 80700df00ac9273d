"""Counts how many tasks an annotator can still get, up to a number that stands for "many"."""

from annotator.assignment.task_choice import HAD_BEFORE
from annotator.db.statements import Statement
from annotator.models import Project, User

MANY = 100

# Begun tasks behind the annotator's place in the line, and untouched ones, each read through its own partial index.
# Both counts stop at MANY, so that the page costs the same however many tasks there are.
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
)
SELECT least(begun.number + untouched.number, %(many)s), me.quota, me.done FROM begun, untouched, me
""")


def tasks_left(project: Project, annotator: User) -> int:
    """Counts the tasks that the annotator can get after the one they hold, within their quota.

    MANY stands for any number from MANY on.
    """
    ((available, quota, done),) = _LEFT.rows(project=project.pk, annotator=annotator.pk, states=HAD_BEFORE, many=MANY)
    # The task that they hold uses up one of the quota as well.
    return int(min(available, max(quota - done - 1, 0)) if quota else available)
