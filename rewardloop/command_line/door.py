"""Reads the command, has its verb done, and makes of every error a line and an exit code."""

import os
import sys
from collections.abc import Sequence

from rewardloop.command_line.arguments import parser
from rewardloop.command_line.server_programs import PROGRAMS, start
from rewardloop.command_line.terminal import Terminal
from rewardloop.errors import Refused, RewardloopError, Unauthorized

INTERRUPTED = 130
LISTED = ("projects", "models")
"""Words that list by themselves."""
MOST_FIELDS = 5


def main(words: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if words is None else words) or ["--help"]
    if given[0] in PROGRAMS:
        return start(given[0], given[1:])
    for stream in (sys.stdout, sys.stderr):
        # A text that the terminal's encoding lacks must not end the command.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    if given[0] in LISTED and (len(given) == 1 or given[1] in {"--json", "--archived"}):
        given.insert(1, "list")
    options = parser().parse_args(given)
    terminal = Terminal(as_json=options.json)
    try:
        code: int = options.does(options, terminal)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Who reads has seen enough; Python would complain about it once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except RewardloopError as error:
        way_in = " Log in: rewardloop login" if isinstance(error, Unauthorized) and options.verb != "login" else ""
        terminal.note(f"rewardloop: {sentence(error)}{way_in}")
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        terminal.note(f"rewardloop: {where}{error.strerror or error}")
        return 1
    return code


def sentence(error: RewardloopError) -> str:
    """Returns what is wrong: with all fields, where there are several."""
    if isinstance(error, Refused) and len(error.errors) > 1:
        fields = [f"{place}: {' '.join(texts)}" for place, texts in list(error.errors.items())[:MOST_FIELDS]]
        return "; ".join(fields)
    return str(error)
