"""REST calls that move files: import from the body or an upload, and export as a stream."""

import time
from collections.abc import Callable
from typing import IO, Any, cast

from django.conf import settings
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.db.statement_timeouts import long_statements, streamed
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web import lane_shares
from annotator.infrastructure.web.query_parameters import flag, text
from annotator.models import Project
from annotator.outputs.exporting.export_rows import export
from annotator.outputs.exporting.file_formats import FORMATS, content_type, file_name
from annotator.outputs.exporting.filters import PARAMETERS, fields_from, filters_from
from annotator.outputs.exporting.layouts import LAYOUTS
from annotator.reading import access
from annotator.stages.importing import import_rows
from annotator.stages.importing.kept_mappings import mapping_named
from annotator.stages.importing.mappings import ColumnMapping, fitting_only

LONGEST_MAPPING = 20_000


class TookTooLong(Refusal):
    """The import took longer than one request may; batches that were written before stay."""

    status = 413
    code = "took_too_long"


MAPPING_PARAMETER = OpenApiParameter(
    "mapping", description="the name of a mapping that the project keeps, or a mapping as JSON (docs/formats.md)"
)


FITTING_PARAMETER = OpenApiParameter(
    "fitting_only", bool, description="1: leave out ratings that do not fit, where otherwise their rows are refused"
)


def wanted_mapping(request: Request, project: Project) -> ColumnMapping | None:
    """Returns the mapping that the query names, with what else it says of ratings. Raises BadMapping."""
    mapping = mapping_named(project, text(request.query_params, "mapping", longest=LONGEST_MAPPING))
    return fitting_only(mapping) if flag(request.query_params, "fitting_only") else mapping


class RejectedSerializer(serializers.Serializer[Any]):
    line = serializers.IntegerField()
    error = serializers.CharField()


class NoteSerializer(serializers.Serializer[Any]):
    line = serializers.IntegerField(help_text="the first that it is about")
    rows = serializers.IntegerField(help_text="of the file, or tasks, that it is about")
    text = serializers.CharField()


class ImportResultSerializer(serializers.Serializer[Any]):
    created = serializers.IntegerField()
    existing = serializers.IntegerField()
    ratings_added = serializers.IntegerField(help_text="ratings and preferences, one for each person and task")
    ratings_left_out = serializers.IntegerField(help_text="that do not count, although their rows went in")
    rejected = RejectedSerializer(many=True, help_text="the first rows and ratings that do not count")
    rejected_total = serializers.IntegerField(help_text="of all rows that were refused")
    notes = NoteSerializer(many=True, help_text="columns that were kept as metadata, and what else to know of the rows")
    import_id = serializers.IntegerField(allow_null=True, help_text="of the row under `imports/`")
    dry_run = serializers.BooleanField(help_text="true: nothing was written; the counts are what would be")


class StreamParser(BaseParser):
    """Hands over the body unread, whatever its content type: the importer recognises the format by itself."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return stream


class ImportFile(APIView):
    """Imports tasks from JSON lines, a JSON list, CSV or Parquet, plain or gzipped."""

    parser_classes = [MultiPartParser, StreamParser]

    @extend_schema(
        request=dict.fromkeys(
            ("application/x-ndjson", "text/csv", "application/vnd.apache.parquet", "application/gzip"),
            OpenApiTypes.BINARY,
        )
        | {"application/json": {"type": "array", "items": {"type": "object"}}},
        responses=ImportResultSerializer,
        parameters=[
            OpenApiParameter("dry_run", bool, description="1: check and count, write nothing"),
            MAPPING_PARAMETER,
            FITTING_PARAMETER,
        ],
        examples=[
            OpenApiExample(
                "One task",
                '{"id": "t-17", "messages": [{"role": "user", "content": "Name a prime above 10."}], '
                '"responses": [{"id": "a", "text": "11 is one."}, {"id": "b", "text": "12, I think."}]}\n',
                request_only=True,
                media_type="application/x-ndjson",
            )
        ],
    )
    def post(self, request: Request, slug: str) -> Response:
        user = access.user_of(request)
        project = access.managed_project(user, slug)
        lane_shares.require_share(request._request, user.pk)
        dry_run = flag(request.query_params, "dry_run")
        mapping = wanted_mapping(request, project)
        file = cast("IO[bytes]", _Stream(reader(request)))
        file_name = sent_name(request)
        # A large file needs longer than the time that PostgreSQL works for a page.
        with long_statements():
            result = import_rows(
                project,
                file,
                now=database_now(),
                dry_run=dry_run,
                by=user,
                file_name=file_name,
                mapping=mapping,
                attend=_attended(request),
            )
        return Response(ImportResultSerializer({**vars(result), "notes": result.notes, "dry_run": dry_run}).data)


def _attended(request: Request) -> Callable[[], None]:
    """Returns what ends an import that has taken too long, or whose sender has gone."""
    is_gone = request._request.META.get(lane_shares.GONE, lambda: False)
    ends_at = time.monotonic() + settings.IMPORT_SECONDS

    def attend() -> None:
        if is_gone():
            raise Refusal("The sender has closed the connection.", code="sender_gone", status=400)
        if time.monotonic() > ends_at:
            raise TookTooLong(
                f"The import took longer than {settings.IMPORT_SECONDS} seconds and was ended. Send the file to "
                "`import-jobs/`: the light worker takes as long as it needs, and recognises the tasks that are in."
            )

    return attend


def reader(request: Request) -> Callable[[int], bytes]:
    """Returns the function that reads the upload, or the body as it arrives.

    Raises ValidationError for a multipart body without a file.
    """
    if request.FILES:
        return cast("Callable[[int], bytes]", next(iter(request.FILES.values())).read)
    if (request.content_type or "").startswith("multipart/"):
        raise serializers.ValidationError({"file": ["The upload contains no file."]})
    environ = request._request.META
    if environ.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked" and environ.get("wsgi.input_terminated"):
        # Django reads as much as Content-Length says. A chunked body has none, so Django would silently read nothing.
        return cast("Callable[[int], bytes]", environ["wsgi.input"].read)
    return request._request.read


def sent_name(request: Request) -> str:
    """Returns the name of an uploaded file. A body has none."""
    return next(iter(request.FILES.values())).name or "" if request.FILES else ""


class _Stream:
    """Makes a raw stream, which io.BufferedReader needs, from a function that reads bytes."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self.closed = False

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def readinto(self, buffer: Any) -> int:
        data = self._read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self.closed = True


class WhateverIsAccepted(DefaultContentNegotiation):
    """Ignores the Accept header, because the query names the format: `Accept: text/csv` must not refuse a CSV."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> tuple[BaseRenderer, str]:
        return renderers[0], renderers[0].media_type


class Export(APIView):
    """Exports labels or annotations as a stream."""

    content_negotiation_class = WhateverIsAccepted

    @extend_schema(
        responses={(200, "application/x-ndjson"): OpenApiTypes.BINARY},
        parameters=[
            OpenApiParameter("layout", enum=list(LAYOUTS)),
            OpenApiParameter("format", enum=list(FORMATS)),
            OpenApiParameter("gzip", bool, description="1: packed"),
            *(OpenApiParameter(name, description=meaning) for name, meaning in PARAMETERS.items()),
        ],
    )
    def get(self, request: Request, slug: str) -> StreamingHttpResponse:
        user = access.user_of(request)
        project = access.reviewed_project(user, slug)
        lane_shares.require_share(request._request, user.pk)
        layout = request.query_params.get("layout", "helpsteer2")
        format = request.query_params.get("format", "jsonl")
        gzip = flag(request.query_params, "gzip")
        filters = filters_from(request.query_params)
        fields = fields_from(request.query_params)
        rows = export(project, layout=layout, format=format, gzip=gzip, filters=filters, fields=fields, by=user)
        answer = StreamingHttpResponse(streamed(rows), content_type=content_type(format, gzip=gzip))
        name = file_name(project, layout, format, gzip=gzip)
        answer["Content-Disposition"] = f'attachment; filename="{name}"'
        return answer
