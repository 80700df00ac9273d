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
from annotator.launch.webserver.server import GRACE_SECONDS, MOST_CONNECTIONS, Server, SharedCounters

ROUND_SECONDS = 0.2
SILENT_SECONDS = 60
"""A process whose loop has stood still for so long hangs, and is replaced."""
SHORT_LIFE_SECONDS = 2
SIGNALS = (signal.SIGTERM, signal.SIGINT)
_BACKLOG = 1_024
_log = logging.getLogger(__name__)


def listening_socket(host: str, port: int) -> socket.socket:
    # Opened once, before the forks: the kernel keeps one queue, and a process that dies loses no waiting connection.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=_BACKLOG)


class Processes:
    """Keeps `number` processes of `threads` threads running; on SIGTERM it lets them finish their requests."""

    def __init__(self, application: Any, listener: socket.socket, *, number: int, threads: int) -> None:
        self.application, self.listener, self.threads = application, listener, threads
        self.counters = SharedCounters(number)
        self.running: dict[int, int] = {}
        """The process ids by place."""
        self._due = [0.0] * number
        self._rounds = [(0, 0)] * number
        self._stopping = False

    def run(self) -> int:
        # The limit of open files: each connection is one, and may have another for its body.
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 3 * MOST_CONNECTIONS
        if soft != resource.RLIM_INFINITY and soft < wanted:
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # it warns whenever a request waits for a thread
        for number in SIGNALS:
            signal.signal(number, self._stop)
        # The collector writes into the objects that it looks at, and a page of memory that is written to is no longer
        # shared but copied into each process. It leaves frozen objects alone.
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
        tie_to_parent = child_processes.die_with_parent(signal.SIGKILL)
        # Blocked until the child has handlers of its own: the parent's, which it inherits, would only set a flag that
        # nobody in the child reads.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            pid = os.fork()
        except OSError as error:  # no memory, or no more processes; the others go on, and it is tried again
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            _log.error("A process of the web could not be started: %s", error)
            return
        if pid == 0:
            tie_to_parent()
            self._serve(place)
        self.running[place] = pid
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def _serve(self, place: int) -> None:
        """Serves requests in the child, and ends the process: it must not return to what its parent was doing."""
        code = 1
        try:
            server = Server(self.application, self.listener, counters=self.counters, place=place, threads=self.threads)
            signal.signal(signal.SIGTERM, lambda *_: server.stop())
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which asks us to end
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            server.run()
            code = 0
        finally:
            if code:
                traceback.print_exc()
            # `_exit` runs none of the parent's exit handlers, and flushes nothing by itself.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _reap(self) -> None:
        for place, pid in list(self.running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self.running[place]
                self.counters.clear(place)  # else the others would wait for it to accept
                if not self._stopping:
                    _log.error("Process %d of the web has ended (%d) and is started again", pid, status)

    def _replace_hanging(self) -> None:
        """Kills the processes whose loops have stood still for SILENT_SECONDS; the next round starts others.

        Silence is counted in rounds of our own loop rather than by the clock, as after a machine has slept the clock
        would blame every process.
        """
        for place, pid in self.running.items():
            rounds, (rounds_before, silent) = self.counters.rounds(place), self._rounds[place]
            self._rounds[place] = (rounds, silent + 1 if rounds == rounds_before else 0)
            if self._rounds[place][1] * ROUND_SECONDS > SILENT_SECONDS:
                _log.error("Process %d of the web hangs and is replaced", pid)
                os.kill(pid, signal.SIGKILL)

    def _end(self) -> None:
        self.listener.close()
        # Each ends by itself within GRACE_SECONDS.
        deadline = time.monotonic() + GRACE_SECONDS + 1
        for pid in self.running.values():
            os.kill(pid, signal.SIGTERM)
        while self.running and time.monotonic() < deadline:
            time.sleep(0.05)
            self._reap()
        for pid in self.running.values():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
