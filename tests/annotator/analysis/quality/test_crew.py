"""How soon raters whose faults are known are flagged, and how often those without one are: the published figures."""

from collections import Counter

import pytest

from annotator.analysis.quality.flags import Flag, FlagKind, Measured, flagged, is_too_few
from tests.annotator.analysis.quality.crew import FAULTS, Fault, crew

TRIES = 8
OF_ORDER_OR_TIME = {FlagKind.SPEEDING, FlagKind.POSITION, FlagKind.REPEATING, FlagKind.DRIFTING}


@pytest.mark.parametrize(("each", "noisy", "random", "hasty"), [(15, 0.5, 0.95, 0.9), (30, 0.9, 1, 1), (60, 0.9, 1, 1)])
def test_faults_are_found_soon_and_few_others_are_accused(each: int, noisy: float, random: float, hasty: float) -> None:
    flags, tried = Counter[Fault](), Counter[Fault](TRIES * FAULTS)
    for seed in range(TRIES):
        flags.update(fault for fault, own in zip(FAULTS, crew(seed, each=each).flags(), strict=True) if own)
    found = {fault: flags[fault] / tried[fault] for fault in Fault}
    assert found[Fault.NOISY] >= noisy
    assert found[Fault.RANDOM] >= random
    assert found[Fault.HASTY] >= hasty
    assert found[Fault.NONE] <= 0.05


@pytest.mark.parametrize("each", [4, 8, 10, 20])
def test_whoever_answers_at_random_is_flagged_or_too_few_to_judge(each: int) -> None:
    """However few tasks they have rated: nothing else would be said of somebody whose work is fine."""
    cleared = 0
    for seed in range(TRIES):
        for fault, person, own in zip(FAULTS, *judged(seed, each), strict=True):
            cleared += fault is Fault.RANDOM and not own and not is_too_few(person.measures)
    assert cleared == 0


def judged(seed: int, each: int) -> tuple[list[Measured], list[list[Flag]]]:
    everybody = crew(seed, each=each).measured()
    return everybody, flagged(everybody)


def test_others_are_cleared_soon() -> None:
    everybody = crew(1, each=20).measured()
    unsure = [fault for fault, person in zip(FAULTS, everybody, strict=True) if is_too_few(person.measures)]
    assert Fault.NONE not in unsure


def test_imported_work_gives_no_flag_of_order_or_time() -> None:
    """Its order was another tool's, and so was its clock."""
    imported = crew(1, each=60, imported=True)
    imported.work.annotations["active"] = 0.5
    imported.work.annotations["first"] = imported.work.annotations["preference"] > 0
    kinds = {flag.kind for own in imported.flags() for flag in own}
    assert not kinds & OF_ORDER_OR_TIME
    assert FlagKind.DISAGREEING in kinds
