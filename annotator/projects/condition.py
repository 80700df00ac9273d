"""Finds what is wrong in a project right now: what keeps people or workers from going on, and what waits for somebody.

One statement reads what the database knows; the heartbeats come from Redis, the room from the disks.
"""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import redis

from annotator.background import heartbeats
from annotator.background.heartbeats import QUEUES
from annotator.db.statements import Statement
from annotator.models import Project
from annotator.projects.guidelines import blanks
from annotator.projects.settings_check import never_met
from annotator.storage import disk_space

MANY = 1_000
"""Tasks that wait are counted up to one more than this."""
_log = logging.getLogger(__name__)


class Problem(StrEnum):
    """What can be wrong. Pages say it in words, with a link to where it is put right."""

    ARCHIVED = "archived"
    PAUSED = "paused"
    NO_REDIS = "no_redis"
    NO_WORKER = "no_worker"
    UNFIT_WORKER = "unfit_worker"
    LOW_DISK = "low_disk"
    FAILURES = "failures"
    NO_TASKS = "no_tasks"
    NO_ANNOTATORS = "no_annotators"
    ALL_PAUSED = "all_paused"
    NOBODY_QUALIFIED = "nobody_qualified"
    TOO_FEW_ANNOTATORS = "too_few_annotators"
    NO_TEST = "no_test"
    NO_STREAM = "no_stream"
    NO_GUIDELINES = "no_guidelines"
    NEVER_MET = "never_met"
    WEBHOOK_ENDED = "webhook_ended"


@dataclass(frozen=True)
class Found:
    """A problem; `detail` says what it concerns: a queue, an idle worker, failing work, the people needed, a limit."""

    problem: Problem
    detail: str = ""
    number: int = 0


@dataclass(frozen=True)
class Facts:
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


def facts(project: Project) -> Facts:
    """Reads what the database knows about who can work, and what waits for whom."""
    row = list(_FACTS.row(project=project.pk, many=MANY + 1, blanks=blanks()) or ())
    row[-1] = json.loads(row[-1])
    return Facts(*row)


def problems(project: Project, known: Facts) -> Iterator[Found]:
    """Yields what is wrong, what stops everybody first."""
    if project.archived_at:
        yield Found(Problem.ARCHIVED)
    if project.paused:
        yield Found(Problem.PAUSED)
    yield from _of_the_installation()
    for failure in known.failures:
        yield Found(Problem.FAILURES, f"{failure['task']}: {failure['error']}")
    if not known.tasks:
        yield Found(Problem.NO_TASKS)
    yield from _of_people(project, known)
    if not known.guidelines:
        yield Found(Problem.NO_GUIDELINES)
    if project.gold_every and not known.stream_gold:
        yield Found(Problem.NO_STREAM)
    for sentence in never_met(project):
        yield Found(Problem.NEVER_MET, sentence)
    if known.ended_webhooks:
        yield Found(Problem.WEBHOOK_ENDED)


def _of_the_installation() -> Iterator[Found]:
    try:
        queues = heartbeats.listening()
    except redis.RedisError as down:
        _log.warning("the heartbeats of workers are not known: %s", down)
        yield Found(Problem.NO_REDIS)
    else:
        for queue in QUEUES:
            if not queues[queue].alive and (unfit := queues[queue].unfit):
                yield Found(Problem.UNFIT_WORKER, heartbeats.idle_in_words(queue, unfit[0]))
            elif not queues[queue].alive:
                yield Found(Problem.NO_WORKER, queue)
    if disk_space.shortages():
        yield Found(Problem.LOW_DISK)


def _of_people(project: Project, known: Facts) -> Iterator[Found]:
    if not known.annotators:
        yield Found(Problem.NO_ANNOTATORS)
    elif not known.unpaused:
        yield Found(Problem.ALL_PAUSED, number=known.annotators)
    elif not known.able and known.test_gold:
        yield Found(Problem.NOBODY_QUALIFIED)
    if 0 < known.unpaused < project.max_annotators:
        yield Found(Problem.TOO_FEW_ANNOTATORS, str(project.max_annotators), known.unpaused)
    if project.qualification_required and not known.test_gold:
        yield Found(Problem.NO_TEST)
