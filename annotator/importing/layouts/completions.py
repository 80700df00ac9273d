"""Reads rows with a list of completions: UltraFeedback's (arXiv 2310.01377) and those that NeMo RL trains on."""

from collections.abc import Mapping, Sequence
from typing import Any

from annotator.importing.conversations import answered_messages, checked_turns, rest_of
from annotator.importing.field_checks import (
    BadRow,
    check_responses,
    from_json_cells,
    identifier,
    metadata_of,
    required,
    shown,
    storable_text,
)
from annotator.importing.layouts.own_tasks import language_of
from annotator.importing.rows import ResponseRow, Rules, TaskRow
from annotator.importing.sources import RawRow

PROMPTS = ("context", "messages", "instruction", "prompt")
BETTER = (-1, 1)
"""By whether the second response has the better rank. Ranks do not say how much better a response is."""


def has_completions(values: Mapping[str, Any]) -> bool:
    return "completions" in values and any(name in values for name in PROMPTS)


def completions_row(raw: RawRow, values: dict[str, Any], _rules: Rules) -> TaskRow:
    """Reads a task with a response for each completion: a text, or an object that also holds a model's ratings of it.

    A model's ratings are kept as metadata of the response, because they are not people's. Raises BadRow.
    """
    if raw.from_csv:
        values = from_json_cells(values, (*PROMPTS, "completions"))
    name = next(name for name in PROMPTS if name in values)
    completions = values["completions"]
    if not isinstance(completions, list) or not completions:
        raise BadRow("completions must be a list of at least one completion", "completions")
    check_responses(len(completions))
    is_list = isinstance(values[name], list)
    return TaskRow(
        line=raw.line,
        messages=answered_messages(values[name], name),
        responses=tuple(_response(value, f"completions[{number}]") for number, value in enumerate(completions)),
        external_id=identifier(values.get("id", ""), "id"),
        metadata=metadata_of(rest_of(values, {"id", "completions", "models", name}, name if is_list else "")),
        preference=_by_rank(completions),
        language=language_of(values.get("lang") or values.get("language")),
        layout="completions",
        size=raw.size,
    )


def _response(value: Any, name: str) -> ResponseRow:
    if isinstance(value, str):
        return ResponseRow(storable_text(value, name))
    if not isinstance(value, dict):
        raise BadRow(f"{name} is {shown(value)}: it must be a text, or an object with one", name)
    key = next((key for key in ("response", "completion", "text") if key in value), "response")
    text = required(value, key)
    if isinstance(text, list):
        (*_, last) = checked_turns(text, f"{name}.{key}")
        text = last["content"]
    return ResponseRow(
        storable_text(text, f"{name}.{key}"),
        model=identifier(value.get("model") or "", f"{name}.model"),
        metadata=metadata_of(rest_of(value, {key, "model"})),
    )


def _by_rank(completions: Sequence[Any]) -> int | None:
    """Returns which of two completions has the better rank, the lower one; None if there are more, or no ranks."""
    ranks = [value.get("rank") for value in completions if isinstance(value, dict)]
    whole = [rank for rank in ranks if isinstance(rank, int)]
    if len(completions) != 2 or len(whole) != 2 or whole[0] == whole[1]:
        return None
    return BETTER[whole[1] < whole[0]]
