"""Keyset pages, {next, previous, results}: the millionth row is read as quickly as the first."""

from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request


class CursorPages(CursorPagination):
    """Pages in the order of the rows' ids, the newest last."""

    ordering = "pk"
    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 500

    def decode_cursor(self, request: Request) -> Cursor | None:
        """Returns the cursor, or None for the first page. Raises NotFound for a position that is no id."""
        # Somebody edited the cursor: the position would fail in the query.
        cursor = super().decode_cursor(request)
        position = str(cursor.position or 0) if cursor else "0"
        if not (position.isascii() and position.isdigit()):
            raise NotFound(self.invalid_cursor_message)
        return cursor
