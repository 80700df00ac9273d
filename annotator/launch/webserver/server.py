"""One process of the web: a loop that accepts, reads and writes, and the threads that work."""

import socket
import time
from typing import Any

from waitress.adjustments import Adjustments
from waitress.server import TcpWSGIServer

from annotator.launch.webserver.channel import Channel
from annotator.launch.webserver.connections import Places
from annotator.launch.webserver.thread_pools import Lanes

GIVE_WAY_SECONDS = 0.02
"""For a process with fewer connections to accept a new one; after that whoever has fewer is too busy."""
AT_ONCE = 8
"""Connections that are accepted together where giving way was in vain: one by one a burst would take seconds."""
ROUND_SECONDS = 1.0
GRACE_SECONDS = 5
MOST_CONNECTIONS = 1_000
MOST_HEADER_BYTES = 64 * 1024
STREAM_BYTES = 1_000_000
"""Of an answer as it is made: beyond these its thread waits for the reader."""


class Server(TcpWSGIServer):  # type: ignore[misc]
    channel_class = Channel
    accepting: bool

    def __init__(self, application: Any, listener: socket.socket, *, places: Places, place: int, threads: int) -> None:
        self.places, self.place = places, place
        self.accepts_from = self.looked_at = 0.0
        self.giving_way = self.gave_way = False
        self.stops_by: float | None = None
        adjustments = Adjustments(
            sockets=[listener],
            threads=threads,
            recv_bytes=2**16,
            max_request_header_size=MOST_HEADER_BYTES,
            # Less of a body stays in memory, more goes to a file; who is not logged in may not send as much.
            inbuf_overflow=2**19,
            outbuf_high_watermark=STREAM_BYTES,
            outbuf_overflow=4 * STREAM_BYTES,
            log_socket_errors=False,
            # The proxy's word is needed for https; settings.py says what is believed.
            clear_untrusted_proxy_headers=False,
            ident=None,
        )
        where = (listener.family, listener.type, listener.proto, listener.getsockname())
        super().__init__(
            application,
            {},
            True,
            listener,
            dispatcher=Lanes(threads),
            adj=adjustments,
            sockinfo=where,
            bind_socket=False,
        )
        self.count_connections()

    def run(self) -> None:
        """Until `stop`, and then for as long as requests are being answered, within GRACE_SECONDS."""
        while self.stops_by is None or (self._map and time.monotonic() < self.stops_by):
            self.asyncore.poll2(self._patience(), self._map)
            self.places.go_round(self.place)
            self._close_overdue()
            if self.stops_by is not None:
                self._close_idle()
        self.task_dispatcher.shutdown()

    def _patience(self) -> float:
        """How long to wait for something to happen. After giving way we look once for what nobody has accepted."""
        giving_way = time.monotonic() < self.accepts_from
        self.gave_way, self.giving_way = self.giving_way and not giving_way, giving_way
        return GIVE_WAY_SECONDS if giving_way else 0 if self.gave_way else ROUND_SECONDS

    def stop(self) -> None:
        """Safe in a signal handler: the loop does the rest."""
        self.stops_by = self.stops_by or time.monotonic() + GRACE_SECONDS
        self.pull_trigger()

    def _close_overdue(self) -> None:
        """At once: a connection whose reader stalls is never writable again, where waitress would close it."""
        now = time.monotonic()
        if now - self.looked_at < ROUND_SECONDS:
            return
        self.looked_at = now
        for channel in [channel for channel in self.active_channels.values() if channel.is_overdue(now)]:
            channel.handle_close()

    def _close_idle(self) -> None:
        if self.accepting:
            self.places.leave(self.place)
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
        now = time.monotonic()
        if not self.gave_way and self.places.has_more(self.place):
            self.accepts_from = now + GIVE_WAY_SECONDS
            return
        if len(self.active_channels) >= MOST_CONNECTIONS and not self._make_room():
            self.accepts_from = now + GIVE_WAY_SECONDS
            return
        for _ in range(AT_ONCE if self.gave_way else 1):
            super().handle_accept()

    def _make_room(self) -> bool:
        """Of too many connections the one goes that has waited longest without a request to answer."""
        idle = [channel for channel in self.active_channels.values() if channel.is_idle()]
        if idle:
            min(idle, key=lambda channel: max(channel.began, channel.idle_since)).handle_close()
        return bool(idle)

    def large_bodies(self) -> int:
        """Those that were asked about, arriving or being worked on. A thread asks while the loop's own accepts more."""
        return sum(channel.brings_much() for channel in list(self.active_channels.values()))

    def count_connections(self) -> None:
        if self.stops_by is None:
            self.places.hold(self.place, len(self.active_channels))
