"""Keyset pages, {next, previous, results}: the millionth row is read as quickly as the first."""

from typing import Any

from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request

from annotator.api.filters import require_known


class CursorPages(CursorPagination):
    """Pages in the order of the rows' ids, the newest last."""

    ordering = "pk"
    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 500

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any] | None:
        """Returns the rows of a page. Raises ValidationError for what the list does not know."""
        require_known(request, queryset, view)
        return self.rows_of_page(queryset, request, view)

    def rows_of_page(self, queryset: Any, request: Request, view: Any) -> list[Any] | None:
        """Returns the rows of a page."""
        return super().paginate_queryset(queryset, request, view)

    def get_paginated_response_schema(self, schema: Any) -> dict[str, Any]:
        """Returns the page as OpenAPI 3.1 describes it, where an address may be null."""
        page: dict[str, Any] = super().get_paginated_response_schema(schema)
        for link in ("next", "previous"):
            page["properties"][link] = {"type": ["string", "null"], "format": "uri"}
        return page

    def decode_cursor(self, request: Request) -> Cursor | None:
        """Returns the cursor, or None for the first page. Raises NotFound for a position that is no id."""
        # Somebody edited the cursor: the position would fail in the query.
        cursor = super().decode_cursor(request)
        position = str(cursor.position or 0) if cursor else "0"
        if not (position.isascii() and position.isdigit()):
            raise NotFound(self.invalid_cursor_message)
        return cursor
