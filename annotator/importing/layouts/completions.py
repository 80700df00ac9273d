"""Reads rows with a list of completions: UltraFeedback's (arXiv 2310.01377) and those that NeMo RL trains on."""

from collections.abc import Mapping, Sequence
from typing import Any

from annotator.importing.conversations import answered_messages, checked_turns, rest_of, written_out
from annotator.importing.field_checks import (
    BadRow,
    check_responses,
    from_json_cells,
    identifier,
    metadata_of,
    required,
    shown,
    storable_text,
    whole,
)
from annotator.importing.layouts.own_tasks import language_as_written
from annotator.importing.prompts import Message
from annotator.importing.rows import GivenAnnotation, ResponseRow, Rules, TaskRow
from annotator.importing.sources import RawRow

LISTS = ("completions", "answers")
PROMPTS = ("context", "messages", "instruction", "prompt")
BETTER = (-1, 1)
"""By whether the second response has the better rank. Ranks do not say how much better a response is."""


def has_completions(values: Mapping[str, Any]) -> bool:
    # Beside a response, such a column is an attribute of the same name.
    listed = any(name in values for name in LISTS) and "response" not in values
    return listed and any(name in values for name in PROMPTS)


def completions_row(raw: RawRow, values: dict[str, Any], _rules: Rules) -> TaskRow:
    """Reads a task with a response for each completion: a text, or an object that also holds a model's ratings of it.

    A model's ratings are kept as metadata of the response, because they are not people's. Raises BadRow.
    """
    if raw.from_csv:
        values = from_json_cells(values, (*PROMPTS, *LISTS))
    name = next(name for name in PROMPTS if name in values)
    column = next(name for name in LISTS if name in values)
    completions = values[column]
    if not isinstance(completions, list) or not completions:
        raise BadRow(f"{column} must be a list of at least one completion", column)
    check_responses(len(completions))
    is_list = isinstance(values[name], list)
    messages = answered_messages(values[name], name)
    responses = tuple(_response(value, f"{column}[{number}]", messages) for number, value in enumerate(completions))
    read = {"id", column, name}
    if values.get("models") == [response.model for response in responses]:
        read.add("models")
    preference, ranking = by_rank([value.get("rank") if isinstance(value, dict) else None for value in completions])
    return TaskRow(
        line=raw.line,
        messages=messages,
        responses=responses,
        external_id=identifier(values.get("id", ""), "id"),
        metadata=metadata_of(rest_of(values, read, name if is_list else "")),
        preference=preference,
        annotations=ranking,
        read_and_kept=("rank",) if ranking or preference else (),
        language=language_as_written(values.get("lang") or values.get("language")),
        layout="completions",
        size=raw.size,
    )


def _written_out(turns: list[Message], asked: list[Message], name: str) -> str:
    """Returns a completion as one text, without the conversation that it may repeat. Raises BadRow."""
    own = turns[len(asked) :] if turns[: len(asked)] == asked else turns
    if not own or own[0]["role"] != "assistant":
        raise BadRow(f"{name} must begin with the assistant's message", name)
    return written_out(own)


def _response(value: Any, name: str, asked: list[Message]) -> ResponseRow:
    if isinstance(value, str):
        return ResponseRow(storable_text(value, name))
    if not isinstance(value, dict):
        raise BadRow(f"{name} is {shown(value)}: it must be a text, or an object with one", name)
    key = next((key for key in ("response", "completion", "answer", "text") if key in value), "response")
    text = required(value, key)
    if isinstance(text, list):
        text = _written_out(checked_turns(text, f"{name}.{key}"), asked, f"{name}.{key}")
    return ResponseRow(
        storable_text(text, f"{name}.{key}"),
        model=identifier(value.get("model") or "", f"{name}.model"),
        metadata=metadata_of(rest_of(value, {key, "model"})),
    )


def by_rank(given: Sequence[Any]) -> tuple[int | None, tuple[GivenAnnotation, ...]]:
    """Returns what the ranks of all responses say, the lowest being the best: a preference of two, else a ranking."""
    ranks = [whole(rank) for rank in given]
    if len(ranks) < 2 or any(type(rank) is not int for rank in ranks) or len(set(ranks)) == 1:
        return None, ()
    if len(ranks) == 2:
        return BETTER[ranks[1] < ranks[0]], ()
    tiers = tuple(tuple(n for n, rank in enumerate(ranks) if rank == one) for one in sorted(set(ranks)))
    return None, (GivenAnnotation("", {}, ranking=tiers),)
