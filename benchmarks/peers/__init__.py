"""Other products and trainers, driven to do the same work; `benchmarks/bench_peers.py` says how to name them."""

import time
import urllib.request
from contextlib import suppress


def wait_until_it_answers(address: str, *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        with suppress(OSError):
            urllib.request.urlopen(address, timeout=seconds).close()
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{address} does not answer")
        time.sleep(0.2)
