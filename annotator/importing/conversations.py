"""Checks lists of messages in rows, and finds the turns in texts that write a dialogue out."""

import re
from typing import Any

from annotator.importing.field_checks import BadRow, check_messages, only_known, required, shown, storable_text
from annotator.importing.prompts import Message, messages_from_prompt

ROLES = {"system", "user", "assistant"}
_SPEAKER = re.compile(r"(?:\A\s*|\n\n)(Human|Assistant): ?")
_SPOKEN = {"Human": "user", "Assistant": "assistant"}


def checked_messages(value: Any, name: str = "messages") -> list[Message]:
    """Returns a conversation, whose last message is the user's. Raises BadRow."""
    messages = checked_turns(value, name)
    if messages[-1]["role"] != "user":
        raise BadRow("the last message must be the user's: the responses answer it", name)
    return messages


def checked_turns(value: Any, name: str) -> list[Message]:
    """Returns a list of messages, at least one. Raises BadRow."""
    if not isinstance(value, list) or not value:
        raise BadRow(f"{name} must be a list of at least one message", name)
    check_messages(len(value))
    return [_message(message, f"{name}[{number}]") for number, message in enumerate(value)]


def _message(value: Any, name: str) -> Message:
    if not isinstance(value, dict):
        raise BadRow(f"{name} is {shown(value)}: it must be an object with role and content", name)
    only_known(value, {"role", "content"}, f"field of {name}")
    role = required(value, "role")
    if not isinstance(role, str) or role not in ROLES:
        raise BadRow(f"{name}.role is {shown(role)}: it must be one of {', '.join(sorted(ROLES))}", f"{name}.role")
    return {"role": role, "content": storable_text(required(value, "content"), f"{name}.content")}


def turns_of(text: str) -> list[Message]:
    """Returns the turns of a prompt as HelpSteer2 writes it, or as Anthropic's HH does (Human: ... Assistant: ...)."""
    before, *turns = _SPEAKER.split(text)
    if before.strip() or not turns:
        return messages_from_prompt(text)
    return [
        {"role": _SPOKEN[speaker], "content": said.strip()}
        for speaker, said in zip(turns[::2], turns[1::2], strict=True)
    ]
