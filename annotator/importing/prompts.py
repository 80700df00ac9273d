"""Converts HelpSteer2's one-string prompts to messages and back without loss (docs/protocol.md: the released files).

Also names tasks by hashes.
"""

import hashlib
import re
from collections.abc import Sequence
from json.encoder import encode_basestring as _quoted

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
