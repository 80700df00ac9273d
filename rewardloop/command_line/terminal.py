"""What people and scripts see: lines, tables and JSON on stdout, progress and errors on stderr.

Texts of projects are other people's, so nothing in them may control the terminal.
"""

import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich import progress as bars
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rewardloop.answers import Answer
from rewardloop.errors import RewardloopError
from rewardloop.progress import OnProgress, Progress

_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI: colours, the cursor
    # OSC, DCS and their like: titles, links.
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_BIDI = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C])
"""Characters that turn the direction of text, and could show it in another order than it has."""
LONGEST_CELL = 80
WIDEST = 1_000


def clean(text: object) -> str:
    """Returns a text without anything that controls a terminal; line feeds and tabs stay."""
    plain = _SEQUENCES.sub("", str(text).replace("\r\n", "\n")).translate(_BIDI)
    plain = "".join(sign for sign in plain if sign in "\n\t" or unicodedata.category(sign) not in {"Cc", "Cs"})
    return plain.replace("\u2028", "\n").replace("\u2029", "\n")


def one_line(text: object, longest: int = LONGEST_CELL) -> str:
    """Returns the beginning of a text on one line."""
    line = " ".join(clean(text).split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


class BadInput(RewardloopError):
    """What somebody gave to a verb cannot be read."""


class Terminal:
    """Where a verb writes. With `as_json` it writes only what scripts read: an object on each line."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        # Nothing in a text is markup, and nothing in it is coloured.
        options: dict[str, Any] = {"markup": False, "highlight": False, "emoji": False, "soft_wrap": True}
        # What reads a pipe has no width, in which a cell would go on in the next line.
        self._console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else WIDEST, **options)
        self._errors = Console(file=sys.stderr, **options)

    def say(self, text: object = "") -> None:
        """Writes a text for people."""
        if not self.as_json:
            self._console.print(Text(clean(text)))

    def note(self, text: object) -> None:
        """Writes a line about the work itself, beside what is its result."""
        self._errors.print(Text(one_line(text, 1_000)))

    def data(self, value: Answer | Mapping[str, Any]) -> None:
        """Writes an object for scripts."""
        if self.as_json:
            values = value.raw if isinstance(value, Answer) else value
            # In ASCII: a control character of a text is written as \u001b.
            sys.stdout.write(json.dumps(values, default=str) + "\n")

    def rows(self, columns: Sequence[str], found: Iterable[tuple[Answer, Sequence[object]]]) -> None:
        """Writes a table of the objects' cells, or the objects themselves."""
        if self.as_json:
            for one, _cells in found:
                self.data(one)
            return
        table = Table(box=None, pad_edge=False, header_style="bold")
        for number, column in enumerate(columns):
            table.add_column(column, no_wrap=number == 0)
        for _one, cells in found:
            table.add_row(*(Text(one_line("" if cell is None else cell)) for cell in cells))
        if table.row_count:
            self._console.print(table, soft_wrap=False)
        else:
            self.say("There are none.")

    @contextmanager
    def bar(self) -> Iterator[OnProgress]:
        """Yields what hears of progress and draws a bar: for people at a terminal only."""
        if self.as_json or not sys.stderr.isatty():
            yield None
            return
        sizes = bars.TextColumn("{task.fields[count]}")
        columns = (bars.TextColumn("{task.description}"), bars.BarColumn(), sizes, bars.TimeRemainingColumn())
        with bars.Progress(*columns, console=self._errors) as drawn:
            tasks: dict[str, bars.TaskID] = {}

            def draw(now: Progress) -> None:
                if now.doing not in tasks:
                    tasks[now.doing] = drawn.add_task(now.doing, count="")
                count = f"{now.done:,}" + (f" of {now.total:,}" if now.total else "")
                drawn.update(tasks[now.doing], completed=now.done, total=now.total or None, count=count)

            yield draw
