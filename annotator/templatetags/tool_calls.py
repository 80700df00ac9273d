"""{% for call in turn|tool_calls %} gives the calls of tools that an assistant's turn holds."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from django import template

from annotator.stages.importing.conversations import TOOL_CALLS

register = template.Library()


class ToolCall(NamedTuple):
    """A call as people read it: the tool's name, and its arguments as indented JSON where they are JSON."""

    name: str
    arguments: str


@register.filter
def tool_calls(turn: Mapping[str, str]) -> list[ToolCall]:
    """Returns the calls of a turn of that kind; none of any other turn."""
    if turn.get("kind") != TOOL_CALLS:
        return []
    calls = _of_json(turn["content"])
    return [_call(call) for call in (calls if isinstance(calls, list) else [calls])]


def _call(call: Any) -> ToolCall:
    function = call.get("function", call) if isinstance(call, dict) else call
    if not isinstance(function, dict):
        return ToolCall("", _indented(function))
    given = function.get("arguments", function.get("parameters", {}))
    return ToolCall(str(function.get("name", "")), _indented(_of_json(given) if isinstance(given, str) else given))


def _of_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _indented(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
