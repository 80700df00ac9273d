"""The order of jobs that wait for one worker: by turns, so that nobody's many jobs keep others waiting."""

from typing import TypeVar

from django.db.models import F, OuterRef, QuerySet, Subquery

from annotator.models import ExportJob, ImportJob, Release

T = TypeVar("T", ExportJob, ImportJob, Release)


def by_turns(jobs: QuerySet[T]) -> QuerySet[T]:
    """Orders jobs by when a worker last had one of the same person's, never first, and then by their age."""
    theirs = jobs.model.objects.filter(requested_by=OuterRef("requested_by"), heartbeat_at__isnull=False)
    served = Subquery(theirs.order_by("-heartbeat_at").values("heartbeat_at")[:1])
    return jobs.alias(served=served).order_by(F("served").asc(nulls_first=True), "pk")
