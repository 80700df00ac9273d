"""Reads pairs of a chosen and a rejected response, in the forms that TRL documents and public data sets have."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from annotator.importing.conversations import (
    alike,
    answered_messages,
    checked_turns,
    compared,
    rest_of,
    turns_of,
)
from annotator.importing.field_checks import BadRow, identifier, metadata_of, required, shown, storable_text, whole
from annotator.importing.layouts.own_tasks import language_as_written
from annotator.importing.prompts import Message
from annotator.importing.rows import ResponseRow, Rules, TaskRow
from annotator.importing.sources import RawRow

PROMPTS = ("prompt", "messages", "conversations", "conversation", "question", "instruction", "query", "input")
READ = {"id", "chosen", "rejected"}
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
    asked = next((name for name in PROMPTS if values.get(name) not in (None, "", [])), "prompt")
    messages, texts = _conversation((values.get(asked), asked), chosen, rejected)
    return TaskRow(
        line=raw.line,
        messages=messages,
        responses=tuple(ResponseRow(storable_text(text, name)) for name, text in texts.items()),
        external_id=identifier(values.get("id", ""), "id"),
        metadata=metadata_of(rest_of(values, {*READ, asked}, asked if isinstance(values.get(asked), list) else "")),
        language=language_as_written(values.get("lang") or values.get("language")),
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


def _conversation(prompt: tuple[Any, str], chosen: Any, rejected: Any) -> tuple[list[Message], dict[str, str]]:
    """Returns the messages that are answered, and the text of each answer.

    Both answers may repeat the prompt, or go on behind it with the same turns; nothing of them is dropped.
    """
    is_implicit = prompt[0] in (None, "", [])
    first, second = (_turns(value, name, is_implicit) for name, value in (("chosen", chosen), ("rejected", rejected)))
    for name, turns in (("chosen", first), ("rejected", second)):
        if turns[-1]["role"] != "assistant":
            raise BadRow(f"{name} must end with the assistant's message", name)
    before = alike(first, second)
    asked = [] if is_implicit else _asked(*prompt, before)
    if not asked and not before:
        if len(first) > 1 or len(second) > 1:
            raise BadRow("chosen and rejected must begin with the same message", "rejected")
        raise BadRow("the field prompt is missing", "prompt")
    messages, texts = compared([*asked, *first], [*asked, *second], ("chosen", "rejected"))
    return messages, dict(zip(("chosen", "rejected"), texts, strict=True))


def _turns(value: Any, name: str, is_implicit: bool) -> list[Message]:
    if isinstance(value, list | dict):
        return checked_turns(value if isinstance(value, list) else [value], name)
    text = storable_text(value, name)
    # Beside a prompt, a text is the answer itself, even if it writes a dialogue out.
    turns = turns_of(text) if is_implicit else []
    return turns if len(turns) > 1 else [{"role": "assistant", "content": text}]


def _asked(prompt: Any, name: str, before: list[Message]) -> list[Message]:
    """Returns what the prompt has to say before the turns with which both answers begin."""
    if not before or before[0]["role"] == "assistant":
        return answered_messages(prompt, name)
    if isinstance(prompt, list):
        given = checked_turns(prompt, name)
        return [] if _holds(before, given) else given
    text = storable_text(prompt, name)
    if _holds(before, turns_of(text)) or any(turn["content"].strip() == text.strip() for turn in before):
        return []
    # Turns that begin with a question do not answer the prompt, so it says how to answer them.
    return [{"role": "system", "content": text}]


def _holds(turns: list[Message], part: list[Message]) -> bool:
    """Returns whether the part stands among the turns, apart from the space around the texts."""
    whole, wanted = ([(turn["role"], turn["content"].strip()) for turn in one] for one in (turns, part))
    return any(whole[at : at + len(wanted)] == wanted for at in range(len(whole) - len(wanted) + 1))


def _strength(values: dict[str, Any]) -> int:
    """Returns how much better the chosen response is, which our own export says of pairs with a preference."""
    margin = whole(values.get("margin"))
    if values.get("by") != "preference":
        return BETTER
    if margin not in STRENGTHS:
        raise BadRow(f"margin is {shown(margin)}: the strength of a preference is 1, 2 or 3", "margin")
    return -int(margin)
