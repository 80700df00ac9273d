"""Makes of stored turns about tools the messages that chat templates take. No torch here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def message_of(row: Mapping[str, Any], *, is_call: bool = False) -> str:
    """Returns a message as chat templates take it, as JSON; the arguments of a call are an object, not a text."""
    if not is_call:
        kept = {name: row[name] for name in ("role", "content", "name", "tool_call_id") if name in row}
        return json.dumps(kept, ensure_ascii=False)
    calls = parsed(row["content"])
    calls = calls if isinstance(calls, list) else [calls]
    functions = [call.get("function", call) if isinstance(call, dict) else {"name": str(call)} for call in calls]
    named = [
        {
            "id": str(call.get("id", "")) if isinstance(call, dict) else "",
            "type": "function",
            "function": {"name": str(function.get("name", "")), "arguments": parsed(function.get("arguments", {}))},
        }
        for call, function in zip(calls, functions, strict=True)
    ]
    return json.dumps({"role": "assistant", "content": "", "tool_calls": named}, ensure_ascii=False)


def parsed(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
