"""Lists of pages that go on from a row: however long a list is, no page counts it or reads what came before."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from annotator.infrastructure.web.query_parameters import number_in


def page_of(request: HttpRequest, rows: QuerySet[Any], *, size: int) -> dict[str, Any]:
    """Returns `rows`, of which the newest come first, after the one that the address names as `before`.

    `further` is what to name for the next page, if there is one; `first` is true of the first page.
    """
    before = number_in(request.GET, "before")
    # One row more says whether there is a further page.
    part = list((rows.filter(pk__lt=before) if before else rows)[: size + 1])
    return {"rows": part[:size], "further": part[size - 1].pk if len(part) > size else None, "first": not before}
