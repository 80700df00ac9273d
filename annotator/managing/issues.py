"""Finds what is wrong in a project right now: what keeps people or workers from going on, and what waits for somebody.

One statement reads what the database knows; the heartbeats come from Redis, the room from the disks.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

import redis
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.background.heartbeats import QUEUES
from annotator.infrastructure.db.statements import Statement
from annotator.infrastructure.storage import disk_space
from annotator.managing.guidelines import blanks
from annotator.managing.settings_check import never_met
from annotator.models import Project

MANY = 1_000
"""Tasks that wait are counted up to one more than this."""
_log = logging.getLogger(__name__)
Lazy = str | Promise


@dataclass(frozen=True)
class Words:
    """What is wrong, with places for an issue's `params`; what to do; and the URL name of the page where it is done."""

    text: Lazy
    advice: Lazy
    page: str


class Problem(Enum):
    """What can be wrong."""

    ARCHIVED = Words(_("The project is archived."), _("It takes no work until it is brought back."), "project-settings")
    PAUSED = Words(_("The project is paused."), _("Nobody gets a task. Switch the pause off."), "project-settings")
    NO_REDIS = Words(
        _("Redis does not answer."),
        _("Background work cannot be handed out. Ask whoever runs the installation to start it."),
        "admin:index",
    )
    NO_LIGHT_WORKER = Words(
        _("No worker is running for the queue “%(queue)s”."),
        _("Agreement, exports of large projects, deletions and changes of the protocol wait for it."),
        "admin:index",
    )
    NO_TRAIN_WORKER = Words(
        _("No worker is running for the queue “%(queue)s”."),
        _("Nothing can be trained until one runs."),
        "admin:index",
    )
    NO_SCORE_WORKER = Words(
        _("No worker is running for the queue “%(queue)s”."),
        _("Responses get no scores until one runs."),
        "admin:index",
    )
    UNFIT_WORKER = Words("%(why)s", _("It looks again every few seconds, and goes on by itself."), "admin:index")
    LOW_DISK = Words(
        _("The disk is nearly full."),
        _("Imports, snapshots and training runs are refused until there is room."),
        "admin:index",
    )
    FAILURES = Words(
        _("Background work fails: %(work)s"),
        _("It will be retried automatically. See the light worker’s log for details."),
        "admin:index",
    )
    NO_TASKS = Words(_("There are no tasks."), _("Import some, so that people have something to rate."), "import-data")
    NO_ANNOTATORS = Words(_("There are no annotators."), _("Add people, or rate tasks yourself."), "people")
    ALL_PAUSED = Words(_("Every annotator is paused."), _("Nobody can rate until you let somebody go on."), "people")
    NOBODY_QUALIFIED = Words(
        _("No annotator has passed the test."),
        _("Ask them to take it, lower the threshold, or do without the test."),
        "project-settings",
    )
    TOO_FEW_ANNOTATORS = Words(
        _("Tasks can need up to %(most)s annotators; the project has %(number)s."),
        _("Tasks that need more people stay open. Add people, or let fewer rate each task."),
        "people",
    )
    NO_TEST = Words(
        _("Annotators must pass a test, and there are no gold tasks for it."),
        _("Import gold tasks for the test, or do without it."),
        "import-data",
    )
    NO_STREAM = Words(
        _("Gold tasks are to be mixed in, and there are none."),
        _("Import gold tasks for the stream, or set their share to 0."),
        "import-data",
    )
    NO_GUIDELINES = Words(
        _("There are no guidelines, or a part of them is still to be written."),
        _("Annotators do not know what you expect of them."),
        "edit-guidelines",
    )
    NEVER_MET = Words("%(why)s", _("Change the limit, or let another attribute decide."), "project-settings")
    WEBHOOK_ENDED = Words(
        _("A webhook has been made inactive, because its receiver fails or wants no more messages."),
        _("The system behind it no longer hears of this project. Its page says what was wrong."),
        "webhooks",
    )


NO_WORKER = {"light": Problem.NO_LIGHT_WORKER, "train": Problem.NO_TRAIN_WORKER, "score": Problem.NO_SCORE_WORKER}


@dataclass(frozen=True)
class Issue:
    """A problem of a project, and what it concerns."""

    problem: Problem
    params: Mapping[str, str | int] = field(default_factory=dict)

    def text(self) -> str:
        return str(self.problem.value.text) % self.params

    def advice(self) -> str:
        return str(self.problem.value.advice)


@dataclass(frozen=True)
class ProjectFacts:
    """What the database knows. `able` may claim tasks; `reviews` and `quarantined` stop at MANY + 1.

    `guidelines` says whether there are some, without what a template leaves to be written; `simulated`, whether the
    demo's simulated raters have rated.
    """

    tasks: bool
    annotators: int
    able: int
    unpaused: int
    at_work: int
    guidelines: bool
    test_gold: bool
    stream_gold: bool
    recounts: bool
    reviews: int
    quarantined: int
    ended_webhooks: bool
    simulated: bool
    failures: list[dict[str, str]]

    def waiting(self) -> int:
        return self.reviews + self.quarantined


_FACTS = Statement(
    """
SELECT
    EXISTS (SELECT FROM annotator_task t WHERE t.project_id = p.id AND t.state <> 'gold'),
    people.annotators, people.able, people.unpaused,
    (SELECT count(DISTINCT s.annotator_id) FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id
     WHERE s.state = 'leased' AND t.project_id = p.id),
    EXISTS (SELECT FROM annotator_guideline g WHERE g.project_id = p.id
        AND g.version = (SELECT max(version) FROM annotator_guideline WHERE project_id = p.id)
        AND NOT EXISTS (SELECT FROM unnest(%(blanks)s::text[]) AS b (blank) WHERE position(b.blank IN g.text) > 0)),
    EXISTS (SELECT FROM annotator_task t JOIN annotator_gold g ON g.task_id = t.id
            WHERE t.project_id = p.id AND t.state = 'gold' AND g.use = 'test'),
    EXISTS (SELECT FROM annotator_task t JOIN annotator_gold g ON g.task_id = t.id
            WHERE t.project_id = p.id AND t.state = 'gold' AND g.use = 'stream'),
    EXISTS (SELECT FROM annotator_recountwanted r WHERE r.project_id = p.id),
    (SELECT count(*) FROM (SELECT FROM annotator_task t WHERE t.project_id = p.id AND t.review_reason <> ''
        AND t.review_reason <> 'quarantine' LIMIT %(many)s) waiting),
    (SELECT count(*) FROM (SELECT FROM annotator_task t WHERE t.project_id = p.id AND t.state = 'quarantined'
        LIMIT %(many)s) waiting),
    EXISTS (SELECT FROM annotator_webhook w WHERE w.project_id = p.id AND w.end_reason <> ''),
    EXISTS (SELECT FROM annotator_tally y JOIN annotator_user u ON u.id = y.annotator_id
            WHERE y.project_id = p.id AND y.done > 0 AND u.made_by_demo AND NOT u.is_active),
    coalesce((SELECT jsonb_agg(jsonb_build_object('task', f.task, 'error', f.error) ORDER BY f.last_at DESC)
     FROM annotator_backgroundfailure f WHERE f.project_id = p.id), '[]')
FROM annotator_project p, LATERAL (
    SELECT count(*) AS annotators,
        count(*) FILTER (WHERE m.paused_at IS NULL) AS unpaused,
        count(*) FILTER (WHERE m.paused_at IS NULL AND (NOT p.qualification_required OR m.qualified_at IS NOT NULL))
            AS able
    FROM annotator_membership m JOIN annotator_user u ON u.id = m.user_id
    WHERE m.project_id = p.id AND m.role = 'annotator' AND u.is_active
) people
WHERE p.id = %(project)s
""",
    prepared=False,
)


def facts(project: Project) -> ProjectFacts:
    """Reads what the database knows about who can work, and what waits for whom."""
    row = list(_FACTS.row(project=project.pk, many=MANY + 1, blanks=blanks()) or ())
    row[-1] = json.loads(row[-1])
    return ProjectFacts(*row)


def issues(project: Project, known: ProjectFacts) -> Iterator[Issue]:
    """Yields what is wrong, what stops everybody first."""
    if project.archived_at:
        yield Issue(Problem.ARCHIVED)
    if project.paused:
        yield Issue(Problem.PAUSED)
    yield from _of_the_installation()
    for failure in known.failures:
        yield Issue(Problem.FAILURES, {"work": f"{failure['task']}: {failure['error']}"})
    if not known.tasks:
        yield Issue(Problem.NO_TASKS)
    yield from _of_people(project, known)
    if not known.guidelines:
        yield Issue(Problem.NO_GUIDELINES)
    if project.gold_every and not known.stream_gold:
        yield Issue(Problem.NO_STREAM)
    for sentence in never_met(project):
        yield Issue(Problem.NEVER_MET, {"why": sentence})
    if known.ended_webhooks:
        yield Issue(Problem.WEBHOOK_ENDED)


def _of_the_installation() -> Iterator[Issue]:
    try:
        queues = heartbeats.listening()
    except redis.RedisError as down:
        _log.warning("the heartbeats of workers are not known: %s", down)
        yield Issue(Problem.NO_REDIS)
    else:
        for queue in QUEUES:
            if not queues[queue].alive and (unfit := queues[queue].unfit):
                yield Issue(Problem.UNFIT_WORKER, {"why": heartbeats.idle_in_words(queue, unfit[0])})
            elif not queues[queue].alive:
                yield Issue(NO_WORKER[queue], {"queue": queue})
    if disk_space.shortages():
        yield Issue(Problem.LOW_DISK)


def _of_people(project: Project, known: ProjectFacts) -> Iterator[Issue]:
    if not known.annotators:
        yield Issue(Problem.NO_ANNOTATORS)
    elif not known.unpaused:
        yield Issue(Problem.ALL_PAUSED)
    elif not known.able and known.test_gold:
        yield Issue(Problem.NOBODY_QUALIFIED)
    if 0 < known.unpaused < project.max_annotators:
        yield Issue(Problem.TOO_FEW_ANNOTATORS, {"most": project.max_annotators, "number": known.unpaused})
    if project.qualification_required and not known.test_gold:
        yield Issue(Problem.NO_TEST)
