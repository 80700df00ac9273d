"""The root of every named refusal of the learning core: something the caller can mend, said in one sentence."""

from __future__ import annotations


class Refused(Exception):
    """Bad input; the command prints the sentence and ends with code 2."""
