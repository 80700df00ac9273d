"""`python -m annotator.serving`: the web, on HOST and PORT, in WEB_PROCESSES processes of WEB_THREADS threads."""

import os
import sys

from django.conf import settings
from django.urls import get_resolver

from annotator.serving.processes import Processes, listening_socket
from annotator.wsgi import application


def main() -> int:
    _ = get_resolver().url_patterns  # every view is imported once, before the processes are forked
    listener = listening_socket(os.environ.get("HOST", "127.0.0.1"), settings.PORT)
    return Processes(application, listener, number=settings.WEB_PROCESSES, threads=settings.WEB_THREADS).run()


if __name__ == "__main__":
    sys.exit(main())
