"""The processes behind one listening socket.

They are forked from one that has imported everything, and are started again when they die.
"""

import gc
import logging
import os
import resource
import signal
import socket
import sys
import time
import traceback
from typing import Any

from annotator.launch import child_processes
from annotator.launch.webserver.connections import Places
from annotator.launch.webserver.server import GRACE_SECONDS, MOST_CONNECTIONS, Server

ROUND_SECONDS = 0.2
SILENT_SECONDS = 60
"""A process whose loop has not gone round for so long hangs, and is replaced."""
SHORT_LIFE_SECONDS = 2
SIGNALS = (signal.SIGTERM, signal.SIGINT)
_BACKLOG = 1_024
_log = logging.getLogger(__name__)


def listening_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=_BACKLOG)


class Processes:
    """Keeps so many processes with so many threads each; ends them in peace on SIGTERM."""

    def __init__(self, application: Any, listener: socket.socket, *, number: int, threads: int) -> None:
        self.application, self.listener, self.threads = application, listener, threads
        self.places = Places(number)
        self.running: dict[int, int] = {}
        """Process ids by place."""
        self._due = [0.0] * number
        self._rounds = [(0, 0)] * number
        self._stopping = False

    def run(self) -> int:
        _allow_sockets()
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # it warns whenever a request waits for a thread
        for number in SIGNALS:
            signal.signal(number, self._stop)
        # The collector leaves alone what the processes share, else it would copy it into each.
        gc.collect()
        gc.freeze()
        while not self._stopping:
            self._reap()
            self._start_missing()
            self._replace_hanging()
            time.sleep(ROUND_SECONDS)
        self._end()
        return 0

    def _stop(self, _number: int, _frame: Any) -> None:
        self._stopping = True

    def _start_missing(self) -> None:
        for place, due in enumerate(self._due):
            if place not in self.running and time.monotonic() >= due:
                self._due[place] = time.monotonic() + SHORT_LIFE_SECONDS  # what dies at once is not started at once
                self._rounds[place] = (0, 0)
                self._fork(place)

    def _fork(self, place: int) -> None:
        tie_to_us = child_processes.die_with_parent(signal.SIGKILL)
        # A signal between the fork and the child's own handlers would get lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            pid = os.fork()
        except OSError as error:  # no memory, or no more processes; the others go on, and it is tried again
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            _log.error("A process of the web could not be started: %s", error)
            return
        if pid == 0:
            tie_to_us()
            self._serve(place)
        self.running[place] = pid
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def _serve(self, place: int) -> None:
        """In the child, which never returns to what its parent was doing."""
        code = 1
        try:
            server = Server(self.application, self.listener, places=self.places, place=place, threads=self.threads)
            signal.signal(signal.SIGTERM, lambda *_: server.stop())
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which asks us to end
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            server.run()
            code = 0
        finally:
            if code:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _reap(self) -> None:
        for place, pid in list(self.running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self.running[place]
                self.places.leave(place)
                if not self._stopping:
                    _log.error("Process %d of the web has ended (%d) and is started again", pid, status)

    def _replace_hanging(self) -> None:
        """Counted in rounds of ours, so that a machine that slept blames nobody."""
        for place, pid in self.running.items():
            rounds, silent = self.places.rounds(place), self._rounds[place]
            self._rounds[place] = (rounds, silent[1] + 1 if silent[0] == rounds else 0)
            if self._rounds[place][1] * ROUND_SECONDS > SILENT_SECONDS:
                _log.error("Process %d of the web hangs and is replaced", pid)
                os.kill(pid, signal.SIGKILL)

    def _end(self) -> None:
        self.listener.close()
        deadline = time.monotonic() + GRACE_SECONDS + 1
        for pid in self.running.values():
            os.kill(pid, signal.SIGTERM)
        while self.running and time.monotonic() < deadline:
            time.sleep(0.05)
            self._reap()
        for pid in self.running.values():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _allow_sockets() -> None:
    """Each connection is an open file, and may have another one for its body."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 3 * MOST_CONNECTIONS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
