"""Counters, states and labels of tasks, brought in line with their assignments and annotations.

Called in the transaction of whatever changed them. What people have decided stays: rejected annotations and excluded
annotators do not count, a reviewer's labels are not touched, retired and quarantined tasks keep their state.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from annotator.consensus.rules import (
    Outcome,
    Rated,
    Rules,
    differ_on_safety,
    outcome,
    preference_alone,
    spread,
    wanted,
)
from annotator.models import Consensus, Label, Project, Task
from annotator.statements import Statement


@dataclass
class Standing:
    """What has come for one task: its slots taken, those of them submitted, and all annotations that count."""

    held: int = 0
    done: int = 0
    rated: list[Rated] = field(default_factory=list)

    def annotators(self) -> int:
        """Those who rated; where nobody did, those who preferred."""
        return sum(1 for each in self.rated if each.ratings) or len(self.rated)


def settle(tasks: Sequence[Task], *, project: Project, now: datetime) -> None:
    """Recomputes the tasks from their assignments and annotations. The caller holds the tasks' row locks."""
    rules = Rules.of(project)
    found = standings([task.pk for task in tasks])
    outcomes = {}
    for task in tasks:
        standing = found[task.pk]
        _count(task, standing, rules)
        result = _outcome(task, standing, rules)
        if result:
            outcomes[task] = result
        _ask_for_review(task, standing, result, rules)
    _write_tasks(tasks, outcomes)
    _write_labels(outcomes, {task: found[task.pk].annotators() for task in outcomes}, now)


def _count(task: Task, standing: Standing, rules: Rules) -> None:
    """Slots and state. A gold task has room for everybody; one that a reviewer has settled wants nobody else."""
    task.done = standing.done
    if task.state != Task.State.GOLD:
        more = 0 if task.adjudicated else wanted(standing.rated, standing.done, rules)
        task.slots_wanted = max(standing.done, more)
    task.open_slots = max(task.slots_wanted - standing.held, 0)
    if task.state in (Task.State.OPEN, Task.State.COMPLETE):
        task.state = Task.State.COMPLETE if standing.done >= task.slots_wanted else Task.State.OPEN


def _outcome(task: Task, standing: Standing, rules: Rules) -> Outcome | None:
    if task.state == Task.State.GOLD or not standing.rated:
        return None
    if standing.done >= task.slots_wanted:
        return outcome(standing.rated, rules)
    preferred = any(each.preference is not None for each in standing.rated)
    return preference_alone(standing.rated, rules) if preferred else None


def _ask_for_review(task: Task, standing: Standing, result: Outcome | None, rules: Rules) -> None:
    rated = [each for each in standing.rated if each.ratings]
    task.review_spread = spread(rated, rules.attribute) or 0
    task.review_because = ""
    if task.state == Task.State.QUARANTINED:
        task.review_because = Task.Review.QUARANTINE
    elif task.state == Task.State.COMPLETE and not task.adjudicated:
        if result and result.dropped_because:
            task.review_because = Task.Review.DROPPED
        elif differ_on_safety(rated):
            task.review_because = Task.Review.SAFETY


# Reading ---------------------------------------------------------------------------------------------------

# One statement for all, in the order of submission: this is read at every submission.
_STANDINGS = Statement("""
SELECT s.task_id, s.id, s.slot, s.state, a.id, a.preference, r.response_id, r.scores, r.safe
FROM annotator_assignment s
LEFT JOIN annotator_annotation a ON a.assignment_id = s.id AND a.is_current AND s.counts
LEFT JOIN annotator_rating r ON r.annotation_id = a.id
WHERE s.task_id = ANY(%(tasks)s) AND (s.slot IS NOT NULL OR a.id IS NOT NULL)
ORDER BY s.task_id, a.submitted_at, a.id, s.id
""")


def standings(task_ids: Sequence[int]) -> dict[int, Standing]:
    """Of each task, annotations in the order of submission."""
    found: dict[int, Standing] = defaultdict(Standing)
    last = 0
    rows = _STANDINGS.rows(tasks=list(task_ids))
    for task, assignment, slot, state, annotation, preference, response, scores, safe in rows:
        standing = found[task]
        if assignment != last:
            last = assignment
            standing.held += slot is not None
            standing.done += slot is not None and state == "submitted"
            if annotation:
                standing.rated.append(Rated(annotation, {}, preference, {}))
        if response:
            _add(standing.rated[-1], response, scores, safe)
    return found


def _add(rated: Rated, response: int, scores: Any, safe: bool | None) -> None:
    rated.ratings[response] = json.loads(scores) if isinstance(scores, str) else scores  # type: ignore[index]
    if safe is not None:
        rated.safe[response] = safe  # type: ignore[index]


# Writing ---------------------------------------------------------------------------------------------------

_WRITE_TASKS = Statement("""
WITH news AS (
    SELECT * FROM jsonb_to_recordset(%(tasks)s) AS x (
        id bigint, state text, slots_wanted int, open_slots int, done int, review_because text, review_spread int
    )
), changed AS (
    UPDATE annotator_task t SET
        state = n.state, slots_wanted = n.slots_wanted, open_slots = n.open_slots, done = n.done,
        review_because = n.review_because, review_spread = n.review_spread
    FROM news n WHERE n.id = t.id
), stale AS (
    INSERT INTO annotator_staleagreement (project_id, task_id)
    SELECT t.project_id, t.id FROM annotator_task t JOIN news n ON n.id = t.id
), unsettled AS (
    DELETE FROM annotator_consensus WHERE task_id IN (SELECT id FROM news) AND task_id <> ALL(%(settled)s)
)
DELETE FROM annotator_label l USING annotator_response r
WHERE r.id = l.response_id AND r.task_id IN (SELECT id FROM news) AND l.source = 'consensus'
    AND l.response_id <> ALL(%(labelled)s)
""")
_WRITTEN = ("id", "state", "slots_wanted", "open_slots", "done", "review_because", "review_spread")


def _write_tasks(tasks: Sequence[Task], outcomes: Mapping[Task, Outcome]) -> None:
    """Writes the tasks, takes back labels that have lost their ground, and notes that agreement has changed."""
    rows = [{name: getattr(task, name) for name in _WRITTEN} for task in tasks]
    labelled = [response for each in outcomes.values() for response in each.means]
    settled = [task.pk for task in outcomes]
    _WRITE_TASKS.run(tasks=json.dumps(rows), settled=settled, labelled=labelled)


def _write_labels(outcomes: Mapping[Task, Outcome], annotators: Mapping[Task, int], now: datetime) -> None:
    if not outcomes:
        return
    Consensus.objects.bulk_create(
        [
            Consensus(
                task=task,
                kept=list(found.kept),
                annotators=annotators[task],
                spread=found.spread,
                spread_of_all=found.spread_of_all,
                preference=found.preference,
                dropped_because=found.dropped_because,
                computed_at=now,
            )
            for task, found in outcomes.items()
        ],
        update_conflicts=True,
        unique_fields=["task"],
        update_fields=["kept", "annotators", "spread", "spread_of_all", "preference", "dropped_because", "computed_at"],
    )
    means = {response: each for found in outcomes.values() for response, each in found.means.items()}
    scores = {response: each for found in outcomes.values() for response, each in found.labels.items()}
    present = dict(
        Label.objects.filter(source=Label.Source.CONSENSUS, response__in=means).values_list("response", "means")
    )
    # A label that stays what it was keeps its time: it is no news to retraining, nor to `since` exports.
    Label.objects.bulk_create(
        [
            Label(
                response_id=response,
                source=Label.Source.CONSENSUS,
                scores=scores[response],
                means=means[response],
                made_at=now,
            )
            for response in means
            if present.get(response) != means[response]
        ],
        update_conflicts=True,
        unique_fields=["response", "source"],
        update_fields=["scores", "means", "made_at"],
    )
