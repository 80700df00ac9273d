"""Checks lists of messages in rows, finds the turns in texts that write a dialogue out, and adds what belongs to them.

HelpSteer2's one-string prompts become messages and back without loss (docs/protocol.md: the released files). Inputs,
contexts, system messages and tools that stand in columns beside a prompt become part of the conversation: annotators
have to see them, whatever the layout of the row.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from json.encoder import encode_basestring as _quoted
from typing import Any

from annotator.infrastructure.limits import MOST_PARTS
from annotator.stages.importing.field_checks import BadRow, check_messages, required, shown, storable_text

Message = dict[str, str]

_TURN = re.compile(r"\n<extra_id_1>(User|Assistant|System|Tool)\n")
_SYSTEM = re.compile(r"<extra_id_0>System\n(.*?)\n<extra_id_1>User\n", re.DOTALL)
_ROLES = {"User": "user", "Assistant": "assistant", "System": "system", "Tool": "tool"}
_NAMES = {role: name for name, role in _ROLES.items()}


def messages_from_prompt(prompt: str) -> list[Message]:
    """Returns the turns of a HelpSteer2 prompt. The first is the user's unless it begins with another's mark."""
    messages = []
    if system := _SYSTEM.match(prompt):
        messages.append({"role": "system", "content": system.group(1)})
        prompt = prompt[system.end() :]
    first, *rest = _TURN.split(prompt)
    turns = [{"role": _ROLES[name], "content": content} for name, content in zip(rest[::2], rest[1::2], strict=True)]
    # If nothing precedes the first mark, the user did not begin. A system turn can only begin behind the head, which is
    # how a system turn at the very beginning is written.
    beginners = {"assistant", "system"} if messages else {"assistant"}
    if first or not turns or turns[0]["role"] not in beginners:
        messages.append({"role": "user", "content": first})
    return messages + turns


def prompt_from_messages(messages: Sequence[Message]) -> str:
    """Returns the messages as a HelpSteer2 prompt; the inverse of `messages_from_prompt`."""
    turns = list(messages)
    head = first = ""
    if turns and turns[0]["role"] == "system":
        head = f"<extra_id_0>System\n{turns.pop(0)['content']}\n<extra_id_1>User\n"
    if turns and turns[0]["role"] == "user":
        first = turns.pop(0)["content"]
    return head + first + "".join(f"\n<extra_id_1>{_NAMES[turn['role']]}\n{turn['content']}" for turn in turns)


def content_hash(prompt: str, texts: Sequence[str]) -> str:
    """Returns a task's hash, from its prompt's hash and the texts of its responses in their order."""
    listed = ", ".join(map(_quoted, [prompt, *texts]))
    return hashlib.sha256(f"[{listed}]".encode()).hexdigest()


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
TOOL = "tool"
TOOL_CALLS = "tool_calls"
"""The kind of an assistant's turn whose content is the list of its calls of tools, as JSON."""
_ANSWERING = {"tool", "function", "observation"}
"""Roles whose messages are what a tool answered."""
_CALLING = "function_call"
"""The role of ShareGPT's calls, and the field of older ones."""
_READ = {"role", "content", "from", "value", "tool_call_id", "kind", TOOL_CALLS, _CALLING}
_SPEAKER = re.compile(r"(?:\A\s*|\n\n)(Human|Assistant): ?")
_SPOKEN = {"Human": "user", "Assistant": "assistant"}
ASKING = ("user", TOOL)
"""Whose turn the responses answer."""


def checked_messages(value: Any, name: str = "messages") -> list[Message]:
    """Returns a conversation, whose last message is the user's. Raises BadRow."""
    return ending_with_user(checked_turns(value, name), name)


def ending_with_user(messages: list[Message], name: str) -> list[Message]:
    """Returns the messages, the last of which must be the user's, or what a tool answered. Raises BadRow."""
    if not messages or messages[-1]["role"] not in ASKING:
        raise BadRow("the last message must be the user's: the responses answer it", name)
    return messages


def checked_turns(value: Any, name: str) -> list[Message]:
    """Returns a list of messages, at least one, with our names of roles and texts. Raises BadRow.

    Calls of tools become turns of their own, and a system message without a text is left out.
    """
    if not isinstance(value, list) or not value:
        raise BadRow(f"{name} must be a list of at least one message", name)
    check_messages(len(value))
    turns: list[Message] = []
    for number, message in enumerate(value):
        turns += _turns(message, f"{name}[{number}]", turns)
    if not turns:
        raise BadRow(f"{name} has no message with a text", name)
    return turns


def _turns(value: Any, name: str, before: list[Message]) -> list[Message]:
    if not isinstance(value, dict):
        raise BadRow(f"{name} is {shown(value)}: it must be an object with role and content", name)
    key, text = ("from", "value") if "from" in value and "role" not in value else ("role", "content")
    role = required(value, key)
    known = role.lower() if isinstance(role, str) else ""
    if known not in ROLES and known not in _ANSWERING and known != _CALLING:
        raise BadRow(f"{name}.{key} is {shown(role)}: it must be assistant, system or user", f"{name}.{key}")
    calls = value.get(TOOL_CALLS) or value.get(_CALLING)
    content = value.get(text) if calls else required(value, text)
    is_empty = content is None or content == [] or (isinstance(content, str) and not content.strip())
    if known == _CALLING or value.get("kind") == TOOL_CALLS:
        return [_called(content, f"{name}.{text}")]
    if is_empty and (calls or ROLES.get(known) == "system"):
        return [_called(calls, f"{name}.{TOOL_CALLS}")] if calls else []
    said = storable_text(_text_of_parts(content, f"{name}.{text}"), f"{name}.{text}")
    if known not in _ANSWERING:
        turn = {"role": ROLES[known], "content": said}
        return [turn, _called(calls, f"{name}.{TOOL_CALLS}")] if calls else [turn]
    if not any(turn["role"] == "assistant" for turn in before):
        raise BadRow(f"{name}.{key} is {shown(role)}: the assistant must have called a tool before", f"{name}.{key}")
    more = {field: value[field] for field in ("tool_call_id", "name") if isinstance(value.get(field), str)}
    return [{"role": TOOL, "content": said, **more}]


def _called(calls: Any, name: str) -> Message:
    """Returns the turn of some calls, whose content is their JSON as it came."""
    text = calls if isinstance(calls, str) else json.dumps(calls, ensure_ascii=False)
    return {"role": "assistant", "content": storable_text(text, name), "kind": TOOL_CALLS}


def as_they_came(turns: Sequence[Message]) -> list[dict[str, Any]]:
    """Returns stored turns as messages of chats have them: calls of tools are a field of the assistant's message."""
    messages: list[dict[str, Any]] = []
    for turn in turns:
        if turn.get("kind") != TOOL_CALLS:
            messages.append(dict(turn))
            continue
        try:
            calls = json.loads(turn["content"])
        except ValueError:
            calls = turn["content"]
        key = TOOL_CALLS if isinstance(calls, list) else _CALLING
        # The text before a call is of the same message.
        if messages and messages[-1]["role"] == "assistant" and not messages[-1].keys() & {TOOL_CALLS, _CALLING}:
            messages[-1][key] = calls
        else:
            messages.append({"role": "assistant", "content": None, key: calls})
    return messages


def _text_of_parts(content: Any, name: str) -> Any:
    """Returns the text of a content that is written as a list of parts; any other content as it is."""
    if not isinstance(content, list):
        return content
    if len(content) > MOST_PARTS:
        raise BadRow(f"{name} has {len(content):,} parts, and at most {MOST_PARTS:,} are accepted: join them", name)
    texts = [_text_of_part(part, name) for part in content]
    return "".join(texts)


def _text_of_part(part: Any, name: str) -> str:
    said = next((part[key] for key in ("text", "value") if key in part), None) if isinstance(part, dict) else None
    if not isinstance(said, str) or part.get("type", "text") not in _TEXTS:
        raise BadRow(f"{name} holds {shown(part)}: only texts can be rated", name)
    return said


_TEXTS = ("text", "input_text", "output_text")
"""The types of parts that are texts."""


def unread_fields(value: Any) -> dict[str, Any]:
    """Returns what messages hold besides role and content, by the message's place in the list."""
    if all(len(message) <= 2 for message in value):
        return {}
    unread = {str(n): {k: v for k, v in message.items() if k not in _READ} for n, message in enumerate(value)}
    for number, message in enumerate(value):
        if str(message.get("role", "")).lower() in _ANSWERING:
            unread[str(number)].pop("name", None)  # it stays with the turn
    return {number: fields for number, fields in unread.items() if fields}


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
    spoken = [
        {"role": _SPOKEN[speaker], "content": said.strip()}
        for speaker, said in zip(turns[::2], turns[1::2], strict=True)
    ]
    # Prompts of completions end with the mark of the turn that is to be written.
    return spoken[:-1] if len(spoken) > 1 and not spoken[-1]["content"] else spoken


def answered_messages(value: Any, name: str) -> list[Message]:
    """Returns what the responses answer: a list of messages, or a text that may write a dialogue out. Raises BadRow."""
    if isinstance(value, list):
        return checked_messages(value, name)
    text = storable_text(value, name)
    messages = turns_of(text)
    check_messages(len(messages))
    # A request below a transcript makes it no dialogue, but a text that quotes one.
    if messages[-1]["role"] == "assistant" and _SPEAKER.match(text) and "\n\n" in messages[-1]["content"]:
        return [{"role": "user", "content": text}]
    return ending_with_user(messages, name)


def compared(
    first: list[Message], second: list[Message], names: tuple[str, str]
) -> tuple[list[Message], tuple[str, str]]:
    """Returns the messages with which both conversations begin, and the rest of each as one text. Raises BadRow."""
    same = len(alike(first, second))
    while same and first[same - 1]["role"] not in ASKING:
        same -= 1
    rests = (first[same:], second[same:])
    for name, rest in zip(names, rests, strict=True):
        if rest[0]["role"] != "assistant":
            raise BadRow(f"{name} must have the same question as the other conversation, and an answer to it", name)
    return ending_with_user(first[:same], names[0]), (written_out(rests[0]), written_out(rests[1]))


def alike(first: list[Message], second: list[Message]) -> list[Message]:
    """Returns the messages with which both begin. Where all are equal, the last one is still what is compared."""
    same = [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))]
    return same[: min(len(first), len(second)) - 1]


def written_out(turns: list[Message]) -> str:
    """Returns an answer and the turns behind it as one text, for responses that are whole conversations."""
    first, *others = turns
    return "\n\n".join([first["content"], *(f"**{turn['role'].title()}:** {turn['content']}" for turn in others)])


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
