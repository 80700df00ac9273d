"""Deletes the scores of champions that were replaced long ago: a project would keep a row a response and version.

A project keeps the scores of its champion and of the SCORES_OF_FORMER_CHAMPIONS versions that were promoted last before
it. Nothing goes on the day of a promotion, so that undoing it soon costs nothing. A version that is promoted again
scores its project's responses anew.
"""

from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef

from annotator.infrastructure.background import failures, pacing
from annotator.infrastructure.db.statements import Statement
from annotator.models import Project
from rewards.models import RewardModel, Score, ScoringPass

BATCH = 5_000
KEPT_AFTER_PROMOTION = timedelta(days=1)

_DELETE = Statement("""
DELETE FROM rewards_score WHERE id IN (SELECT id FROM rewards_score WHERE reward_model_id = %(model)s LIMIT %(most)s)
""")


def thin(*, now: datetime) -> int:
    """Deletes the scores that no project keeps any more; returns how many."""
    settled = RewardModel.objects.filter(is_champion=True, promoted_at__lte=now - KEPT_AFTER_PROMOTION)
    projects = Project.objects.filter(pk__in=settled.values("project")).order_by("pk")
    return failures.each_project(
        "thin_scores",
        projects,
        lambda project: pacing.alone_in_slices("former scores", project.pk, partial(_delete_some, project, now=now)),
    )


@transaction.atomic
def _delete_some(project: Project, *, now: datetime) -> int:
    # A promotion takes the same lock, so that no version becomes the champion while its scores go. Without the key, as
    # whoever imports or rates in the project need not wait.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    if (model := _first_to_thin(project, now=now)) is None:
        return 0
    # Without its pass, a version that is promoted again begins at the first task, whoever wakes it.
    ScoringPass.objects.filter(reward_model=model).delete()
    return _DELETE.run(model=model.pk, most=BATCH)


def _first_to_thin(project: Project, *, now: datetime) -> RewardModel | None:
    promoted = list(
        RewardModel.objects.filter(project=project, promoted_at__isnull=False).order_by("-promoted_at", "-pk")
    )
    since = promoted[0].promoted_at if promoted and promoted[0].is_champion else None
    if since is None or since > now - KEPT_AFTER_PROMOTION:
        return None
    late = [model.pk for model in promoted[1 + settings.SCORES_OF_FORMER_CHAMPIONS :]]
    scores = Score.objects.filter(reward_model=OuterRef("pk"))
    return RewardModel.objects.filter(Exists(scores), pk__in=late).order_by("pk").first()
