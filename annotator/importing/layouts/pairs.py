"""Reads pairs of a chosen and a rejected response, in the forms that TRL documents and public data sets have."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from annotator.importing.conversations import answered_messages, checked_turns, ending_with_user, rest_of, turns_of
from annotator.importing.field_checks import BadRow, identifier, metadata_of, required, shown, storable_text
from annotator.importing.layouts.own_tasks import language_of
from annotator.importing.prompts import Message
from annotator.importing.rows import ResponseRow, Rules, TaskRow
from annotator.importing.sources import RawRow

READ = {"id", "prompt", "chosen", "rejected"}
STRENGTHS = (1, 2, 3)
BETTER = -1
"""The strength of a preference of which nobody says how strong it is: that the first response is slightly better."""


def is_pair(values: Mapping[str, Any]) -> bool:
    return "chosen" in values or "rejected" in values


def pair_row(raw: RawRow, values: dict[str, Any], _rules: Rules) -> TaskRow:
    """Makes a task of two responses, the chosen one first, with a preference.

    `prompt`, `chosen` and `rejected` are texts or lists of messages. Without a prompt, `chosen` and `rejected` begin
    with the same conversation. All other fields become metadata. Raises BadRow.
    """
    if raw.from_csv:
        values = {name: _from_cell(name, value) for name, value in values.items()}
    chosen, rejected = required(values, "chosen"), required(values, "rejected")
    messages, texts = _conversation(values.get("prompt"), chosen, rejected)
    return TaskRow(
        line=raw.line,
        messages=messages,
        responses=tuple(ResponseRow(storable_text(text, name)) for name, text in texts.items()),
        external_id=identifier(values.get("id", ""), "id"),
        metadata=metadata_of(rest_of(values, READ)),
        language=language_of(values.get("lang")),
        preference=_strength(values),
        layout="pairs",
        size=raw.size,
    )


def _from_cell(name: str, cell: str) -> Any:
    """Reads messages and the margin from CSV cells as they were written; any other cell stays text."""
    if cell.startswith("[{") or name == "margin":
        with suppress(ValueError):
            return json.loads(cell)
    return cell


def _conversation(prompt: Any, chosen: Any, rejected: Any) -> tuple[list[Message], dict[str, str]]:
    """Returns the messages that are answered, and the text of each answer."""
    answers = {name: _turns(value, name) for name, value in (("chosen", chosen), ("rejected", rejected))}
    for name, turns in answers.items():
        if turns[-1]["role"] != "assistant":
            raise BadRow(f"{name} must end with the assistant's message", name)
    before, also_before = (turns[:-1] for turns in answers.values())
    if before != also_before:
        raise BadRow("chosen and rejected must be the same up to their last message", "rejected")
    texts = {name: turns[-1]["content"] for name, turns in answers.items()}
    # Where both repeat the conversation, the prompt is only its beginning, or the same once more.
    if before:
        return ending_with_user(before, "chosen"), texts
    if not prompt:
        raise BadRow("the field prompt is missing", "prompt")
    return answered_messages(prompt, "prompt"), texts


def _turns(value: Any, name: str) -> list[Message]:
    if isinstance(value, list):
        return checked_turns(value, name)
    text = storable_text(value, name)
    turns = turns_of(text)
    # A text without turns is the answer itself.
    return turns if len(turns) > 1 else [{"role": "assistant", "content": text}]


def _strength(values: dict[str, Any]) -> int:
    """Returns how much better the chosen response is, which our own export says of pairs with a preference."""
    margin = values.get("margin")
    if values.get("by") != "preference":
        return BETTER
    if margin not in STRENGTHS:
        raise BadRow(f"margin is {shown(margin)}: the strength of a preference is 1, 2 or 3", "margin")
    return -int(margin)
