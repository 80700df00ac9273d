"""A real S3 server for tests, on which each test has a bucket of its own."""

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.celery_workers import wait_for
from tests.web import free_port

ACCOUNT = {"AWS_ACCESS_KEY_ID": "for-tests", "AWS_SECRET_ACCESS_KEY": "for-tests", "AWS_REGION": "us-east-1"}

# By its scope the server knows which service is asked; it checks no signature.
_SIGNED = "AWS4-HMAC-SHA256 Credential=for-tests/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"


class ObjectStore:
    """The server, which can be away for a while without losing anything."""

    def __init__(self) -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "moto.server", "-p", str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self._answers, what="the object store")

    def variables(self) -> dict[str, str]:
        return {**ACCOUNT, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}"}

    def bucket(self, name: str) -> str:
        """Makes a bucket; returns its address."""
        assert self.ask("PUT", f"/{name}")[0] == 200
        return f"s3://{name}"

    def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, body, {"Authorization": _SIGNED})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Answers nobody meanwhile: who asks waits, as for a server that is cut off."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGCONT)
        self._process.kill()
        self._process.wait()

    def _answers(self) -> bool:
        try:
            return self.ask("GET", "/moto-api/")[0] == 200
        except OSError:
            return False


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    store = ObjectStore()
    before = {name: os.environ.get(name) for name in store.variables()}
    os.environ.update(store.variables())
    try:
        yield store
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value
        store.stop()
