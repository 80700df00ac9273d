"""How many tasks an annotator can still get, counted up to a number that says "many"."""

from annotator.assignment.task_choice import HAD_BEFORE
from annotator.db.statements import Statement
from annotator.models import Project, User

MANY = 100

# Begun tasks from where the annotator looks in their line, and untouched ones: each count stops at MANY.
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
    ) found
), untouched AS (
    SELECT count(*) AS number FROM (
        SELECT FROM annotator_task t, me
        WHERE t.project_id = %(project)s AND t.state = 'open' AND t.open_slots > 0 AND NOT t.begun
            AND (cardinality(me.languages) = 0 OR t.language = '' OR t.language = ANY(me.languages))
            AND NOT EXISTS (SELECT FROM annotator_assignment s WHERE s.task_id = t.id
                            AND s.annotator_id = %(annotator)s AND s.state = ANY(%(states)s))
        LIMIT %(many)s
    ) found
)
SELECT least(begun.number + untouched.number, %(many)s), me.quota, me.done FROM begun, untouched, me
""")


def tasks_left(project: Project, annotator: User) -> int:
    """Tasks that the annotator can get after the one that they hold, within their quota; MANY stands for more too."""
    ((there, quota, done),) = _LEFT.rows(project=project.pk, annotator=annotator.pk, states=HAD_BEFORE, many=MANY)
    return int(min(there, max(quota - done - 1, 0)) if quota else there)
