"""Counters, states and labels of tasks, brought in line with their assignments and annotations.

Called in the transaction of whatever changed them. What people have decided stays: rejected annotations and excluded
annotators do not count, a reviewer's labels are not touched, retired and quarantined tasks keep their state.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from annotator.infrastructure.db.statements import Statement
from annotator.models import Consensus, Label, Project, Response, Task
from annotator.stages import segmenting
from annotator.stages.consensus.rules import (
    ConsensusOutcome,
    Rated,
    Rules,
    differ_on_safety,
    outcome,
    preference_alone,
    spread,
    wanted,
)

Cut = Sequence[segmenting.Range]
LabelValues = tuple[Any, Any]
"""The means of a label, and those of its segments, as they are stored."""
OwnCuts = dict[tuple[int, int], dict[int, Cut]]
"""The cuts of annotators, by task and response, then by annotation."""


@dataclass
class TaskRatings:
    """The work on one task: slots taken, slots submitted, and every annotation that counts.

    `compared` holds those of `rated` that were imported as bare preferences: they count, and take no slot. `cuts` holds
    the finest common cut of those responses that annotators have cut in other ways. `has_gap` says that a rater has
    found the guidelines silent, and nobody has answered yet.
    """

    held: int = 0
    done: int = 0
    rated: list[Rated] = field(default_factory=list)
    compared: list[Rated] = field(default_factory=list)
    cuts: dict[int, Cut] = field(default_factory=dict)
    has_consensus: bool = False
    was_dropped: bool = False
    has_gap: bool = False

    def annotators(self) -> int:
        """The number of people who rated; where nobody did, of those who stated a preference."""
        return sum(1 for rating in self.rated if rating.ratings) or len(self.rated)

    def slots_wanted(self, rules: Rules, *, adjudicated: bool) -> int:
        """How many annotators the task needs; one that a reviewer has settled needs no more than it has."""
        return max(self.done, 0 if adjudicated else wanted(self.rated, self.done, rules))

    def outcome(self, rules: Rules, *, complete: bool) -> ConsensusOutcome | None:
        """The consensus as of now, or None where there is none yet.

        An open task gets no label from those who happened to be first. Preferences that were imported are settled:
        nobody else is going to state one.
        """
        if complete:
            return outcome(self.rated, rules) if self.rated else None
        return preference_alone(self.compared, rules) if self.compared else None


def settle(tasks: Sequence[Task], *, project: Project, now: datetime) -> None:
    """Recomputes the tasks from their assignments and annotations. The caller holds the tasks' row locks."""
    standing_of, outcomes = computed(tasks, rules=Rules.of(project))
    _write_tasks(tasks)
    # What is no longer settled.
    if unsettled := [task for task in tasks if task not in outcomes and standing_of[task.pk].has_consensus]:
        Consensus.objects.filter(task__in=unsettled).delete()
        Label.objects.filter(response__task__in=unsettled, source=Label.Source.CONSENSUS).delete()
    _write_labels(outcomes, standing_of, project=project, now=now)


def computed(
    tasks: Sequence[Task], *, rules: Rules
) -> tuple[Mapping[int, TaskRatings], Mapping[Task, ConsensusOutcome]]:
    """Computes counters and states into the instances, which it does not save. Returns their ratings and outcomes."""
    standing_of = ratings_by_task([task.pk for task in tasks])
    outcomes = {}
    for task in tasks:
        standing = standing_of[task.pk]
        task.done = standing.done
        # A gold task has room for everybody; one that a reviewer has settled wants nobody else.
        if task.state != Task.State.GOLD:
            task.slots_wanted = standing.slots_wanted(rules, adjudicated=task.adjudicated)
        task.open_slots = max(task.slots_wanted - standing.held, 0)
        if task.state in (Task.State.OPEN, Task.State.COMPLETE):
            task.state = Task.State.COMPLETE if standing.done >= task.slots_wanted else Task.State.OPEN
        is_complete = standing.done >= task.slots_wanted
        result = None if task.state == Task.State.GOLD else standing.outcome(rules, complete=is_complete)
        if result:
            outcomes[task] = result
        _ask_for_review(task, standing, result, rules)
    return standing_of, outcomes


def _ask_for_review(task: Task, standing: TaskRatings, result: ConsensusOutcome | None, rules: Rules) -> None:
    rated = [rating for rating in standing.rated if rating.ratings]
    task.review_spread = spread(rated, rules.attribute, rules.share) or 0
    task.review_reason = ""
    if task.state == Task.State.QUARANTINED:
        task.review_reason = Task.Review.QUARANTINE
        return
    if task.state == Task.State.COMPLETE and not task.adjudicated:
        if result and result.drop_reason:
            task.review_reason = Task.Review.DROPPED
        elif differ_on_safety(rated):
            task.review_reason = Task.Review.SAFETY
    if standing.has_gap and not task.review_reason and task.state in (Task.State.OPEN, Task.State.COMPLETE):
        task.review_reason = Task.Review.SILENT


# Reading ---------------------------------------------------------------------------------------------------

# In the order of submission. What was submitted at one moment, as ratings of a file that does not say when, is ordered
# by what it says: the order of the file's rows decides nothing. Read at every submission, hence a plan for one task.
_STANDINGS = """
SELECT s.task_id, s.id, s.slot, s.state, a.id, a.preference, a.ranking, a.aspects, a.rubric_version,
    r.response_id, r.scores, r.safe, r.segment_scores, r.cut,
    (SELECT c.drop_reason FROM annotator_consensus c WHERE c.task_id = s.task_id),
    EXISTS (SELECT FROM annotator_guidelinegap g WHERE g.task_id = s.task_id AND g.closed_at IS NULL)
FROM annotator_assignment s
LEFT JOIN annotator_annotation a ON a.assignment_id = s.id AND a.is_current AND s.counts
LEFT JOIN annotator_rating r ON r.annotation_id = a.id
WHERE s.task_id {chosen}
ORDER BY s.task_id, a.submitted_at, a.content_hash COLLATE "C", a.id, s.id
"""
_STANDING_OF_ONE = Statement(_STANDINGS.format(chosen="= %(task)s"))
_STANDINGS_OF_MANY = Statement(_STANDINGS.format(chosen="= ANY(%(tasks)s)"), prepared=False)


def ratings_by_task(task_ids: Sequence[int]) -> dict[int, TaskRatings]:
    """The annotations of each task, in the order of submission."""
    by_task: dict[int, TaskRatings] = defaultdict(TaskRatings)
    last = 0
    one = len(task_ids) == 1
    rows = _STANDING_OF_ONE.rows(task=task_ids[0]) if one else _STANDINGS_OF_MANY.rows(tasks=list(task_ids))
    own_cuts: OwnCuts = defaultdict(dict)
    for task, assignment, slot, state, annotation, *answers, dropped, has_gap in rows:
        preference, ranking, aspects, version, response, scores, safe, segments, cut = answers
        standing = by_task[task]
        standing.has_consensus, standing.was_dropped = dropped is not None, bool(dropped)
        standing.has_gap = has_gap
        if assignment != last:
            last = assignment
            standing.held += slot is not None
            standing.done += slot is not None and state == "submitted"
            if annotation:
                rated = Rated(annotation, {}, preference, {}, _parsed(ranking), tuple(aspects), version)
                standing.rated.append(rated)
                # What counts without a slot is an imported preference: the database refuses anything else.
                standing.compared += standing.rated[-1:] if slot is None else []
        if response:
            standing.rated[-1].ratings[response] = _parsed(scores)
            if safe is not None:
                standing.rated[-1].safe[response] = safe
        if segments:
            for index, row in enumerate(_parsed(segments)):
                given = zip(standing.rated[-1].aspects, row, strict=True)
                standing.rated[-1].ratings[response, index] = {key: score for key, score in given if score is not None}
        if cut:
            own_cuts[task, response][annotation] = segmenting.ranges(_parsed(cut))
    if own_cuts:
        _share_cuts(by_task, own_cuts)
    return by_task


def _share_cuts(by_task: Mapping[int, TaskRatings], own_cuts: OwnCuts) -> None:
    """Carries the scores of responses that were cut in several ways onto the finest common cut."""
    numbers = {response for _, response in own_cuts}
    stored = dict(Response.objects.filter(pk__in=numbers).values_list("pk", "segments"))
    for (task, response), by_annotation in own_cuts.items():
        standing, common = by_task[task], segmenting.ranges(stored[response])
        cuts = {
            rated.annotation: by_annotation.get(rated.annotation, common)
            for rated in standing.rated
            if (response, 0) in rated.ratings
        }
        finest = standing.cuts[response] = segmenting.finest_common_cut([common, *cuts.values()])
        for rated in standing.rated:
            if cut := cuts.get(rated.annotation):
                scores = [rated.ratings.pop((response, index)) for index in range(len(cut))]
                for index, values in enumerate(segmenting.carried(scores, cut, onto=finest)):
                    rated.ratings[response, index] = values


def _parsed(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


# Writing ---------------------------------------------------------------------------------------------------

_WRITE_TASK = Statement("""
WITH changed AS (
    UPDATE annotator_task SET
        state = %(state)s, slots_wanted = %(slots_wanted)s, open_slots = %(open_slots)s, done = %(done)s,
        review_reason = %(review_reason)s, review_spread = %(review_spread)s
    WHERE id = %(id)s RETURNING project_id, id
)
INSERT INTO annotator_staleagreement (project_id, task_id) SELECT project_id, id FROM changed ON CONFLICT DO NOTHING
""")
_WRITE_TASKS = Statement(
    """
    WITH changed AS (
        UPDATE annotator_task t SET
            state = x.state, slots_wanted = x.slots_wanted, open_slots = x.open_slots, done = x.done,
            review_reason = x.review_reason, review_spread = x.review_spread
        FROM jsonb_to_recordset(%(rows)s) AS x (
            id bigint, state text, slots_wanted smallint, open_slots smallint, done smallint, review_reason text,
            review_spread smallint
        )
        WHERE t.id = x.id RETURNING t.project_id, t.id
    )
    INSERT INTO annotator_staleagreement (project_id, task_id) SELECT project_id, id FROM changed ON CONFLICT DO NOTHING
    """,
    prepared=False,
)


def _write_tasks(tasks: Sequence[Task]) -> None:
    """Writes counters and states, and notes that the agreement of these tasks has to be counted again."""
    rows = [
        {
            "id": task.pk,
            "state": task.state,
            "slots_wanted": task.slots_wanted,
            "open_slots": task.open_slots,
            "done": task.done,
            "review_reason": task.review_reason,
            "review_spread": task.review_spread,
        }
        for task in tasks
    ]
    if len(rows) == 1:
        _WRITE_TASK.run(**rows[0])
    else:
        _WRITE_TASKS.run(rows=json.dumps(rows))


_WRITE_CONSENSUS = Statement("""
INSERT INTO annotator_consensus
    (project_id, task_id, kept, annotators, spread, spread_of_all, preference, pairs, drop_reason, computed_at)
SELECT %(project)s, task, kept, annotators, spread, spread_of_all, preference, pairs, drop_reason, %(now)s
FROM jsonb_to_recordset(%(rows)s) AS x (
    task bigint, kept bigint[], annotators smallint, spread float8, spread_of_all float8, preference smallint,
    pairs jsonb, drop_reason text
)
ON CONFLICT (task_id) DO UPDATE SET kept = excluded.kept, annotators = excluded.annotators, spread = excluded.spread,
    spread_of_all = excluded.spread_of_all, preference = excluded.preference, pairs = excluded.pairs,
    drop_reason = excluded.drop_reason, computed_at = excluded.computed_at
""")
# A label that stays what it was keeps its time: it is no news to retraining, nor to `since` exports.
_WRITE_LABELS = Statement("""
INSERT INTO annotator_label AS l
    (project_id, response_id, source, scores, means, aspects, segment_scores, segment_means, cut, rubric_version,
    made_at)
SELECT %(project)s, response, 'consensus', scores, means, coalesce(aspects, '{}'), segment_scores, segment_means, cut,
    rubric_version, %(now)s
FROM jsonb_to_recordset(%(rows)s) AS x (
    response bigint, scores jsonb, means jsonb, aspects text[], segment_scores jsonb, segment_means jsonb, cut jsonb,
    rubric_version smallint
)
ON CONFLICT (response_id, source) DO UPDATE SET scores = excluded.scores, means = excluded.means,
    aspects = excluded.aspects, segment_scores = excluded.segment_scores, segment_means = excluded.segment_means,
    cut = excluded.cut, rubric_version = excluded.rubric_version, made_at = excluded.made_at
WHERE (l.means, l.aspects, l.segment_means, l.cut, l.rubric_version)
    IS DISTINCT FROM (excluded.means, excluded.aspects, excluded.segment_means, excluded.cut, excluded.rubric_version)
""")


def _write_labels(
    outcomes: Mapping[Task, ConsensusOutcome],
    standing_of: Mapping[int, TaskRatings],
    *,
    project: Project,
    now: datetime,
) -> None:
    if not outcomes:
        return
    rows = [
        {
            "task": task.pk,
            "kept": outcome.kept,
            "annotators": standing_of[task.pk].annotators(),
            "spread": outcome.spread,
            "spread_of_all": outcome.spread_of_all,
            "preference": outcome.preference,
            "pairs": outcome.pairs,
            "drop_reason": outcome.drop_reason,
        }
        for task, outcome in outcomes.items()
    ]
    _WRITE_CONSENSUS.run(rows=json.dumps(rows), project=project.pk, now=now)
    labels = [row for task, outcome in outcomes.items() for row in label_rows(outcome, standing_of[task.pk].cuts)]
    _WRITE_LABELS.run(rows=json.dumps(labels), project=project.pk, now=now)
    kept = (task.pk for task, outcome in outcomes.items() if not outcome.drop_reason)
    if kept_again := [task for task in kept if standing_of[task].was_dropped]:
        put_in_force(kept_again, now=now)
    if earlier := [task for task in outcomes if standing_of[task.pk].has_consensus]:
        agreed = Label.objects.filter(response__task__in=earlier, source=Label.Source.CONSENSUS)
        agreed.exclude(response__in=[label["response"] for label in labels]).delete()


def label_rows(outcome: ConsensusOutcome, cuts: Mapping[int, Cut]) -> Iterator[dict[str, Any]]:
    """Yields the label of each response, with those of its segments in their order."""
    segments: dict[int, list[int]] = defaultdict(list)
    for key in outcome.means:
        if isinstance(key, tuple):
            segments[key[0]].append(key[1])
    for response, means in outcome.means.items():
        if isinstance(response, tuple):
            continue
        row = {"response": response, "scores": outcome.labels[response], "means": means}
        row["rubric_version"] = outcome.version
        if outcome.aspects and (indexes := segments.get(response)):
            for name, values in (("segment_means", outcome.means), ("segment_scores", outcome.labels)):
                row[name] = [[values[response, i].get(aspect) for aspect in outcome.aspects] for i in sorted(indexes)]
            row |= {"aspects": outcome.aspects, "cut": cuts.get(response)}
        yield row


def agreed_values(outcome: ConsensusOutcome) -> dict[int, LabelValues]:
    """Returns what the outcome's labels would say of each response: their means, and those of the segments."""
    return {row["response"]: (row["means"], row.get("segment_means")) for row in label_rows(outcome, {})}


def put_in_force(tasks: Sequence[int], *, now: datetime) -> None:
    """Dates existing labels to `now`, so that retraining and `since` exports notice that they apply again."""
    Label.objects.filter(response__task__in=tasks).update(made_at=now)
