"""One process of the web: a loop that accepts, reads and writes, and the threads that answer requests."""

import mmap
import socket
import time
from typing import Any

from waitress.adjustments import Adjustments
from waitress.server import TcpWSGIServer

from annotator.launch.webserver.channel import Channel
from annotator.launch.webserver.thread_pools import Lanes

GIVE_WAY_SECONDS = 0.02
"""How long a process with fewer connections gets to accept a new one; if it has not by then, it is too busy."""
AT_ONCE = 8
"""How many connections are accepted together after giving way in vain: one by one, a burst would take seconds."""
ROUND_SECONDS = 1.0
GRACE_SECONDS = 5
MOST_CONNECTIONS = 1_000
MOST_HEADER_BYTES = 64 * 1024
STREAM_BYTES = 1_000_000
"""How much of an answer may wait for its reader in memory; beyond that, the thread that makes it waits."""
_MOST = 2**31 - 1
"""The largest number that a cell holds: four bytes with a sign."""


class SharedCounters:
    """What the processes know of each other, in memory that they share. To be made before they are forked.

    A connection that is kept alive stays with the process that accepted it, and whoever is awake accepts. Left at that,
    one process may end up with all annotators, who wait for each other while another process has nothing to do.

    There is no lock: a cell has one writer at a time, and a number that is a moment old costs no more than a connection
    in the busier process.
    """

    def __init__(self, number: int) -> None:
        cells = memoryview(mmap.mmap(-1, 2 * 4 * number)).cast("i")
        self._connections, self._rounds = cells[:number], cells[number:]
        for place in range(number):
            self.clear(place)

    def clear(self, place: int) -> None:
        """Marks the place as empty: with the most connections of all, nobody gives way to it."""
        self._connections[place] = _MOST

    def set_connections(self, place: int, connections: int) -> None:
        self._connections[place] = connections

    def is_busiest(self, place: int) -> bool:
        """Returns whether another process has fewer connections."""
        return self._connections[place] > min(self._connections)

    def tick(self, place: int) -> None:
        """Counts a round of the process' loop, which shows that it does not hang."""
        self._rounds[place] = (self._rounds[place] + 1) % _MOST

    def rounds(self, place: int) -> int:
        return self._rounds[place]


class Server(TcpWSGIServer):  # type: ignore[misc]
    channel_class = Channel
    accepting: bool

    def __init__(
        self, application: Any, listener: socket.socket, *, counters: SharedCounters, place: int, threads: int
    ) -> None:
        self.counters, self.place = counters, place
        self.accepts_from = self.looked_at = 0.0
        self.giving_way = self.gave_way = False
        self.stops_by: float | None = None
        adjustments = Adjustments(
            sockets=[listener],
            threads=threads,
            recv_bytes=2**16,
            max_request_header_size=MOST_HEADER_BYTES,
            # A body stays in memory up to this, and goes to a file beyond. A stranger may not send as much, and so
            # writes nothing to the disk.
            inbuf_overflow=2**19,
            outbuf_high_watermark=STREAM_BYTES,
            # Above the watermark, so that a streamed answer stays in memory and out of temporary files.
            outbuf_overflow=4 * STREAM_BYTES,
            # Clients that hang up are no errors of ours.
            log_socket_errors=False,
            # Without the proxy's headers nobody would know that a request came by https; settings.py says which of
            # them are believed.
            clear_untrusted_proxy_headers=False,
            ident=None,
        )
        sockinfo = (listener.family, listener.type, listener.proto, listener.getsockname())
        super().__init__(
            application,
            {},
            True,
            listener,
            dispatcher=Lanes(threads),
            adj=adjustments,
            sockinfo=sockinfo,
            bind_socket=False,
        )
        self.count_connections()

    def run(self) -> None:
        """Serves until `stop`, and then for as long as requests are being answered, within GRACE_SECONDS."""
        while self.stops_by is None or (self._map and time.monotonic() < self.stops_by):
            # After giving way it is 0 for one round, in which we accept what nobody else has.
            giving_way = time.monotonic() < self.accepts_from
            self.gave_way, self.giving_way = self.giving_way and not giving_way, giving_way
            self.asyncore.poll2(GIVE_WAY_SECONDS if giving_way else 0 if self.gave_way else ROUND_SECONDS, self._map)
            self.counters.tick(self.place)
            self._close_overdue()
            if self.stops_by is not None:
                self._close_idle()
        self.task_dispatcher.shutdown()

    def stop(self) -> None:
        """Asks the loop to end. Safe in a signal handler, which only sets a time and wakes the loop."""
        self.stops_by = self.stops_by or time.monotonic() + GRACE_SECONDS
        self.pull_trigger()

    def _close_overdue(self) -> None:
        """Closes connections that have missed a deadline or were closed by the other side, once a second.

        It calls `handle_close`, where waitress' own way is to mark the connection and close it when it can be written
        to next: a connection whose reader stalls never can.
        """
        now = time.monotonic()
        if now - self.looked_at < ROUND_SECONDS:
            return
        self.looked_at = now
        gone = [one for one in self.active_channels.values() if one.is_overdue(now) or one.has_hung_up()]
        for channel in gone:
            channel.handle_close()

    def _close_idle(self) -> None:
        """Stops accepting, and closes the connections that wait for no answer; the loop ends with the last one."""
        if self.accepting:
            self.counters.clear(self.place)  # the other processes accept what comes now
            self.accepting = False
            self.del_channel()
            self.socket.close()
        for channel in [channel for channel in self.active_channels.values() if channel.is_idle()]:
            channel.handle_close()
        if not self.active_channels:
            self._map.clear()

    # Accepting ---------------------------------------------------------------------------------------------

    def readable(self) -> bool:
        return self.accepting and not self.giving_way

    def handle_accept(self) -> None:
        """Accepts a connection, unless a process with fewer connections shall have it first."""
        now = time.monotonic()
        if not self.gave_way and self.counters.is_busiest(self.place):
            self.accepts_from = now + GIVE_WAY_SECONDS
            return
        if len(self.active_channels) >= MOST_CONNECTIONS and not self._make_room():
            # Full, and nobody to close: the kernel's queue holds the connection until we look again.
            self.accepts_from = now + GIVE_WAY_SECONDS
            return
        for _ in range(AT_ONCE if self.gave_way else 1):
            super().handle_accept()

    def _make_room(self) -> bool:
        """Closes the connection that has waited longest without a request to answer; returns False if there is none."""
        idle = [channel for channel in self.active_channels.values() if channel.is_idle()]
        if idle:
            min(idle, key=lambda channel: max(channel.began, channel.idle_since)).handle_close()
        return bool(idle)

    def large_bodies(self) -> int:
        """Counts the connections with a body that was asked about, whether it still arrives or is being worked on."""
        # Over a copy: a worker's thread counts while the loop's thread accepts and closes connections.
        return sum(channel.brings_much() for channel in list(self.active_channels.values()))

    def count_connections(self) -> None:
        # A process that is stopping has left its place, and must not look as if it had room.
        if self.stops_by is None:
            self.counters.set_connections(self.place, len(self.active_channels))
