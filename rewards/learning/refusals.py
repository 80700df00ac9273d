"""The base class of the learning core's refusals: the caller can mend what their one sentence says."""

from __future__ import annotations


class Refused(Exception):
    """Bad input; the command prints the sentence and ends with code 2."""


def gettext_noop(text: str) -> str:
    """Marks a sentence for the translators of those who show it. The core itself speaks English."""
    return text
