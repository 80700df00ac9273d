"""A small REST client over real HTTP, as a script would write it."""

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Rest:
    """Calls below /api/v1/ with a token."""

    base: str
    token: str = ""

    def call(self, method: str, path: str, body: Any = None, *, media: str = "application/json") -> Answer:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"Content-Type": media, "Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Token {self.token}"
        request = Request(f"{self.base}/api/v1/{path}", data=data, method=method, headers=headers)
        try:
            with urlopen(request, timeout=60) as answer:
                return Answer(answer.status, answer.read(), dict(answer.headers))
        except HTTPError as error:
            return Answer(error.code, error.read(), dict(error.headers))

    def get(self, path: str) -> Any:
        return self._fine(self.call("GET", path)).data

    def post(self, path: str, body: Any = None) -> Any:
        return self._fine(self.call("POST", path, {} if body is None else body)).data

    def put(self, path: str, body: Any) -> Any:
        return self._fine(self.call("PUT", path, body)).data

    def _fine(self, answer: Answer) -> Answer:
        assert answer.status < 300, f"{answer.status}: {answer.body[:500]!r}"
        return answer
