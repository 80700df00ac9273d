"""HelpSteer2's one-string prompts and our messages: each way exactly (PROTOCOL: the released files)."""

import hashlib
import json
import re
from collections.abc import Sequence

Message = dict[str, str]
_json = json.JSONEncoder(ensure_ascii=False).encode

_TURN = re.compile(r"\n<extra_id_1>(User|Assistant|System)\n")
_SYSTEM = re.compile(r"<extra_id_0>System\n(.*?)\n<extra_id_1>User\n", re.DOTALL)
_ROLES = {"User": "user", "Assistant": "assistant", "System": "system"}
_NAMES = {role: name for name, role in _ROLES.items()}


def messages_from_prompt(prompt: str) -> list[Message]:
    """The turns of a HelpSteer2 prompt. The first is the user's, unless another turn's mark stands first."""
    messages = []
    if system := _SYSTEM.match(prompt):
        messages.append({"role": "system", "content": system.group(1)})
        prompt = prompt[system.end() :]
    first, *rest = _TURN.split(prompt)
    turns = [{"role": _ROLES[name], "content": content} for name, content in zip(rest[::2], rest[1::2], strict=True)]
    # Nothing before the first mark: the user did not begin. (A system turn that begins is written as the head.)
    others = {"assistant", "system"} if messages else {"assistant"}
    if first or not turns or turns[0]["role"] not in others:
        messages.append({"role": "user", "content": first})
    return messages + turns


def prompt_from_messages(messages: Sequence[Message]) -> str:
    """The inverse of `messages_from_prompt`."""
    turns = list(messages)
    head = first = ""
    if turns and turns[0]["role"] == "system":
        head = f"<extra_id_0>System\n{turns.pop(0)['content']}\n<extra_id_1>User\n"
    if turns and turns[0]["role"] == "user":
        first = turns.pop(0)["content"]
    return head + first + "".join(f"\n<extra_id_1>{_NAMES[turn['role']]}\n{turn['content']}" for turn in turns)


def prompt_hash(messages: Sequence[Message]) -> str:
    """Names a prompt whatever file it came in; the split into train and validation hangs on it."""
    turns = [[message["role"], message["content"]] for message in messages]
    return hashlib.sha256(_json(turns).encode()).hexdigest()


def content_hash(prompt: str, texts: Sequence[str]) -> str:
    """Names a task by its prompt's hash and its responses' texts, in order."""
    return hashlib.sha256(_json([prompt, *texts]).encode()).hexdigest()
