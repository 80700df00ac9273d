"""What the addresses of single resources have in common: ETag, If-None-Match, If-Match and `fields`."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.http import parse_etags
from drf_spectacular.utils import OpenApiParameter
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.api import selected_fields
from annotator.api.rendering import Renderer
from annotator.refusals import Refusal
from annotator.web.query_parameters import BadParameter

ETAG = OpenApiParameter("ETag", location="header", response=[200], description="changes with the answer")
UNLESS = OpenApiParameter(
    "If-None-Match", location="header", description="the ETag that you have: 304 if the resource is still the same"
)
ONLY_IF = OpenApiParameter(
    "If-Match", location="header", description="the ETag of what you have read: 412 if it has been edited since"
)


def parameters(method: str) -> list[OpenApiParameter]:
    """Returns the parameters that every address of a resource takes for the method."""
    if method == "GET":
        return [selected_fields.PARAMETER, UNLESS, ETAG]
    return [ONLY_IF] if method in {"PATCH", "PUT", "DELETE"} else []


class Edited(Refusal):
    """The resource is no longer what the caller has read."""

    status = 412
    code = "precondition_failed"


class Resource(APIView):
    """A view of one resource. What can be edited names the rows that an edit locks (`rows`)."""

    live: tuple[str, ...] = ()
    """Fields that change by themselves, as work goes on: If-Match does not look at them."""

    def rows(self, *args: Any, **kwargs: Any) -> Sequence[QuerySet[Any]]:
        """Returns what a conditional edit locks, in the order in which the stage locks it."""
        raise NotImplementedError

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Makes a conditional edit in one transaction with its check, so that of two editors one gets 412."""
        if request.method in SAFE_METHODS or "If-Match" not in request.headers:
            return super().dispatch(request, *args, **kwargs)
        with transaction.atomic():
            answer = super().dispatch(request, *args, **kwargs)
            # A refusal has become an answer by now, and would not roll back by itself.
            if answer.status_code >= 400:
                transaction.set_rollback(True)
        return answer

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Raises Edited if the caller names another ETag than the resource has."""
        super().initial(request, *args, **kwargs)
        wanted = request.headers.get("If-Match")
        if request.method in SAFE_METHODS or wanted is None:
            return
        reader: Any = self
        reader.get(request, *args, **kwargs)  # 404 and 403 come before any lock
        for rows in self.rows(**kwargs):
            list(rows.select_for_update(of=("self",), no_key=True).values_list("pk"))
        current = self._tag(reader.get(request, *args, **kwargs).data)
        if not _matches(wanted, current):
            raise Edited(
                "This has been edited since you read it. Get it again, look at what has changed, and send your edit "
                "with the new ETag."
            )

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Adds the ETag; leaves out what `fields` does not name, or the whole body if the caller has it."""
        if isinstance(response, Response) and response.status_code == 200 and _shows_the_resource(request):
            response.headers["ETag"] = tag = self._tag(response.data)
            try:
                response = _as_wanted(request, response, tag) if request.method in SAFE_METHODS else response
            except BadParameter as refused:
                response = self.handle_exception(refused)
        return super().finalize_response(request, response, *args, **kwargs)

    def _tag(self, data: Any) -> str:
        """Returns the ETag: a digest of what is edited, then one of the whole."""
        steady = {name: value for name, value in data.items() if name not in self.live}
        return f'"{_digest(steady)}-{_digest(data)}"'


def _shows_the_resource(request: Request) -> bool:
    # An edit answers the resource as well, a dry run something else.
    return request.method in {"GET", "HEAD"} or (
        request.method in {"PATCH", "PUT"} and "dry_run" not in request.query_params
    )


def _as_wanted(request: Request, response: Response, tag: str) -> Response:
    kept = parse_etags(request.headers.get("If-None-Match", ""))
    if "*" in kept or tag in kept:
        return Response(status=304, headers={"ETag": tag})
    if names := request.query_params.get(selected_fields.NAME):
        response.data = selected_fields.selection(names, known=response.data)(response.data)
    return response


def _matches(wanted: str, current: str) -> bool:
    known: Iterable[str] = parse_etags(wanted)
    edited = current.partition("-")[0]
    return any(tag == "*" or tag.partition("-")[0] == edited for tag in known)


def _digest(data: Any) -> str:
    return sha256(Renderer().render(data)).hexdigest()[:16]
