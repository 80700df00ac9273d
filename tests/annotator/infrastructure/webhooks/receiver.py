"""A receiver of webhooks: a real HTTP server on this machine, which verifies signatures with the library's own code."""

import ssl
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from standardwebhooks import Webhook as Verifier

CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBbTCCAROgAwIBAgIBATAKBggqhkjOPQQDAjAYMRYwFAYDVQQDDA1ob29rcy5l
eGFtcGxlMCAXDTI0MDEwMTAwMDAwMFoYDzIxMjQwMTAxMDAwMDAwWjAYMRYwFAYD
VQQDDA1ob29rcy5leGFtcGxlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEHNh0
JhZfPOfClsOcyNvhfVWo5Y0ABcGSX5qi3D1jVfsLEVI50SXSr8eyvXwcauSeXM+h
h/87YMc19L4/laeRTKNMMEowDwYDVR0TAQH/BAUwAwEB/zAYBgNVHREEETAPgg1o
b29rcy5leGFtcGxlMB0GA1UdDgQWBBRc+QKOSoDq8HgYCMRFPiqpuA3B8DAKBggq
hkjOPQQDAgNIADBFAiBMvhrBv1qfdYyffHlOH+O4SAtv3G0WBULNU/2qX2pHkAIh
AK5W7S0SxcDA9VLi4wGAAZuKBxCpwrY6iiCz9seJc7tu
-----END CERTIFICATE-----
"""
"""Of hooks.example alone, signed by itself, until 2124."""
KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgs8PDxPekwWk/DaKf
Dz9otRev+DIPg21+/t4BqOggsSehRANCAAQc2HQmFl8858KWw5zI2+F9VajljQAF
wZJfmqLcPWNV+wsRUjnRJdKvx7K9fBxq5J5cz6GH/ztgxzX0vj+Vp5FM
-----END PRIVATE KEY-----
"""
"""The certificate's, and of no use elsewhere."""


@dataclass
class Receiver:
    """What has come in, and how it is answered: by `answers` in turn, then with 200."""

    port: int
    answers: list[int] = field(default_factory=list)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    seconds: float = 0.0
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?key=1"

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _ in self.received]

    def verified(self, secret: str) -> list[Any]:
        """Every message, once its signature is found to be right."""
        return [Verifier(secret).verify(body, headers) for headers, body in self.received]


@contextmanager
def listening(*, tls: bool = False) -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            made.received.append(({name.lower(): value for name, value in self.headers.items()}, body))
            time.sleep(made.seconds)
            self.send_response(made.answers.pop(0) if made.answers else 200)
            for name, value in made.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(made.body)

        def log_message(self, format: str, *args: Any) -> None:
            """Writes nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made = Receiver(server.server_port)
        if tls:
            server.socket = _tls().wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield made
        server.shutdown()
        thread.join()


def _tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "certificate")
        file.write_text(KEY + CERTIFICATE)
        context.load_cert_chain(file)
    return context
