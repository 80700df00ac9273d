"""Reads back the feedback that came with a file, which the metadata of a task and of its responses keep.

It belongs to no rating: a rating without scores would have to be told apart wherever ratings are counted.
"""

from collections.abc import Mapping, Sequence
from typing import Any


def texts_of(feedback: Any) -> list[str]:
    """Returns what several people wrote about one response; it may be a list, a single text or missing."""
    texts = [feedback] if isinstance(feedback, str) else feedback if isinstance(feedback, list) else []
    return [text for text in texts if isinstance(text, str) and text]


def by_raters(metadata: Mapping[str, Any], votes: Sequence[tuple[int | None, str]]) -> list[tuple[str, str]]:
    """Returns what each voter wrote about the first and about the second response; empty texts if nothing came.

    A voter is known by the strength and the reason, in which the kept list and the stored preferences agree. Of two
    who are alike in both, the first one gets what comes first.
    """
    kept = metadata.get("individual_preference")
    if not kept:
        return [("", "")] * len(votes)
    waiting = [each for each in kept if isinstance(each, dict)] if isinstance(kept, list) else []
    found = []
    for strength, reason in votes:
        place = next((n for n, given in enumerate(waiting) if _said(given) == (strength, reason)), None)
        given = {} if place is None else waiting.pop(place)
        found.append((_text(given.get("feedback1")), _text(given.get("feedback2"))))
    return found


def _said(given: Mapping[str, Any]) -> tuple[Any, str]:
    return given.get("score"), _text(given.get("reasoning"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
