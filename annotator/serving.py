"""How gunicorn serves the web; read by `gunicorn --config python:annotator.serving`."""

import gc
import os
from typing import Any

from annotator.connections import EvenWorker, leave_place, take_place

bind = f"{os.environ.get('HOST', '127.0.0.1')}:{os.environ.get('PORT', '8000')}"
worker_class = EvenWorker
workers = 2
threads = 3
# One import of Django, shared by the workers; nothing connects to the database before they are forked.
preload_app = True
# Long exports stream from threads, which answer the arbiter all the same.
timeout = 60
graceful_timeout = 10
keepalive = 30
errorlog = "-"
# Nobody asks for it, and it is one more socket in the home folder.
control_socket_disable = True


def when_ready(_server: Any) -> None:
    """Before the workers are forked: the collector leaves alone what they share, else it would copy it into each."""
    gc.collect()
    gc.freeze()


def pre_fork(server: Any, worker: Any) -> None:
    take_place(worker, server.WORKERS.values())


def child_exit(_server: Any, worker: Any) -> None:
    leave_place(worker)
