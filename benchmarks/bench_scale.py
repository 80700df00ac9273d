"""What things cost as they grow: `python -m benchmarks.bench_scale [PART [...]]`; without a part, all of them.

| part | measures | its arguments |
|---|---|---|
| growth | a claim and a submission as the tasks grow | `--tasks` |
| segments | submissions of 40 rated segments a response | `--tasks`, `--segments`, `--seconds`, `--rounds` |
| memory | what each process holds of a large model | `--processes`, `--layers` |
| pii | what is found of personal information, and how fast | the file of texts |
| segmenting | how well and how fast texts are cut | libraries to compare with |
"""

import sys
from collections.abc import Sequence
from importlib import import_module

from benchmarks.measuring import each_part

PARTS = ("growth", "segments", "memory", "pii", "segmenting")


def main(words: Sequence[str]) -> int:
    if not words:
        return each_part("benchmarks.bench_scale", PARTS, words)
    if words[0] not in PARTS:
        sys.exit(f"There is no part {words[0]}: write one of {', '.join(PARTS)}.")
    import_module(f"benchmarks.scale.{words[0]}").main(words[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
