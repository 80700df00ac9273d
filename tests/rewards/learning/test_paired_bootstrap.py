from __future__ import annotations

import subprocess
import sys

import pytest

from rewards.learning.paired_bootstrap import paired_bootstrap


def test_a_candidate_that_is_better_everywhere_gains_for_sure() -> None:
    gain = paired_bootstrap([2.0, 4.0, 6.0], [1.0, 2.0, 3.0], [1, 2, 3], seed=0)
    assert gain.mean == pytest.approx(1.0)
    assert gain.low == pytest.approx(1.0)
    assert gain.prompts == 3


def test_noise_is_no_evidence() -> None:
    gain = paired_bootstrap([1.0, 3.0] * 50, [3.0, 1.0] * 50, [2] * 100, seed=0)
    assert gain.low < 0 < gain.high


def test_the_same_seed_gives_the_same_interval() -> None:
    sums = [1.0, 5.0, 2.0], [2.0, 1.0, 2.5], [1, 1, 1]
    assert paired_bootstrap(*sums, seed=7) == paired_bootstrap(*sums, seed=7)


def test_it_refuses_to_judge_without_prompts() -> None:
    with pytest.raises(ValueError, match="one prompt or more"):
        paired_bootstrap([], [], [], seed=0)


def test_it_needs_no_torch() -> None:
    code = "import sys, rewards.learning.paired_bootstrap, rewards.learning.config; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
