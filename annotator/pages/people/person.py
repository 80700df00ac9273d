"""The personal page, which shows the user's own work and nobody else's."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from annotator.analysis.quality import mirror, own_work
from annotator.analysis.quality.own_work import Amount
from annotator.analysis.quality.person_work import latest_assignments
from annotator.models import Membership
from annotator.reading.access import user_of

SPARK_WIDTH, SPARK_HEIGHT = 96, 28
BAR_STEP, BAR_HEIGHT, BAR_FOOT = 40, 56, 76


@require_GET
def mine(request: HttpRequest) -> HttpResponse:
    """Shows for each of the user's projects how much and how fast they rate, and how far they agree with peers."""
    memberships = (
        user_of(request).memberships.in_use().select_related("project__rubric", "user").order_by("project__name")
    )
    latest = latest_assignments(user_of(request))
    return render(request, "mine.html", {"projects": [_project(member, latest) for member in memberships]})


def _project(member: Membership, latest: Sequence[int]) -> dict[str, Any]:
    now = timezone.localtime()
    amount = own_work.amount(member.user, member.project, latest=latest, now=now)
    agreed = own_work.agreement_with_peers(member.project, latest, now=now)
    return {
        "member": member,
        "project": member.project,
        "amount": amount,
        "day": mirror.day(member.project, latest, now=now),
        "differences": mirror.where_others_differed(member.project, latest, now=now),
        "bars": list(_bars(amount)),
        "agreement": agreed,
        "rows": [
            {
                "attribute": attribute,
                "drift": agreed.drift(attribute.key),
                "overall": agreed.overall[attribute.key],
                "weeks": list(zip(agreed.weeks, agreed.by_week[attribute.key], strict=True)),
                "line": _line(agreed.by_week[attribute.key]),
            }
            for attribute in member.project.attributes_for()
        ],
    }


def _bars(amount: Amount) -> Iterator[dict[str, Any]]:
    """Yields a bar for each day, in whole numbers: a locale may write others with a comma, which no SVG reads."""
    for number, (day, count) in enumerate(amount.days):
        # At least 2, so that a day without ratings has a visible bar too.
        height = max(round(BAR_HEIGHT * count / max(amount.most, 1)), 2)
        x, y = number * BAR_STEP + 5, BAR_FOOT - height
        yield {"day": day, "count": count, "x": x, "middle": x + 15, "y": y, "above": y - 4, "height": height}


def _line(kappas: Sequence[float | None]) -> str:
    """Returns the points of a line from kappa 0 at the bottom to 1 at the top, without weeks that have no value."""
    step = SPARK_WIDTH / max(len(kappas) - 1, 1)
    points = [(number * step, min(max(kappa, 0), 1)) for number, kappa in enumerate(kappas) if kappa is not None]
    if len(points) == 1:
        points *= 2  # a line of one point would not show
    return " ".join(f"{x:.1f},{2 + (1 - kappa) * (SPARK_HEIGHT - 4):.1f}" for x, kappa in points)
