"""Reasons that are stored as codes, in the words of each reader."""

import re
from typing import Any

import pytest

from rewards.reasons import SENTENCES, Reason, coded, in_english, in_words
from rewards.runs.new_labels import News

CANCELLED = coded("cancelled_before", run="5000")
ON_NEW_SNAPSHOT = (
    "noch einmal Lauf 5000, der abgebrochen worden war, mit einem neuen Snapshot: Aufgaben des alten wurden geschwärzt "
    "oder gelöscht"
)
PARAMS: dict[str, Any] = {
    "prompts": 4000, "fewest": 5, "rival": coded("mean"), "gain": 0.05, "attributes": "wit", "aspects": "wit",
    "after": 0.6, "before": 0.64, "name": "zoe", "run": "5", "reason": CANCELLED, "news": News(1, 0).reason(),
    "number": 80, "hours": 30, "labels": 80, "preferences": 3, "rate": 64.0, "low": 53.1,
}  # fmt: skip


@pytest.mark.usefixtures("german")
@pytest.mark.parametrize("code", SENTENCES)
def test_every_reason_is_said_in_the_language_of_the_reader(code: str) -> None:
    reason = coded(code, **{name: PARAMS[name] for name in re.findall(r"%\((\w+)\)s", SENTENCES[code])})
    assert in_words(reason) != in_english(reason)
    assert "%(" not in in_words(reason)


@pytest.mark.usefixtures("german")
@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (coded("on_new_snapshot", reason=CANCELLED), ON_NEW_SNAPSHOT),
        (
            coded("enough_news", news=News(80, 3).reason(), number=80),
            "80 neue Labels und 3 neue Präferenzen, und das Projekt trainiert neu nach 80",
        ),
        (coded("preferences", preferences=1500), "1.500 neue Präferenzen"),
        (
            coded("as_many_wrong", rival=coded("mean")),
            "Bei jedem Prompt bringt es so viele Paare in die falsche Reihenfolge wie der Mittelwert.",
        ),
        ("requested by zoe", "requested by zoe"),
    ],
)
def test_parameters_are_said_in_it_too_and_own_words_stay(reason: Reason, said: str) -> None:
    assert in_words(reason) == said


def test_programs_read_english() -> None:
    assert in_english(coded("below_zero", prompts=1500, gain=0.05)).endswith(
        "These 1,500 prompts would show a gain of about 0.050 or more."
    )
