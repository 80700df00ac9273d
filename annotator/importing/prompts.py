"""HelpSteer2's one-string prompts and our messages: each way exactly (PROTOCOL: the released files)."""

import hashlib
import json
import re
from collections.abc import Sequence

Message = dict[str, str]

_TURN = re.compile(r"\n<extra_id_1>(User|Assistant)\n")
_SYSTEM = re.compile(r"<extra_id_0>System\n(.*?)\n<extra_id_1>User\n", re.DOTALL)
_ROLES = {"User": "user", "Assistant": "assistant"}
_NAMES = {role: name for name, role in _ROLES.items()}


def messages_from_prompt(prompt: str) -> list[Message]:
    """The turns of a HelpSteer2 prompt; the first is the user's, unless a system turn stands before it."""
    messages = []
    if system := _SYSTEM.match(prompt):
        messages.append({"role": "system", "content": system.group(1)})
        prompt = prompt[system.end() :]
    first, *rest = _TURN.split(prompt)
    messages.append({"role": "user", "content": first})
    for name, content in zip(rest[::2], rest[1::2], strict=True):
        messages.append({"role": _ROLES[name], "content": content})
    return messages


def prompt_from_messages(messages: Sequence[Message]) -> str:
    """The inverse of `messages_from_prompt`."""
    turns = list(messages)
    head = ""
    if turns and turns[0]["role"] == "system":
        head = f"<extra_id_0>System\n{turns.pop(0)['content']}\n<extra_id_1>User\n"
    first, *rest = turns
    return head + first["content"] + "".join(f"\n<extra_id_1>{_NAMES[m['role']]}\n{m['content']}" for m in rest)


def prompt_hash(messages: Sequence[Message]) -> str:
    """Names a prompt whatever file it came in; the split into train and validation hangs on it."""
    turns = [[message["role"], message["content"]] for message in messages]
    return hashlib.sha256(json.dumps(turns, ensure_ascii=False).encode()).hexdigest()


def content_hash(prompt: str, texts: Sequence[str]) -> str:
    """Names a task by its prompt's hash and its responses' texts, in order."""
    return hashlib.sha256(json.dumps([prompt, *texts], ensure_ascii=False).encode()).hexdigest()
