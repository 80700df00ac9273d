"""What the web's processes know of each other: connections by place, and that they go round, in memory they share.

A connection that is kept alive stays with the process that accepted it, and whoever is awake accepts. Left at that, one
process may end up with all annotators, who wait for each other while another process has nothing to do.
"""

import mmap

_GONE = 2**31 - 1


class Places:
    """One place for each process. Made before they are forked."""

    def __init__(self, number: int) -> None:
        cells = memoryview(mmap.mmap(-1, 2 * 4 * number)).cast("i")
        self._held, self._rounds = cells[:number], cells[number:]
        for place in range(number):
            self.leave(place)

    def leave(self, place: int) -> None:
        """The process has ended: nobody waits for it to accept."""
        self._held[place] = _GONE

    def hold(self, place: int, connections: int) -> None:
        self._held[place] = connections

    def held(self, place: int) -> int:
        return self._held[place]

    def has_more(self, place: int) -> bool:
        """Whether another process has fewer connections."""
        return self._held[place] > min(self._held)

    def go_round(self, place: int) -> None:
        """The process' loop is alive."""
        self._rounds[place] = (self._rounds[place] + 1) % _GONE

    def rounds(self, place: int) -> int:
        return self._rounds[place]
