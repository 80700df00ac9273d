"""The REST call that lists a project's audit, newest first."""

from django.db.models import QuerySet
from django.utils.dateparse import parse_datetime
from django_filters import rest_framework as filters  # type: ignore[import-untyped]
from rest_framework import generics
from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request

from annotator.api.filters import MomentFilter
from annotator.api.model_serializers import ModelSerializer
from annotator.api.pagination import CursorPages
from annotator.models import AuditEntry
from annotator.reading import access


class AuditEntrySerializer(ModelSerializer[AuditEntry]):
    class Meta:
        model = AuditEntry
        fields = ["id", "at", "actor", "via", "token", "action", "subject", "details"]


class NewestEntriesFirst(CursorPages):
    """Pages from the newest entry on, as the index audit_by_project is ordered. A cursor's position is a time here."""

    ordering = ("-at", "-pk")  # type: ignore[assignment]

    def decode_cursor(self, request: Request) -> Cursor | None:
        # CursorPages' own check takes ids only. What is no time would fail in the query: somebody edited the cursor.
        cursor = CursorPagination.decode_cursor(self, request)
        try:
            if cursor and cursor.position and parse_datetime(str(cursor.position)) is None:
                raise NotFound(self.invalid_cursor_message)
        except ValueError as beyond:
            raise NotFound(self.invalid_cursor_message) from beyond
        return cursor


class AuditFilter(filters.FilterSet):  # type: ignore[misc]
    since = MomentFilter("at", "gte")
    until = MomentFilter("at", "lt")

    class Meta:
        model = AuditEntry
        fields = ["actor", "via", "action"]


class Audit(generics.ListAPIView[AuditEntry]):
    """Lists who changed what in the project, and when, for its managers. `actor` is empty for the system itself."""

    serializer_class = AuditEntrySerializer
    queryset = AuditEntry.objects.none()
    filterset_class = AuditFilter
    pagination_class = NewestEntriesFirst

    def get_queryset(self) -> QuerySet[AuditEntry]:
        project = access.managed_project(access.user_of(self.request), self.kwargs["slug"])
        # By number: a slug may be that of an earlier project, a number never is.
        return AuditEntry.objects.filter(project_id=project.pk)
