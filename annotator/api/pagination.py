"""Keyset pages: {next, previous, results}, as quick at the millionth row as at the first."""

from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request


class CursorPages(CursorPagination):
    """Newest rows last, in the order of their ids."""

    ordering = "pk"
    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 500

    def decode_cursor(self, request: Request) -> Cursor | None:
        """Positions are ids here: another one was not made by us."""
        cursor = super().decode_cursor(request)
        position = str(cursor.position or 0) if cursor else "0"
        if not (position.isascii() and position.isdigit()):
            raise NotFound(self.invalid_cursor_message)
        return cursor
