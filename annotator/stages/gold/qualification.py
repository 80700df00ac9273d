"""Runs the test before the first task: practice with the experts' explanations, then a scored run, in limited tries."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import JSONField, Value
from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.refusals import Refusal
from annotator.models import Membership, QualificationAnswer, QualificationRun, Task
from annotator.stages.annotation.drafts import check_draft
from annotator.stages.assignment import Entitlement
from annotator.stages.gold.gold_tasks import EXPERTS, beside_experts
from annotator.statistics.measures import AgainstExperts, against_experts

Kind = QualificationRun.Kind


@dataclass(frozen=True)
class TestProgress:
    """A member's progress with practice and test. `tasks` counts the gold tasks of each kind.

    `finished` holds the finished tests. `unfinished` maps a kind to the run that is under way.
    """

    tasks: Mapping[str, int]
    tries_left: int
    finished: list[QualificationRun]
    unfinished: Mapping[str, QualificationRun]

    @property
    def may_take_the_test(self) -> bool:
        return Kind.TEST in self.unfinished or self.tries_left > 0


def standing(member: Membership) -> TestProgress:
    """Returns which runs the project offers, and which ones this member has taken."""
    tasks = Task.objects.filter(project=member.project_id)
    runs = list(member.qualification_runs.order_by("started_at", "pk"))
    taken = sum(1 for run in runs if run.kind == Kind.TEST)
    return TestProgress(
        tasks={kind: tasks.gold_for(kind).count() for kind in Kind.values},
        tries_left=max(member.project.qualification_tries + member.extra_tries - taken, 0),
        finished=[run for run in runs if run.finished_at and run.kind == Kind.TEST],
        unfinished={run.kind: run for run in runs if not run.finished_at},
    )


@transaction.atomic
def begin(member: Membership, kind: str, *, now: datetime) -> QualificationRun:
    """Returns the run that is under way, or else begins a new one.

    Raises:
        Refusal: The member is excluded or paused, or the project is paused or archived.
        Refusal: The project has no gold tasks of this kind, or requires no test.
        Refusal: The test is passed already, or has no tries left. Practice is unlimited.
    """
    # Two requests at once would both count the same tries, and begin two runs.
    member = Membership.objects.select_for_update(of=("self",)).select_related("project").get(pk=member.pk)
    Entitlement.of_member(member).require_not_idle()
    reached = standing(member)
    if under_way := reached.unfinished.get(kind):
        return under_way
    if not reached.tasks[kind]:
        raise Refusal(_("There are no tasks for this yet. Ask the manager of the project."), code="nothing_to_take")
    if kind == Kind.TEST and not member.project.qualification_required:
        raise Refusal(_("This project requires no test. You can start rating."), code="nothing_to_take")
    if kind == Kind.TEST and member.qualified_at:
        raise Refusal(_("You have already passed the test."), code="no_tries_left")
    if kind == Kind.TEST and not reached.tries_left:
        raise Refusal(_("You have no tries left. Ask the manager of the project."), code="no_tries_left")
    number = member.qualification_runs.filter(kind=kind).count() + 1
    return QualificationRun.objects.create(member=member, kind=kind, number=number, started_at=now)


def next_task(run: QualificationRun) -> Task | None:
    """Returns the first gold task that this run has not answered, or None after the last one."""
    answered = QualificationAnswer.objects.filter(run=run).values("response__task")
    return Task.objects.filter(project=run.member.project_id).gold_for(run.kind).exclude(pk__in=answered).first()


def task_at_hand(run: QualificationRun) -> Task | None:
    """Returns the `next_task` of the run if its member may work now. Raises Refusal as `begin` does."""
    Entitlement.of_member(run.member).require_not_idle()
    return next_task(run)


@transaction.atomic
def answer(
    run: QualificationRun,
    task: Task,
    scores: Mapping[int, Mapping[str, int]],
    *,
    segments: Mapping[int, Sequence[Mapping[str, int | None]]] | None = None,
    now: datetime,
) -> QualificationRun:
    """Stores the scores by response id, and closes the run after its last task. The first answer to a task counts.

    `segments` holds those of the responses' segments by aspect, where segments are rated.

    Raises:
        Refusal: The member is excluded or paused, or the project is paused or archived.
    """
    # The lock makes a second answer, such as a double click, wait and then find the first one.
    run = QualificationRun.objects.select_for_update(of=("self",)).select_related("member__project").get(pk=run.pk)
    Entitlement.of_member(run.member).require_not_idle()
    if run.finished_at or run.answers.filter(response__task=task).exists():
        return run
    aspects = [aspect.key for aspect in run.member.project.aspects()]
    rated = segments or {}
    QualificationAnswer.objects.bulk_create(
        QualificationAnswer(
            run=run,
            response_id=response,
            scores=dict(levels),
            aspects=aspects,
            segment_scores=[[one[aspect] for aspect in aspects] for one in rated[response]] if rated else None,
            answered_at=now,
        )
        for response, levels in scores.items()
    )
    run.draft = {}
    if not next_task(run):
        _finish(run, now)
    run.save(update_fields=["draft", "finished_at", "kappa", "passed"])
    return run


def save_draft(run: QualificationRun, form: Mapping[str, object], *, changed: Collection[str] = ()) -> None:
    """Stores the half-filled form of the current task, or the fields that `changed` names.

    Raises what `annotation.drafts.check_draft` raises.
    """
    if changed:
        form = run.draft | {name: value for name, value in form.items() if name in changed}
    check_draft(form)
    # An autosave that arrives after the last answer changes nothing.
    QualificationRun.objects.filter(pk=run.pk, finished_at__isnull=True).update(draft=dict(form))


def _finish(run: QualificationRun, now: datetime) -> None:
    run.finished_at = now
    if run.kind == Kind.PRACTICE:
        return
    outcome = result(run)
    run.kappa = outcome.mean
    # Kappa is undefined if the experts never vary; then only exactly their scores pass.
    run.passed = (
        outcome.identical if outcome.mean is None else outcome.mean >= run.member.project.qualification_threshold
    )
    # Conditional: a manager may have qualified the member meanwhile, and that time and its audit entry stay.
    unqualified = Membership.objects.filter(pk=run.member.pk, qualified_at__isnull=True)
    if run.passed and unqualified.update(qualified_at=now):
        subject = f"member {run.member.user.username}"
        audit.record("membership.qualified", subject, project=run.member.project, by="the test", kappa=run.kappa)


def result(run: QualificationRun) -> AgainstExperts:
    """Returns the agreement with the experts over the whole run."""
    rows = run.answers.filter(response__expert_rating__isnull=False)
    mine = ("scores", "aspects", "segment_scores", Value(None, JSONField()))
    return against_experts(list(beside_experts(rows.values_list(*mine, *EXPERTS))))
