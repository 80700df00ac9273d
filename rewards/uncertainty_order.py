"""Sorts untouched tasks into tenths by the champion's uncertainty, so that a queue can begin with the least certain.

Few rows are locked at once, as claims skip locked tasks. The row of the scoring pass says how far the walk has come.
"""

from django.db import transaction

from annotator.background import failures
from annotator.db.statements import Statement
from annotator.models import Project
from rewards.models import ScoringPass

AT_ONCE = 100
ALL = 2**62


def order_queues() -> int:
    """Continues wherever scores are new or the order of a queue was changed; returns how many tasks were moved."""
    projects = Project.objects.filter(reward_models__scoring_pass__isnull=False).distinct()
    return failures.each_project("order_queues", projects, order_queue)


def order_queue(project: Project) -> int:
    """Orders one project's queue by the scores of its models; returns how many tasks were moved.

    Earlier champions come first, so that what the present one says remains.
    """
    passes = ScoringPass.objects.select_related("reward_model__project").filter(reward_model__project=project)
    in_order = passes.order_by("reward_model__is_champion", "pk")
    return sum(_ordered(scoring_pass) if _is_used(scoring_pass) else _reset(scoring_pass) for scoring_pass in in_order)


def _is_used(scoring: ScoringPass) -> bool:
    model = scoring.reward_model
    return model.is_champion and model.project.queue_order == Project.QueueOrder.UNCERTAIN


def _ordered(scoring: ScoringPass) -> int:
    # Not while a lane works: the tenths are of all scores, and would be of the first few.
    if scoring.doubted >= scoring.handed_out or scoring.lanes.filter(moved_at__isnull=False).exists():
        return 0
    if not scoring.doubt_edges:
        scoring.doubt_edges = _edges(scoring)
    return _walk(scoring, _BY_EDGES, until=scoring.handed_out) if scoring.doubt_edges else 0


def _reset(scoring: ScoringPass) -> int:
    """Forgets the tenths of a model that is not used; only a champion's tasks are set back to 0.

    The tasks of an earlier champion are for the new one to move.
    """
    if not scoring.doubt_edges:
        return 0
    scoring.doubted = 0
    moved = _walk(scoring, _BACK_TO_0, until=ALL) if scoring.reward_model.is_champion else 0
    ScoringPass.objects.filter(pk=scoring.pk).update(doubt_edges=[], doubted=0)
    return moved


_EDGES = Statement(
    """
SELECT percentile_disc(ARRAY[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]) WITHIN GROUP (ORDER BY most) FROM (
    SELECT max(s.uncertainty) AS most FROM annotator_task t
    JOIN annotator_response r ON r.task_id = t.id
    JOIN rewards_score s ON s.response_id = r.id AND s.reward_model_id = %(model)s
    WHERE t.project_id = %(project)s AND t.state = 'open' AND NOT t.begun
    GROUP BY t.id
) AS uncertainties WHERE most IS NOT NULL
""",
    prepared=False,
)


def _edges(scoring: ScoringPass) -> list[float]:
    """Returns the nine uncertainties between the tenths of untouched tasks; empty where the model has none."""
    model = scoring.reward_model
    ((edges,),) = _EDGES.rows(model=model.pk, project=model.project_id)
    return list(edges or [])


def _walk(scoring: ScoringPass, statement: Statement, *, until: int) -> int:
    """Moves all tasks after the last one, a few in each transaction; returns how many were moved."""
    model, moved = scoring.reward_model, 0
    values = {"model": model.pk, "project": model.project_id, "edges": scoring.doubt_edges}
    while True:
        with transaction.atomic():
            ((last, changed),) = statement.rows(**values, after=scoring.doubted, until=until, number=AT_ONCE)
            if last is None:
                return moved
            scoring.doubted, moved = last, moved + changed
            scoring.save(update_fields=["doubt_edges", "doubted"])


# Only rows whose tenth changes are locked and written: most keep theirs. Tasks that somebody is claiming are skipped,
# as waiting for them would hold the locks of the others, and claims would pass those over.
_WALK = """
WITH batch AS (
    SELECT t.id FROM annotator_task t
    WHERE t.project_id = %(project)s AND t.id > %(after)s AND t.id <= %(until)s ORDER BY t.id LIMIT %(number)s
), wanted AS (
    {wanted}
), free AS (
    SELECT t.id, w.doubt FROM wanted w JOIN annotator_task t ON t.id = w.id
    WHERE t.doubt <> w.doubt FOR UPDATE OF t SKIP LOCKED
), moved AS (
    UPDATE annotator_task t SET doubt = free.doubt FROM free WHERE t.id = free.id RETURNING t.id
)
SELECT (SELECT max(id) FROM batch), (SELECT count(*) FROM moved)
"""
_BY_EDGES = Statement(
    _WALK.format(
        wanted="""
    SELECT b.id, width_bucket(max(s.uncertainty), %(edges)s::float8[]) AS doubt FROM batch b
    JOIN annotator_response r ON r.task_id = b.id
    JOIN rewards_score s ON s.response_id = r.id AND s.reward_model_id = %(model)s
    WHERE s.uncertainty IS NOT NULL GROUP BY b.id
"""
    ),
    prepared=False,
)
_BACK_TO_0 = Statement(_WALK.format(wanted="SELECT b.id, 0 AS doubt FROM batch b"), prepared=False)
