"""Checks lists of messages in rows, and finds the turns in texts that write a dialogue out."""

import re
from collections.abc import Mapping
from typing import Any

from annotator.importing.field_checks import BadRow, check_messages, required, shown, storable_text
from annotator.importing.prompts import Message, messages_from_prompt
from annotator.limits import MOST_PARTS

ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "prompter": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
}
"""What the roles of other data sets are here, such as ShareGPT's."""
_READ = {"role", "content", "from", "value"}
_SPEAKER = re.compile(r"(?:\A\s*|\n\n)(Human|Assistant): ?")
_SPOKEN = {"Human": "user", "Assistant": "assistant"}


def checked_messages(value: Any, name: str = "messages") -> list[Message]:
    """Returns a conversation, whose last message is the user's. Raises BadRow."""
    return ending_with_user(checked_turns(value, name), name)


def ending_with_user(messages: list[Message], name: str) -> list[Message]:
    """Returns the messages, the last of which must be the user's. Raises BadRow."""
    if not messages or messages[-1]["role"] != "user":
        raise BadRow("the last message must be the user's: the responses answer it", name)
    return messages


def checked_turns(value: Any, name: str) -> list[Message]:
    """Returns a list of messages, at least one, with our names of roles and texts. Raises BadRow."""
    if not isinstance(value, list) or not value:
        raise BadRow(f"{name} must be a list of at least one message", name)
    check_messages(len(value))
    return [_message(message, f"{name}[{number}]") for number, message in enumerate(value)]


def _message(value: Any, name: str) -> Message:
    if not isinstance(value, dict):
        raise BadRow(f"{name} is {shown(value)}: it must be an object with role and content", name)
    key, text = ("from", "value") if "from" in value and "role" not in value else ("role", "content")
    role = required(value, key)
    if not isinstance(role, str) or role.lower() not in ROLES:
        raise BadRow(f"{name}.{key} is {shown(role)}: it must be assistant, system or user", f"{name}.{key}")
    content = _text_of_parts(required(value, text), f"{name}.{text}")
    return {"role": ROLES[role.lower()], "content": storable_text(content, f"{name}.{text}")}


def _text_of_parts(content: Any, name: str) -> Any:
    """Returns the text of a content that is written as a list of parts; any other content as it is."""
    if not isinstance(content, list):
        return content
    if len(content) > MOST_PARTS:
        raise BadRow(f"{name} has {len(content):,} parts, and at most {MOST_PARTS:,} are accepted: join them", name)
    for part in content:
        if not isinstance(part, dict) or not isinstance(part.get("text"), str):
            raise BadRow(f"{name} holds {shown(part)}: only texts can be rated", name)
    return "".join(part["text"] for part in content)


def unread_fields(value: Any) -> dict[str, Any]:
    """Returns what messages hold besides role and content, by the message's place in the list."""
    if all(len(message) <= 2 for message in value):
        return {}
    more = {str(n): message for n, message in enumerate(value) if len(message) > 2}
    return {number: {k: v for k, v in message.items() if k not in _READ} for number, message in more.items()}


def rest_of(values: Mapping[str, Any], read: set[str], conversation: str = "") -> dict[str, Any]:
    """Returns what a layout does not need of a row, which becomes metadata: empty cells are left out.

    `conversation` names the field of the messages, of which only role and content are read.
    """
    # Most responses and many rows hold nothing else, and millions of them pass here.
    unread = values.keys() - read
    rest = (
        {name: value for name, value in values.items() if name in unread and value not in ("", None)} if unread else {}
    )
    if conversation and (fields := unread_fields(values.get(conversation) or ())):
        rest["message_fields"] = fields
    return rest


def turns_of(text: str) -> list[Message]:
    """Returns the turns of a prompt as HelpSteer2 writes it, or as Anthropic's HH does (Human: ... Assistant: ...)."""
    before, *turns = _SPEAKER.split(text)
    if before.strip() or not turns:
        return messages_from_prompt(text)
    return [
        {"role": _SPOKEN[speaker], "content": said.strip()}
        for speaker, said in zip(turns[::2], turns[1::2], strict=True)
    ]


def answered_messages(value: Any, name: str) -> list[Message]:
    """Returns what the responses answer: a list of messages, or a text that may write a dialogue out. Raises BadRow."""
    if isinstance(value, list):
        return checked_messages(value, name)
    messages = turns_of(storable_text(value, name))
    check_messages(len(messages))
    return ending_with_user(messages, name)


def written_out(turns: list[Message]) -> str:
    """Returns an answer and the turns behind it as one text, for responses that are whole conversations."""
    first, *others = turns
    return "\n\n".join([first["content"], *(f"**{turn['role'].title()}:** {turn['content']}" for turn in others)])
