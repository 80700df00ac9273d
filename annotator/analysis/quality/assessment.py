"""Measures the work of a project's annotators and stores the results, which are for people to judge."""

import subprocess
import sys
from dataclasses import asdict
from datetime import datetime, timedelta
from math import ceil
from statistics import fmean
from typing import Protocol

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Sum

from annotator.analysis.agreement import reports
from annotator.analysis.quality.flags import flagged, is_too_few
from annotator.analysis.quality.measurements import WithOthers, measured
from annotator.analysis.quality.patterns import HURRY, LONGEST
from annotator.analysis.quality.work_arrays import lengths, read
from annotator.infrastructure.background import failures
from annotator.infrastructure.db import locks
from annotator.models import AgreementState, Annotation, Project, RaterQuality, Rating, Tally, Task

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
ENOUGH, ENOUGH_SHARE = 5, 0.05
"""So many new tasks, and so many as a share of those rated before, are measured before the hour is over."""


def assess(project: Project, *, now: datetime) -> int:
    """Measures all annotators again, unless another process is doing so; returns how many annotators."""
    # A session lock, as this takes long: no transaction stays open for it.
    with locks.session_lock("quality", project.pk) as is_alone:
        if not is_alone:
            return 0
        # Counted before the work is read: ratings that come in between are counted as new by the next assessment.
        rated = _rated(project)
        work = read(project)
        # No task counts as hurried above LONGEST / HURRY seconds, so the texts of most tasks need not be measured.
        active = work.annotations["active"]
        hurried = work.annotations["task"][(active >= 0) & (active * HURRY < LONGEST)]
        agreements = {}
        for rater in reports.report(project, now=now).annotators:
            kappas = [kappa for kappa in rater.kappa.values() if kappa is not None]
            agreements[rater.annotator.pk] = WithOthers(fmean(kappas) if kappas else None, rater.shared)
        everybody = measured(work, lengths(project, np.unique(hurried)), agreements)
        rows = [
            RaterQuality(
                project=project,
                annotator_id=annotator,
                annotations=person.measures["tasks"],
                measures=dict(person.measures) | {"rated_by_all": rated, "too_few": is_too_few(person.measures)},
                flags=[asdict(flag) for flag in flags],
                computed_at=now,
            )
            for annotator, person, flags in zip(work.annotators.tolist(), everybody, flagged(everybody), strict=True)
        ]
        _store(project, rows)
        return len(rows)


@transaction.atomic
def _store(project: Project, rows: list[RaterQuality]) -> None:
    kept = [row.annotator_id for row in rows]
    RaterQuality.objects.filter(project=project).exclude(annotator__in=kept).delete()
    RaterQuality.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["project", "annotator"],
        update_fields=["annotations", "measures", "flags", "computed_at"],
    )


# When ------------------------------------------------------------------------------------------------------


class Assess(Protocol):
    def __call__(self, project: Project, *, now: datetime) -> int: ...


def assess_due(*, now: datetime, by: Assess = assess) -> int:
    """Assesses every project in which enough has happened; returns how many annotators were measured."""
    rated = Project.objects.filter(tallies__done__gt=0).distinct().select_related("rubric")

    def assess_if_due(project: Project) -> int:
        return by(project, now=now) if is_due(project, now=now) else 0

    return failures.each_project("assess_annotators", rated, assess_if_due)


_ratings = Rating.objects.filter(annotation=OuterRef("pk"))


def is_due(project: Project, *, now: datetime) -> bool:
    """Says whether an assessment is due: after an hour if ratings have changed, after a minute if many are new."""
    last = RaterQuality.objects.filter(project=project).aggregate(at=Max("computed_at"))["at"]
    if last is None:
        # Annotations without ratings, which only prefer a response, have nothing that is measured.
        looked_at = Annotation.objects.current().for_project(project.pk).filter(Exists(_ratings))
        return looked_at.filter(assignment__task__state__in=[Task.State.OPEN, Task.State.COMPLETE]).exists()
    # After an hour any change is enough, so that a project in which little happens is assessed too.
    changed = AgreementState.objects.filter(project=project, refreshed_at__gt=last).exists()
    if changed and now - last >= HOUR:
        return True
    return now - last >= MINUTE and more_wanted(project) == 0


def more_wanted(project: Project) -> int:
    """Returns how many more tasks have to be rated for the next assessment to come before the hour is over."""
    return max(ceil(max(ENOUGH, ENOUGH_SHARE * _rated(project))) - since(project), 0)


def since(project: Project) -> int:
    """Returns how many tasks have been rated since the last assessment; 0 if there was none."""
    then = RaterQuality.objects.filter(project=project).values_list("measures__rated_by_all", flat=True).first()
    return 0 if then is None else max(_rated(project) - then, 0)


def _rated(project: Project) -> int:
    return Tally.objects.filter(project=project).aggregate(n=Sum("done"))["n"] or 0


PATIENCE_SECONDS = 600


class AssessmentFailed(Exception):
    """The process that assesses a project's annotators failed; the message is the last line that it wrote."""


def assess_apart(project: Project, *, now: datetime) -> int:
    """Assesses the project in a process of its own; returns for how many annotators there are results.

    `now` is not used: the process reads the time itself, a little later. While one process assesses the project no
    other is started, because those that come after a slow one would pile up behind it.

    Raises:
        AssessmentFailed: the process failed, or took longer than PATIENCE_SECONDS.
    """
    # The slug comes after "--", as it may begin with a hyphen and would be read as an option.
    command = [sys.executable, "manage.py", "quality", "--background", "--", project.slug]
    with locks.session_lock("quality apart", project.pk) as is_alone:
        if not is_alone:
            return 0
        try:
            ended = subprocess.run(
                command,
                cwd=settings.BASE_DIR,
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                check=False,
                timeout=PATIENCE_SECONDS,
            )
        except subprocess.TimeoutExpired as late:
            raise AssessmentFailed(f"it took longer than {PATIENCE_SECONDS} s") from late
        sys.stderr.write(ended.stderr)
        if ended.returncode:
            lines = ended.stderr.strip().splitlines()
            raise AssessmentFailed(lines[-1] if lines else f"it ended with code {ended.returncode}")
        return project.rater_qualities.count()
