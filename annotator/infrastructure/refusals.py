"""The base class of refusals. Each door turns a Refusal into its own answer: an HTTP error, a message or an exit code.

A subclass is only for what somebody catches by its name; every other refusal is a Refusal with a code of its own.
"""

from collections.abc import Mapping


class Refusal(Exception):
    """Somebody asked for something that cannot be done. The message says why, and what to do instead."""

    status = 409
    code = "refused"
    errors: Mapping[str, list[str]] = {}
    headers: Mapping[str, str] = {}

    def __init__(self, *text: object, code: str = "", status: int = 0) -> None:
        super().__init__(*text)
        self.code, self.status = code or self.code, status or self.status
