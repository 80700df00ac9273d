"""Counts what the next run would learn from: labels, preferences, and prompts on either side of the split."""

from dataclasses import dataclass

from annotator.db.statements import Statement
from annotator.models import Project
from annotator.models.in_force import COMPARED_IN_FORCE, DECISIONS, LABEL_IN_FORCE
from annotator.models.splits import HELD_OUT

MOST_TASKS = 2_000
"""The most tasks of each state that are counted: a page waits for this."""


@dataclass(frozen=True)
class Material:
    """`labels` are labelled responses. `at_least`: there are more tasks than were counted."""

    labels: int
    preferences: int
    train_prompts: int
    held_out_prompts: int
    at_least: bool

    @property
    def suffices(self) -> bool:
        """Whether there is something to learn from and something to judge by."""
        return self.at_least or bool(self.train_prompts and self.held_out_prompts)


def material(project: Project) -> Material:
    """Counts the material in the first tasks of each state; the run itself counts all of it."""
    row = _COUNTS.row(project=project.pk, most=MOST_TASKS, share=project.validation_share)
    assert row is not None
    labels, preferences, train, held_out, fullest = row
    return Material(int(labels), int(preferences), train, held_out, fullest >= MOST_TASKS)


_COUNTS = Statement(
    f"""
WITH t AS (
    (SELECT id, prompt_hash, imported_preference, state FROM annotator_task
     WHERE project_id = %(project)s AND state = 'complete' LIMIT %(most)s)
    UNION ALL
    (SELECT id, prompt_hash, imported_preference, state FROM annotator_task
     WHERE project_id = %(project)s AND state = 'open' LIMIT %(most)s)
), counted AS (
    SELECT t.state, t.prompt_hash, y.labels,
           {COMPARED_IN_FORCE} AS is_preferred, {HELD_OUT} AS is_held_out
    FROM t {DECISIONS}
    CROSS JOIN LATERAL (
        SELECT count(*) AS labels FROM annotator_response r CROSS JOIN LATERAL ({LABEL_IN_FORCE}) l
        WHERE r.task_id = t.id AND (l.means <> '{{}}' OR l.segment_means IS NOT NULL)
    ) y
)
SELECT coalesce(sum(labels), 0), count(*) FILTER (WHERE is_preferred),
       count(DISTINCT prompt_hash) FILTER (WHERE (labels > 0 OR is_preferred) AND NOT is_held_out),
       count(DISTINCT prompt_hash) FILTER (WHERE (labels > 0 OR is_preferred) AND is_held_out),
       greatest(count(*) FILTER (WHERE state = 'complete'), count(*) FILTER (WHERE state = 'open'))
FROM counted
""",
    prepared=False,
)
