"""What is in force of a task: its label, preference, pairs and kept ratings. Whatever reads them takes the rule here.

The SQL is about a task `t`, its consensus `c` and its current adjudication `a`, either of which may be missing;
DECISIONS joins both. A task whose ratings are dropped has only what its reviewer says. Retired, quarantined and gold
tasks have nothing in force; the readers choose tasks by their states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db.models import Exists, OuterRef, Q, QuerySet

from annotator.infrastructure.db.statements import Statement
from annotator.models.annotation import NEITHER_VALID
from annotator.models.label import Label
from annotator.models.task import Task

NOT_DROPPED = "coalesce(c.drop_reason, '') = ''"
DECISIONS = """
LEFT JOIN LATERAL (SELECT * FROM annotator_consensus c WHERE c.task_id = t.id LIMIT 1) c ON true
LEFT JOIN LATERAL (SELECT * FROM annotator_adjudication a WHERE a.task_id = t.id AND a.is_current LIMIT 1) a ON true
"""
"""Looked up task by task: a join of whole tables would be planned by their sizes, and read from their beginnings."""

LABEL_IN_FORCE = f"""
    SELECT l.source, l.scores, l.means, l.aspects, l.segment_means, l.cut, l.rubric_version, l.made_at
    FROM annotator_label l WHERE l.response_id = r.id AND (l.source = 'adjudicated' OR {NOT_DROPPED})
    ORDER BY array_position('{{adjudicated,consensus,imported}}', l.source::text) LIMIT 1
"""
"""The rule of `Label.objects.in_force` for one response `r` of an open or complete task.

A statement that reads a million responses needs half the time with it.
"""

PREFERENCE_STATED = f"""coalesce(
    a.preference, CASE WHEN {NOT_DROPPED} THEN coalesce(c.preference, t.imported_preference) END
)"""
"""What the reviewer, else the raters, else the file say of the responses; it may be that neither is valid."""
PREFERENCE_IN_FORCE = f"nullif({PREFERENCE_STATED}, {NEITHER_VALID})"
"""The preference between the responses; null where nobody prefers one, or somebody says that neither is valid."""
PAIRS_IN_FORCE = f"CASE WHEN a.ranking IS NULL AND {NOT_DROPPED} THEN c.pairs END"
"""The pairs on which rankings agree, which stand behind a reviewer's ranking, `a.ranking`."""
COMPARED_IN_FORCE = f"""({PREFERENCE_IN_FORCE} IS NOT NULL OR a.ranking IS NOT NULL
    OR coalesce({PAIRS_IN_FORCE}, '[]') <> '[]')"""
"""Whether the task has a preference or a ranking in force."""
COMPARED_AT = f"""CASE WHEN a.preference IS NOT NULL OR a.ranking IS NOT NULL THEN a.made_at
    WHEN {NOT_DROPPED} AND (c.preference IS NOT NULL OR c.pairs <> '[]') THEN c.computed_at END"""
"""When the preference or the ranking in force was made; null for an imported one."""
KEPT_IN_FORCE = f"CASE WHEN {NOT_DROPPED} THEN c.kept END"
"""The ids of the annotations that make the raters' label; null where they make none."""

# The same by the ORM, of tasks that no reviewer has settled: these have labels, so they are not alone.
AGREED = Q(consensus__preference__isnull=False) | (Q(consensus__isnull=False) & ~Q(consensus__pairs=[]))
"""Selects tasks whose raters agree on a preference, or on the order of any two responses."""
IMPORTED = Q(imported_preference__range=(-3, 3))


def compared_alone(tasks: QuerySet[Task]) -> QuerySet[Task]:
    """Returns those of the tasks that have a preference or a ranking in force, but no label."""
    labels = Label.objects.in_force().filter(response__task=OuterRef("pk"))
    kept = Q(consensus__isnull=True) | Q(consensus__drop_reason="")
    in_use = tasks.filter(kept, state__in=[Task.State.OPEN, Task.State.COMPLETE])
    return in_use.filter(IMPORTED | AGREED).exclude(Exists(labels))


_STATED = Statement(f"SELECT t.id, {PREFERENCE_STATED} FROM annotator_task t {DECISIONS} WHERE t.id = ANY(%(tasks)s)")


def preferences_stated(tasks: Sequence[int]) -> Mapping[int, int | None]:
    """Returns what is said of the responses of these tasks, for a page that shows it."""
    return dict(_STATED.rows(tasks=list(tasks)))
