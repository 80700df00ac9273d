"""The annotators page: what stands out in each one's work, for reviewers and managers to judge."""

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from annotator.analysis.quality import assessment
from annotator.analysis.quality.findings import findings, how_many_flagged, most_flagged_first, unjudged
from annotator.reading import access
from annotator.reading.access import user_of
from annotator.reading.pseudonyms import Naming

PAGE = 50
LOWEST = 5
"""So many annotators are named of whom too little is known; the table shows the others."""


@require_GET
def annotators(request: HttpRequest, slug: str) -> HttpResponse:
    """Lists annotators with flags first, each flag with its evidence; then everybody's measures."""
    user = user_of(request)
    project = access.reviewed_project(user, slug)
    naming, pseudonyms = access.naming_for(user, project), Naming(project, by_name=False)
    part = Paginator(most_flagged_first(project), PAGE).get_page(request.GET.get("page"))
    rows: list[dict[str, Any]] = [
        {"finding": finding, "name": naming(finding.annotator), "pseudonym": pseudonyms(finding.annotator)}
        for finding in findings(project, part.object_list)
    ]
    computed_at = part.object_list[0].computed_at if rows else None
    too_few = unjudged(project)
    page = {
        "project": project,
        "part": part,
        "rows": rows,
        "flagged": [row for row in rows if row["finding"].flags],
        "how_many": how_many_flagged(project),
        "unjudged": too_few.count(),
        "lowest": [(naming(row.annotator), row.measures) for row in too_few[:LOWEST]],
        "computed_at": computed_at,
        "since": assessment.since(project),
        "more_wanted": assessment.more_wanted(project),
        "at_the_latest": computed_at + assessment.HOUR if computed_at else None,
        "attributes": project.attributes_for(),
        "may_exclude": naming.by_name,
    }
    return render(request, "annotators.html", page)
