"""The header `Idempotency-Key`: a creating call that is sent twice is done once, and answered the same."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from io import IOBase
from typing import Any

from django.core.files import File
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.utils.crypto import salted_hmac
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator import access
from annotator.accounts import idempotency
from annotator.api.rendering import Renderer
from annotator.db.clock import database_now
from annotator.db.retries import in_transaction
from annotator.models import IdempotentCall, User
from annotator.models.idempotency import LONGEST_KEY
from annotator.refusals import Refusal

KEY = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
_CHUNK = 1 << 20
_KEYS = re.compile(rf"[A-Za-z0-9._~:+/=-]{{1,{LONGEST_KEY}}}")
PARAMETERS = [
    OpenApiParameter(
        KEY,
        {"type": "string", "pattern": f'^"?{_KEYS.pattern}"?$'},
        location="header",
        description="Send the call again with the same key if its answer was lost: the work is done once.",
    ),
    OpenApiParameter(
        REPLAYED, bool, location="header", response=True, description="true: the stored answer of an earlier call"
    ),
]


class UnusableKey(Refusal):
    """The header holds something else than a key."""

    status = 400
    code = "invalid_idempotency_key"


class Replay(Exception):
    """Ends a call with the answer that it was given before."""

    def __init__(self, call: IdempotentCall) -> None:
        super().__init__()
        headers = {REPLAYED: "true"} | ({"Location": call.location} if call.location else {})
        self.answer = HttpResponse(
            call.body, status=call.status, headers=headers, content_type="application/json" if call.body else None
        )


class Idempotent(APIView):
    """A view whose POST makes something, which a caller can send again with the same key."""

    secrets: tuple[str, ...] = ()
    """Fields of the answer that are not stored, and so are in the first answer alone."""
    longest = timedelta(minutes=2)
    """How long the call may run. Afterwards its process is taken for dead, and the call may be done again."""
    body_is_streamed = False
    """Whether the body is a file, which is not read into memory."""
    in_one_transaction = True
    """Whether a call with a key commits its work together with its answer: a process that dies has done nothing.

    False where the work is more than rows, waits for a worker, or goes on batch by batch.
    """
    _call: IdempotentCall | None = None
    _is_stored = False

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Stores what a call with a key was answered, or frees the key of one that was refused or has failed."""
        answer = None
        try:
            answer = super().dispatch(request, *args, **kwargs)
        finally:
            if self._call is not None and not (isinstance(answer, Response) and answer.status_code < 300):
                idempotency.free(self._call)
        if self._call is not None and isinstance(answer, Response) and answer.status_code < 300 and not self._is_stored:
            idempotency.store(self._call, self._stored(answer))
        return answer

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Claims the key once it is known who calls. Raises Replay for a call that was answered before."""
        super().initial(request, *args, **kwargs)
        key = request.headers.get(KEY)
        if request.method != "POST" or key is None:
            return
        call = idempotency.claim(
            idempotency.Request(access.user_of(request), read_key(key), self._fingerprint(request), self.longest),
            now=database_now(),
        )
        if call.status is not None:
            self.require_access(access.user_of(request), call)
            raise Replay(call)
        self._call = call
        if self.in_one_transaction:
            # The framework calls the method next; what it raises is answered outside, after the rollback.
            method = request.method.lower()
            setattr(self, method, in_transaction(self._committed_with_its_answer(getattr(self, method))))

    def _committed_with_its_answer(self, work: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
        def done(*args: Any, **kwargs: Any) -> HttpResponseBase:
            answer = work(*args, **kwargs)
            if self._call is not None and isinstance(answer, Response) and answer.status_code < 300:
                # Whoever was taken for dead undoes the work, which another process has begun again.
                if not idempotency.store(self._call, self._stored(answer)):
                    raise idempotency.StillRunning("This call was begun again. Send it once more for its answer.")
                self._is_stored = True
            return answer

        return done

    def require_access(self, user: User, call: IdempotentCall) -> None:
        """Raises what the call itself would raise if its caller has lost access since it was answered."""
        if slug := self.kwargs.get("slug"):
            access.managed_project(user, slug)

    def handle_exception(self, exc: Exception) -> Any:
        """Answers a replay; all else is answered as anywhere."""
        return exc.answer if isinstance(exc, Replay) else super().handle_exception(exc)

    def _fingerprint(self, request: Request) -> str:
        # Keyed, because a body may hold a password, which could be guessed by its plain digest.
        digest = salted_hmac(__name__, f"{request.method} {request.get_full_path()}\n", algorithm="sha256")
        for part in self._body(request):
            digest.update(part)
        return digest.hexdigest()

    def _body(self, request: Request) -> Iterator[bytes]:
        if isinstance(request.data, QueryDict):
            # The boundary is another one in each request, so the parts are compared, files chunk by chunk.
            for name, values in sorted(request.data.lists()):
                for value in values:
                    yield from _part(name, value)
        elif self.body_is_streamed:
            yield from _file(request)
        else:
            yield json.dumps(request.data, sort_keys=True).encode()

    def _stored(self, answer: Response) -> idempotency.Answer:
        data = answer.data
        if isinstance(data, dict):
            data = {name: value for name, value in data.items() if name not in self.secrets}
        body = "" if data is None else Renderer().render(data).decode()
        return idempotency.Answer(answer.status_code, body, answer.headers.get("Location", ""))


def read_key(header: str) -> str:
    """Returns the key in the header, which may stand in quotation marks, as the draft has it. Raises UnusableKey."""
    quoted = re.fullmatch(r'"(.*)"', header.strip())
    key = quoted[1] if quoted else header.strip()
    if not _KEYS.fullmatch(key):
        raise UnusableKey(
            f"An {KEY} has 1 to {LONGEST_KEY} letters, digits and . _ ~ : + / = -, such as a random UUID."
        )
    return key


def _file(request: Request) -> Iterator[bytes]:
    if not (length := request.META.get("CONTENT_LENGTH")):
        raise UnusableKey(f"Send the length of the file (Content-Length) with an {KEY}, or leave the key out.")
    yield str(length).encode()
    # Our own server has the whole body in a file by now. Under another one the length has to do.
    body = request.META["wsgi.input"]
    if isinstance(body, IOBase) and body.seekable():
        start = body.tell()
        yield from iter(partial(body.read, _CHUNK), b"")
        body.seek(start)


def _part(name: str, value: object) -> Iterator[bytes]:
    if not isinstance(value, File):
        yield f"\n{name}={len(str(value))}:{value}".encode()
        return
    yield f"\n{name}={value.name}:{value.size}:".encode()
    yield from value.chunks()
    value.seek(0)
