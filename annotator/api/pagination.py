"""Keyset pages: {next, previous, results}, as quick at the millionth row as at the first."""

from rest_framework.pagination import CursorPagination


class CursorPages(CursorPagination):
    """Newest rows last, in the order of their ids."""

    ordering = "pk"
    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 500
