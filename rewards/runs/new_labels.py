"""Counts what a model could learn from since a project's last run: labels, and preferences without ratings; and all of
it.
"""

from dataclasses import asdict, dataclass

from django.db.models import Exists, OuterRef, Q

from annotator.infrastructure.db.statements import Statement
from annotator.models import Label, Project
from annotator.models.in_force import AGREED, COMPARED_IN_FORCE, DECISIONS, LABEL_IN_FORCE, compared_alone
from annotator.models.splits import HELD_OUT
from rewards.models import SnapshotTask, TrainingRun
from rewards.reasons import Reason, coded


@dataclass(frozen=True)
class News:
    """The number of new labels, and of unlabelled tasks with a new preference or ranking."""

    labels: int
    preferences: int

    @property
    def total(self) -> int:
        return self.labels + self.preferences

    def reason(self) -> Reason:
        """Returns what is new as a part of the reason of a run."""
        counts = {name: count for name, count in asdict(self).items() if count}
        return coded("_and_".join(counts), **counts)


def news_since(last: TrainingRun | None, project: Project) -> News:
    """Counts what is new since the run was asked for; everything where there was no run."""
    labels = Label.objects.in_force().for_project(project.pk)
    if last:
        labels = labels.filter(made_at__gt=last.created_at)
    tasks = compared_alone(project.tasks.all())
    if last:
        # An imported preference has no time of its own, and a later import may add one to a task that was here before.
        in_snapshot = SnapshotTask.objects.filter(snapshot=last.snapshot_id, task_id=OuterRef("pk"))
        imported = ~Exists(in_snapshot) if last.snapshot_id else Q(created_at__gt=last.created_at)
        agreed = AGREED & Q(consensus__computed_at__gt=last.created_at)
        tasks = tasks.filter(imported | agreed)
    return News(labels.count(), tasks.count())


def unchanged_since(project: Project) -> int | None:
    """Returns the newest version if nothing could be learnt now that it has not learnt."""
    newest = project.reward_models.select_related("run").defer("manifest").order_by("-version").first()
    return newest.version if newest and not news_since(newest.run, project).total else None


# Material of the next run -----------------------------------------------------------------------------------


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
