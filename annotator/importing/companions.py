"""What stands beside a prompt in columns of its own and belongs to it: inputs, contexts, system messages, tools.

Annotators have to see it, so it becomes part of the conversation, whatever the layout of the row.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from annotator.importing.conversations import turns_of
from annotator.importing.field_checks import BadRow, check_messages, storable_text
from annotator.importing.prompts import Message

SYSTEM = ("system", "system_prompt", "system_message")
BESIDE = ("input", "context", "passage", "document", "article")
TOOLS = ("tools", "functions")
HISTORY = "history"
PROMPTS = ("prompt", "messages", "conversations", "conversation", "instruction", "question", "problem", "query")
"""The columns of prompts, beside which the others are companions. A row without any may have its prompt in `input`."""
_CONVERSATIONS = ("chosen", "conversation_a")
"""Columns that hold the prompt with an answer where they are lists."""
MEDIA = ("images", "image", "image_url", "videos", "video", "audios", "audio")
_ALL = frozenset({*SYSTEM, *BESIDE, *TOOLS, HISTORY})


@dataclass(frozen=True)
class Companions:
    """The texts that belong to a prompt, in the order in which they are shown, and the columns that hold them."""

    columns: tuple[str, ...] = ()
    system: tuple[str, ...] = ()
    history: tuple[tuple[str, str], ...] = ()
    beside: tuple[str, ...] = ()


NONE = Companions()


def parted(values: dict[str, Any], *, from_csv: bool = False) -> tuple[dict[str, Any], Companions]:
    """Returns the row without the companions of its prompt, and these. Raises BadRow."""
    named = _ALL.intersection(values)
    if not named or not _has_prompt(values):
        return values, NONE
    found = {name: values[name] for name in values if name in named and _is_given(values[name])}
    system = {name: found[name] for name in SYSTEM if isinstance(found.get(name), str)}
    tools = {name: _tools(found[name]) for name in TOOLS if name in found}
    beside = {name: found[name] for name in BESIDE if _is_text(found.get(name), from_csv=from_csv)}
    turns = _history(found.get(HISTORY), from_csv=from_csv)
    columns = (*system, *tools, *((HISTORY,) if turns else ()), *beside)
    if not columns:
        return values, NONE
    texts = {name: storable_text(text, name) for name, text in (system | beside).items()}
    companions = Companions(
        columns,
        (*(texts[name] for name in system), *(storable_text(text, name) for name, text in tools.items())),
        turns,
        tuple(texts[name] for name in beside),
    )
    return {name: value for name, value in values.items() if name not in columns}, companions


def shown_with(messages: list[Message], companions: Companions) -> list[Message]:
    """Returns the conversation with the companions: system messages before it, and inputs below the last question."""
    said = {message["content"] for message in messages if message["role"] == "system"}
    system: list[Message] = [{"role": "system", "content": text} for text in companions.system if text not in said]
    history: list[Message] = []
    for asked, answered in companions.history:
        history += [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
    own = [message for message in messages if message["role"] == "system"] if history else []
    turns = [*system, *own, *history, *(messages[len(own) :] if history else messages)]
    last = max((n for n, turn in enumerate(turns) if turn["role"] == "user"), default=-1)
    beside = [text for text in companions.beside if all(text != turn["content"] for turn in turns)]
    if beside and last >= 0:
        text = "\n\n".join([turns[last]["content"], *beside])
        turns[last] = {**turns[last], "content": storable_text(text, "prompt")}
    check_messages(len(turns))
    return turns


def refuse_media(values: Mapping[str, Any]) -> None:
    """Raises BadRow where the row has images, videos or sounds beside its texts."""
    for name in MEDIA:
        if _is_given(values.get(name)):
            raise BadRow(f"{name} holds what is no text: only texts can be rated. Leave the column out", name)


def _has_prompt(values: Mapping[str, Any]) -> bool:
    if any(_is_given(values.get(name)) for name in PROMPTS):
        return True
    begun = [values[name] for name in _CONVERSATIONS if name in values]
    return any(isinstance(value, list) or (isinstance(value, str) and len(turns_of(value)) > 1) for value in begun)


def _is_given(value: Any) -> bool:
    return value not in (None, "", [], {}) and not (isinstance(value, str) and not value.strip())


def _is_text(value: Any, *, from_csv: bool) -> bool:
    """Returns whether a column is a text beside a prompt, and not the conversation itself in a cell of a table."""
    return isinstance(value, str) and not (from_csv and value.lstrip().startswith("[{"))


def _tools(value: Any) -> str:
    """Returns the descriptions of tools as a system message shows them: as code."""
    if isinstance(value, str):
        return value
    try:
        return f"```json\n{json.dumps(value, ensure_ascii=False, indent=2)}\n```"
    except (RecursionError, ValueError):
        raise BadRow("tools is nested too deeply", "tools") from None


def _history(value: Any, *, from_csv: bool) -> tuple[tuple[str, str], ...]:
    """Returns earlier questions with their answers, as Alpaca's rows list them; nothing for any other value."""
    if from_csv and isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return ()
    if not isinstance(value, list) or not value:
        return ()
    pairs = [turn for turn in value if isinstance(turn, list) and len(turn) == 2]
    if len(pairs) < len(value) or not all(isinstance(text, str) for pair in pairs for text in pair):
        return ()
    return tuple((storable_text(one, HISTORY), storable_text(other, HISTORY)) for one, other in pairs)
