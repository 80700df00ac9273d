"""Reads our own layout of tasks (docs/formats.md), gold tasks included, and conversations that end with the answer."""

from collections.abc import Mapping
from dataclasses import replace
from re import fullmatch
from typing import Any

from annotator.importing.conversations import (
    answered_messages,
    checked_turns,
    ending_with_user,
    rest_of,
    written_out,
)
from annotator.importing.field_checks import (
    BadRow,
    check_responses,
    from_json_cells,
    identifier,
    required,
    shown,
    storable_text,
    whole,
    with_metadata,
)
from annotator.importing.gold_rows import check_gold, expert_of, gold_use
from annotator.importing.rows import ResponseRow, Rules, TaskRow
from annotator.importing.segment_fields import segments_of
from annotator.importing.sources import RawRow
from annotator.projects.languages import CODE as LANGUAGE_CODE
from annotator.projects.languages import code_of

TASK_FIELDS = {"id", "messages", "responses", "metadata", "priority", "gold", "lang"}
RESPONSE_FIELDS = {"id", "text", "model", "metadata", "expert", "segments"}
CONVERSATIONS = ("messages", "conversations", "conversation")
LONGEST_LANGUAGE = 40
_CELLS = ("messages", "prompt", "responses", "metadata", *CONVERSATIONS)


def is_task(values: Mapping[str, Any]) -> bool:
    return "responses" in values


def task_row(raw: RawRow, values: dict[str, Any], rules: Rules) -> TaskRow:
    """Reads a task: `messages`, or a `prompt` in their place, and `responses`, objects or texts. Raises BadRow."""
    if raw.from_csv:
        values = from_json_cells(values, _CELLS)
    name = "prompt" if "prompt" in values and "messages" not in values else "messages"
    given, responses = required(values, name), required(values, "responses")
    if not isinstance(responses, list) or not responses:
        raise BadRow("responses must be a list of at least one response", "responses")
    check_responses(len(responses))
    messages = answered_messages(given, name) if name == "prompt" else _messages(given)
    parsed = tuple(_response(response, f"responses[{number}]", rules) for number, response in enumerate(responses))
    named = [response.external_id for response in parsed if response.external_id]
    if len(set(named)) != len(named):
        raise BadRow("two responses have the same id", "responses")
    gold = gold_use(values.get("gold"))
    check_gold(gold, [response.expert for response in parsed])
    return TaskRow(
        line=raw.line,
        messages=messages,
        responses=parsed,
        external_id=identifier(values.get("id", ""), "id"),
        priority=_priority(values.get("priority", 0)),
        metadata=_metadata(values, name),
        gold=gold,
        language=language_of(values.get("lang") or values.get("language")),
        size=raw.size,
    )


def is_completion(values: Mapping[str, Any]) -> bool:
    return "prompt" in values and "completion" in values


def completion_row(raw: RawRow, values: dict[str, Any], rules: Rules) -> TaskRow:
    """Reads a prompt with one completion, texts or lists of messages, as TRL takes them. Raises BadRow."""
    if raw.from_csv:
        values = from_json_cells(values, ("prompt", "completion"))
    completion = values["completion"]
    if isinstance(completion, list):
        turns = checked_turns(completion, "completion")
        if turns[0]["role"] != "assistant":
            raise BadRow("completion must begin with the assistant's message", "completion")
        completion = written_out(turns)
    response = {"text": storable_text(completion, "completion"), "model": values.get("model") or ""}
    rest = {name: value for name, value in values.items() if name not in ("completion", "model", "messages")}
    return replace(task_row(raw, {**rest, "responses": [response]}, rules), layout="completions")


def is_conversation(values: Mapping[str, Any]) -> bool:
    return any(name in values for name in CONVERSATIONS)


def conversation_row(raw: RawRow, values: dict[str, Any], _rules: Rules) -> TaskRow:
    """Reads a conversation whose last message, the assistant's, is the response that is rated. Raises BadRow."""
    if raw.from_csv:
        values = from_json_cells(values, CONVERSATIONS)
    name = next(name for name in CONVERSATIONS if name in values)
    *before, last = checked_turns(values[name], name)
    if last["role"] != "assistant" or "kind" in last:
        raise BadRow("the field responses is missing", "responses")
    return TaskRow(
        line=raw.line,
        messages=ending_with_user(before, name),
        responses=(ResponseRow(last["content"], model=identifier(values.get("model") or "", "model")),),
        external_id=identifier(values.get("id", ""), "id"),
        metadata=_metadata({key: value for key, value in values.items() if key != "model"}, name),
        language=language_of(values.get("lang") or values.get("language")),
        layout="conversations",
        size=raw.size,
    )


def _messages(value: Any) -> Any:
    return ending_with_user(checked_turns(value, "messages"), "messages")


def _metadata(values: Mapping[str, Any], conversation: str) -> dict[str, Any]:
    extra = {"lang": values["lang"]} if "lang" in values else {}
    is_list = isinstance(values[conversation], list)
    rest = rest_of(values, TASK_FIELDS | {conversation}, conversation if is_list else "")
    return with_metadata({**extra, **rest}, dict(values), "metadata")


def _priority(value: Any) -> int:
    value = whole(value)
    # Not isinstance: True and False are integers as well.
    if type(value) is not int or not -1000 <= value <= 1000:
        raise BadRow(f"priority is {shown(value)}: it must be a whole number from -1000 to 1000", "priority")
    return value


def language_of(value: Any) -> str:
    """Returns a code such as `de` or `pt-BR` in lower case; empty where the value names no language."""
    code = value.lower() if isinstance(value, str) else ""
    return code if fullmatch(LANGUAGE_CODE, code) else code_of(code[:LONGEST_LANGUAGE])


def _response(value: Any, name: str, rules: Rules) -> ResponseRow:
    if isinstance(value, str):
        return ResponseRow(text=storable_text(value, name))
    if not isinstance(value, dict):
        raise BadRow(f"{name} is {shown(value)}: it must be an object with a text", name)
    extra = rest_of(value, RESPONSE_FIELDS)
    model = value.get("model") or ""
    text = storable_text(required(value, "text"), f"{name}.text")
    segments = segments_of(value.get("segments"), text, f"{name}.segments")
    return ResponseRow(
        text=text,
        external_id=identifier(value.get("id", ""), f"{name}.id"),
        model=identifier(model, f"{name}.model"),
        metadata=with_metadata(extra, value, f"{name}.metadata"),
        segments=segments,
        expert=expert_of(value.get("expert"), f"{name}.expert", rules, segments=len(segments)),
    )
