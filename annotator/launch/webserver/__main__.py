"""`python -m annotator.launch.webserver`: serves on HOST and PORT by WEB_PROCESSES processes of WEB_THREADS threads."""

import os
import sys
from io import BytesIO
from wsgiref.handlers import SimpleHandler

from django.conf import settings
from django.urls import get_resolver

from annotator.launch.webserver.processes import Processes, listening_socket
from annotator.launch.webserver.thread_pools import LIVE
from annotator.wsgi import application


def warm_up() -> None:
    """Loads once what the first request of each process would load, before the processes are forked.

    The request for LIVE asks no database: a connection from before the forks would be shared by all processes.
    """
    _ = get_resolver().url_patterns
    server = {"SERVER_NAME": "localhost", "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1"}
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": LIVE, **server}
    SimpleHandler(BytesIO(), BytesIO(), sys.stderr, environ).run(application)


def main() -> int:
    warm_up()
    listener = listening_socket(os.environ.get("HOST", "127.0.0.1"), settings.PORT)
    return Processes(application, listener, number=settings.WEB_PROCESSES, threads=settings.WEB_THREADS).run()


if __name__ == "__main__":
    sys.exit(main())
