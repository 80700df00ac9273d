"""What the web's processes know of each other, in memory that they share: their connections, and that they are alive.

A connection that is kept alive stays with the process that accepted it, and whoever is awake accepts. Left at that, one
process may end up with all annotators, who wait for each other while another process has nothing to do.
"""

import mmap

_MOST = 2**31 - 1
"""The largest number that a cell holds: four bytes with a sign."""


class Places:
    """A place for each process, to be made before they are forked.

    There is no lock: a cell has one writer at a time, and a number that is a moment old costs no more than a connection
    in the busier process.
    """

    def __init__(self, number: int) -> None:
        cells = memoryview(mmap.mmap(-1, 2 * 4 * number)).cast("i")
        self._connections, self._rounds = cells[:number], cells[number:]
        for place in range(number):
            self.leave(place)

    def leave(self, place: int) -> None:
        """Marks the place as empty: with the most connections of all, nobody gives way to it."""
        self._connections[place] = _MOST

    def hold(self, place: int, connections: int) -> None:
        self._connections[place] = connections

    def has_more(self, place: int) -> bool:
        """Returns whether another process has fewer connections."""
        return self._connections[place] > min(self._connections)

    def go_round(self, place: int) -> None:
        """Counts a round of the process' loop, which shows that it does not hang."""
        self._rounds[place] = (self._rounds[place] + 1) % _MOST

    def rounds(self, place: int) -> int:
        return self._rounds[place]
