"""What the benchmarks share: their arguments, tables and JSON lines, times and quantiles, and the real data."""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from annotator.launch.install import ROOT

DATA = Path(os.environ.get("SHARED_DATA", ROOT.parent / "shared" / "data"))
"""The folder of the real data sets."""
HH_PAIRS = Path(os.environ.get("HH_PAIRS", DATA / "hh_pairs_train.jsonl.gz"))


def options(words: Sequence[str], *, parts: Sequence[str] = (), **defaults: Any) -> Any:
    """Reads `--NAME VALUE` for each default, as its type is: a list takes several, False is a flag; and parts by name.

    Without a part, `parts` are all of them.
    """
    parser = argparse.ArgumentParser()
    if parts:
        parser.add_argument("parts", nargs="*", metavar="|".join(parts))
    for name, default in defaults.items():
        flag, several = f"--{name.replace('_', '-')}", isinstance(default, list)
        if default is False:
            parser.add_argument(flag, action="store_true")
        else:
            kind = type(default[0] if several else default)
            parser.add_argument(flag, type=kind, default=default, nargs="*" if several else None)
    given = parser.parse_args(words)
    if parts and set(given.parts) - set(parts):
        parser.error(f"the parts are {', '.join(parts)}")
    if parts:
        given.parts = given.parts or list(parts)
    return given


def each_part(module: str, parts: Sequence[str], words: Sequence[str]) -> int:
    """Runs the parts in processes of their own, as each has its own servers; returns the worst exit status."""
    command = [sys.executable, "-m", module]
    return max(subprocess.run([*command, part, *words], check=False).returncode for part in parts)


def heading(*columns: str) -> None:
    print(f"\n| {' | '.join(columns)} |\n{len(columns) * '|---'}|", flush=True)


def row(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def tell(what: str = "", /, **values: Any) -> None:
    """Prints a JSON line, its numbers rounded."""
    rounded = {key: round(value, 4) if isinstance(value, float) else value for key, value in values.items()}
    print(json.dumps(({"what": what} if what else {}) | rounded), flush=True)


def timed(action: Callable[[], object]) -> tuple[float, Any]:
    """Returns the milliseconds that the action took, and its answer."""
    start = time.perf_counter()
    answer = action()
    return 1000 * (time.perf_counter() - start), answer


def quantile(numbers: Sequence[float], share: float) -> float:
    return sorted(numbers)[min(len(numbers) - 1, int(share * len(numbers)))]


def quantiles(numbers: Sequence[float], digits: int = 1) -> str:
    """Returns the median, the 95th and the 99th percentile as a cell."""
    return " / ".join(f"{quantile(numbers, share):.{digits}f}" for share in (0.5, 0.95, 0.99))


def task_row(number: int, *, prompt: int = 713, response: int = 1493) -> dict[str, Any]:
    """Returns a row to import: texts as long as HelpSteer2's or of so many characters."""
    dice = random.Random(number)
    asked = f"Question {number}: {_text(dice, prompt)}"[:prompt]
    texts = [_text(dice, response) for _ in range(2)]
    return {
        "id": f"t-{number}",
        "messages": [{"role": "user", "content": asked}],
        "responses": [{"text": text} for text in texts],
    }


def _text(dice: random.Random, characters: int) -> str:
    """Returns words; a long text has paragraphs and a list in markdown, as rendering them is part of a page's cost."""
    words = " ".join(dice.choices(_WORDS, k=characters // 4 + 1))[:characters]
    if characters < 600:
        return words
    return f"{words[:400]}\n\n- **{words[400:440]}**\n- {words[440:600]}\n\n{words[600:]}"


_WORDS = ("water", "light", "time", "question", "answer", "because", "small", "the", "a", "of", "and", "with", "is")
