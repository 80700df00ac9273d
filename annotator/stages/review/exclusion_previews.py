"""What an exclusion or a readmission would change, counted before anybody decides. Nothing is locked or written."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from annotator.infrastructure.db.statements import Statement
from annotator.models import Annotation, Assignment, Consensus, Label, Project, Tally, Task, User
from annotator.stages.consensus import ConsensusOutcome, Rules
from annotator.stages.consensus.settlement import LabelValues, TaskRatings, agreed_values, ratings_by_task
from annotator.stages.review.exclusions import counting, to_return

MOST_LOOKED_AT = 300
"""Tasks whose outcome is computed while somebody waits for the page."""
Means = dict[int, LabelValues]
"""By response, then attribute."""


@dataclass(frozen=True)
class ExclusionPreview:
    """Annotations and tasks touched; tasks that have no label any more, or are open again; labels that change.

    Somebody's many annotations are counted as their tally says, and what becomes of the tasks is estimated from every
    n-th.
    """

    annotations: int = 0
    tasks: int = 0
    tasks_losing_labels: int = 0
    tasks_reopened: int = 0
    labels_changed: int = 0
    estimated: bool = False


_EVERY_NTH = Statement(
    """
    SELECT id FROM (
        SELECT id, row_number() OVER (ORDER BY id) AS place FROM annotator_assignment WHERE annotator_id = %(annotator)s
    ) ordered WHERE place %% %(step)s = 0
    """,
    prepared=False,
)


def exclusion_preview(project: Project, annotator: User) -> ExclusionPreview:
    """What `exclude` would do now."""
    done = sum(Tally.objects.filter(project=project, annotator=annotator).values_list("done", flat=True))
    if done <= MOST_LOOKED_AT:
        chosen = list(_submitted(counting(project, annotator)))
        return ExclusionPreview(
            annotations=len(chosen), tasks=len(chosen), estimated=False, **_changes(project, chosen)
        )
    # A part of the work in all projects, of which only this one's is looked at: it is the same part of each.
    step = -(-done // MOST_LOOKED_AT)
    part = [pk for (pk,) in _EVERY_NTH.rows(annotator=annotator.pk, step=step)]
    looked_at = Assignment.objects.filter(pk__in=part, task__project=project)
    rated = _submitted(looked_at).count()
    chosen = list(_submitted(looked_at.filter(counts=True)))
    share = rated / done if rated else 1
    scaled = {name: round(number / share) for name, number in _changes(project, chosen).items()}
    annotations = round(len(chosen) / share)
    return ExclusionPreview(annotations=annotations, tasks=annotations, estimated=True, **scaled)


def _submitted(assignments: QuerySet[Assignment]) -> QuerySet[Assignment]:
    return assignments.filter(state=Assignment.State.SUBMITTED).order_by("task").only("task", "slot")


def readmission_preview(project: Project, annotator: User) -> ExclusionPreview:
    """How much `readmit` would bring back."""
    returning = to_return(project, annotator).filter(state=Assignment.State.SUBMITTED).count()
    return ExclusionPreview(annotations=returning, tasks=returning)


def _changes(project: Project, theirs: Sequence[Assignment]) -> Counter[str]:
    """Counts how many of the tasks lose their label or reopen, and how many labels change."""
    rules, changes = Rules.of(project), Counter[str]()
    slots = {assignment.task_id: assignment.slot for assignment in theirs}
    annotations = dict(Annotation.objects.current().filter(assignment__in=theirs).values_list("assignment__task", "pk"))
    labels, standing = _Labels.of(list(slots)), ratings_by_task(list(slots))
    tasks = Task.objects.filter(pk__in=slots, state__in=[Task.State.OPEN, Task.State.COMPLETE])
    for task in tasks.only("state", "adjudicated"):
        rest = _without(standing[task.pk], annotations[task.pk], had_slot=slots[task.pk] is not None)
        complete = rest.done >= rest.slots_wanted(rules, adjudicated=task.adjudicated)
        before, after = labels.in_force(task.pk), labels.after(task.pk, rest.outcome(rules, complete=complete))
        changes["tasks_reopened"] += task.state == Task.State.COMPLETE and not complete
        changes["tasks_losing_labels"] += bool(before) and not after
        changes["labels_changed"] += sum(after.get(response, means) != means for response, means in before.items())
    return changes


def _without(standing: TaskRatings, annotation: int, *, had_slot: bool) -> TaskRatings:
    rated, compared = (
        [rating for rating in ratings if rating.annotation != annotation]
        for ratings in (standing.rated, standing.compared)
    )
    return TaskRatings(standing.held - had_slot, standing.done - had_slot, rated, compared, standing.cuts)


@dataclass(frozen=True)
class _Labels:
    """The stored means of some tasks by (task, source), then response, and which tasks are dropped."""

    means: Mapping[tuple[int, str], Means]
    dropped: Collection[int]

    @classmethod
    def of(cls, tasks: Sequence[int]) -> "_Labels":
        means: dict[tuple[int, str], Means] = defaultdict(dict)
        rows = Label.objects.filter(response__task__in=tasks)
        columns = ("response__task", "source", "response", "means", "segment_means")
        for task, source, response, *values in rows.values_list(*columns):
            means[task, source][response] = (values[0], values[1])
        dropped = Consensus.objects.filter(task__in=tasks).exclude(drop_reason="")
        return cls(means, set(dropped.values_list("task", flat=True)))

    def in_force(self, task: int) -> Means:
        """The labels in force, by the same rule as Label.objects.in_force()."""
        agreed = self.means.get((task, Label.Source.CONSENSUS), {})
        return self._with_reviewers(task, None if task in self.dropped else agreed)

    def after(self, task: int, result: ConsensusOutcome | None) -> Means:
        """What would be in force if this were the outcome."""
        if result is None:
            return self._with_reviewers(task, {})
        return self._with_reviewers(task, None if result.drop_reason else agreed_values(result))

    def _with_reviewers(self, task: int, agreed: Means | None) -> Means:
        """None: the task is dropped, and so are its imported labels."""
        imported = self.means.get((task, Label.Source.IMPORTED), {})
        others = {} if agreed is None else imported | agreed
        return others | self.means.get((task, Label.Source.ADJUDICATED), {})
