"""Logs as lines of JSON that say to which request each belongs, in the web and in the tasks that it has sent.

They hold nobody's data: of an error its type and where it happened, not what it says, as that may quote a row; of who
logs in, that somebody did. LOG_FORMAT=json turns them on; request ids are there in any case.
"""

import json
import logging
import logging.config
import re
import time
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from celery.signals import before_task_publish, setup_logging, task_postrun, task_prerun
from django.conf import settings
from django.http import HttpRequest, HttpResponse

HEADER = "X-Request-ID"
_GIVEN = re.compile(r"[A-Za-z0-9._-]{1,64}")
_NAMELESS = ("annotator.accounts.",)
"""Loggers whose values are names and addresses of people; their lines say what happened, without them."""
_id: ContextVar[str] = ContextVar("request id", default="")
_log = logging.getLogger("annotator.requests")


class RequestIdMiddleware:
    """Gives each request an id, that of the proxy before us if there is one, and answers with it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        token = _id.set(given if _GIVEN.fullmatch(given) else uuid4().hex)
        began = time.perf_counter()
        try:
            response = self.get_response(request)
            response.headers[HEADER] = _id.get()
            if settings.LOG_FORMAT == "json":
                match = request.resolver_match
                _log.info(
                    "%s %s %d in %d ms",
                    request.method if (request.method or "").isalpha() else "other",
                    (match and match.view_name) or "other",
                    response.status_code,
                    1000 * (time.perf_counter() - began),
                )
            return response
        finally:
            _id.reset(token)


class JsonFormatter(logging.Formatter):
    """Writes a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        is_nameless = record.name.startswith(_NAMELESS)
        message = str(getattr(record, "event", record.msg)) if is_nameless else record.getMessage()
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": message,
        }
        if request_id := _id.get():
            line["request_id"] = request_id
        if record.exc_info and record.exc_info[0]:
            frames = traceback.extract_tb(record.exc_info[2])
            line["exception"] = record.exc_info[0].__name__
            line["at"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return json.dumps(line)


@before_task_publish.connect
def _send_id(headers: dict[str, Any], **_: Any) -> None:
    if request_id := _id.get():
        headers["request_id"] = request_id


@task_prerun.connect
def _take_id(task: Any, **_: Any) -> None:
    _id.set(task.request.get("request_id") or task.request.id or "")


@task_postrun.connect
def _drop_id(**_: Any) -> None:
    _id.set("")


if settings.LOG_FORMAT == "json":
    # Celery would set up logs of its own.
    setup_logging.connect(lambda **_: logging.config.dictConfig(settings.LOGGING), weak=False)
