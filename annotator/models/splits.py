"""Which prompts are held out, to judge models by: a prompt never changes sides, as its hash alone decides."""

import hashlib
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring as _quoted

_DIGITS = 13
"""Of the hash's hexadecimal digits: as many as a number of double precision holds, so that both forms say the same."""
_PARTS = 1 << 4 * _DIGITS
HELD_OUT = f"('x' || left(t.prompt_hash, {_DIGITS}))::bit({4 * _DIGITS})::bigint / {_PARTS}::float8 < %(share)s"
"""The rule of `is_held_out` in SQL, for a task `t`."""


def prompt_hash(messages: Sequence[Mapping[str, str]]) -> str:
    """Returns a prompt's hash, which is the same in every file format."""
    # As JSON without escapes, written piece by piece: an encoder of lists takes three times as long.
    turns = ", ".join(f"[{_quoted(message['role'])}, {_quoted(message['content'])}]" for message in messages)
    return hashlib.sha256(f"[{turns}]".encode()).hexdigest()


def is_held_out(prompt_hash: str, share: float) -> bool:
    """Returns whether a prompt is on the validation side: its hash, read as a fraction of 1, is below the share."""
    return int(prompt_hash[:_DIGITS], 16) / _PARTS < share
