"""Turns raw rows into checked rows. Reads our task rows, HelpSteer2's three released layouts, and pairs."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from re import fullmatch
from typing import Any

from annotator.importing.conversations import checked_messages
from annotator.importing.field_checks import (
    BadRow,
    check_messages,
    check_raters,
    check_responses,
    checked_metadata,
    identifier,
    level,
    only_known,
    required,
    shown,
    storable_text,
    with_metadata,
)
from annotator.importing.gold_rows import check_gold, expert_of, gold_use
from annotator.importing.pair_rows import pair_row
from annotator.importing.prompts import messages_from_prompt
from annotator.importing.rows import GivenPreference, Rejected, ResponseRow, TaskRow
from annotator.importing.sources import RawRow
from annotator.models.annotation import NEITHER_VALID, PREFERENCES, TIE
from annotator.models.scores import MOST_LEVELS
from annotator.projects.languages import CODE as LANGUAGE_CODE

TASK_FIELDS = {"id", "messages", "responses", "metadata", "priority", "gold", "lang", "tree"}
RESPONSE_FIELDS = {"id", "text", "model", "rank", "metadata", "expert"}
PREFERENCE_FIELDS = {
    "split",
    "prompt",
    "response_1",
    "response_2",
    "preference_strength",
    "preference_statement",
    "preference_elaboration",
    "three_most_similar_preferences",
    "all_preferences_unprocessed",
}
_LEVELS = {str(score): score for score in range(MOST_LEVELS)}


@dataclass(frozen=True)
class _FlatRow:
    """A row of a layout that has one response in each row. Two consecutive rows with the same prompt are one task."""

    line: int
    prompt: str
    response: ResponseRow
    size: int


def read_tasks(
    rows: Iterable[RawRow], attributes: Mapping[str, int], *, ties: bool = False
) -> Iterator[TaskRow | Rejected]:
    """Checks each row against the layout that its fields indicate, and pairs consecutive rows of one prompt.

    `attributes` holds the number of levels of each attribute by its key. `ties` says whether a single rater's
    preference may be 0.
    """
    waiting: _FlatRow | None = None
    for raw in rows:
        parsed = _parsed(raw, attributes, ties)
        del raw  # a large row would stay in memory while the next one is read
        if isinstance(parsed, _FlatRow) and waiting and waiting.prompt == parsed.prompt:
            yield _paired(waiting, parsed)
            waiting = None
        elif isinstance(parsed, _FlatRow):
            if waiting:
                yield _paired(waiting)
            waiting = parsed
        else:
            yield parsed
    if waiting:
        yield _paired(waiting)


def _parsed(raw: RawRow, attributes: Mapping[str, int], ties: bool) -> TaskRow | _FlatRow | Rejected:
    if raw.values is None:
        return Rejected(raw.line, raw.error, raw.field)
    try:
        if "messages" in raw.values or "responses" in raw.values:
            return _task_row(raw, raw.values, attributes)
        if "response_1" in raw.values or "response_2" in raw.values:
            return _preference_row(raw, raw.values, ties)
        if "chosen" in raw.values or "rejected" in raw.values:
            return pair_row(raw, raw.values)
        return _flat_row(raw, raw.values, attributes)
    except BadRow as bad:
        return Rejected(raw.line, str(bad), bad.field)
    except RecursionError:
        # Strangers choose the nesting of a row, and one such row must not end the import.
        return Rejected(raw.line, "the row is nested too deeply")


def _paired(*rows: _FlatRow) -> TaskRow:
    return TaskRow(
        line=rows[0].line,
        messages=messages_from_prompt(rows[0].prompt),
        responses=tuple(row.response for row in rows),
        layout="helpsteer2",
        size=sum(row.size for row in rows),
    )


# Layouts ---------------------------------------------------------------------------------------------------


def _task_row(raw: RawRow, values: dict[str, Any], attributes: Mapping[str, int]) -> TaskRow:
    only_known(values, TASK_FIELDS, "field")
    messages, responses = required(values, "messages"), required(values, "responses")
    if not isinstance(responses, list) or not responses:
        raise BadRow("responses must be a list of at least one response", "responses")
    check_responses(len(responses))
    priority = values.get("priority", 0)
    # Not isinstance: True and False are integers as well.
    if type(priority) is not int or not -1000 <= priority <= 1000:
        raise BadRow(f"priority is {shown(priority)}: it must be a whole number from -1000 to 1000", "priority")
    extra: dict[str, Any] = {key: values[key] for key in ("lang", "tree") if key in values}
    metadata = with_metadata(extra, values, "metadata")
    parsed = tuple(_response(response, f"responses[{number}]", attributes) for number, response in enumerate(responses))
    named = [response.external_id for response in parsed if response.external_id]
    if len(set(named)) != len(named):
        raise BadRow("two responses have the same id", "responses")
    gold = gold_use(values.get("gold"))
    check_gold(gold, [response.expert for response in parsed])
    return TaskRow(
        line=raw.line,
        messages=checked_messages(messages),
        responses=parsed,
        external_id=identifier(values.get("id", ""), "id"),
        priority=priority,
        metadata=metadata,
        gold=gold,
        language=_language(values.get("lang")),
        size=raw.size,
    )


def _language(value: Any) -> str:
    """Returns a code such as `de` or `pt-BR` in lower case, or an empty text: other values select no annotators."""
    code = value.lower() if isinstance(value, str) else ""
    return code if fullmatch(LANGUAGE_CODE, code) else ""


def _response(value: Any, name: str, attributes: Mapping[str, int]) -> ResponseRow:
    if not isinstance(value, dict):
        raise BadRow(f"{name} is {shown(value)}: it must be an object with a text", name)
    only_known(value, RESPONSE_FIELDS, f"field of {name}")
    extra = {"rank": value["rank"]} if "rank" in value else {}
    model = value.get("model") or ""
    return ResponseRow(
        text=storable_text(required(value, "text"), f"{name}.text"),
        external_id=identifier(value.get("id", ""), f"{name}.id"),
        model=identifier(model, f"{name}.model"),
        metadata=with_metadata(extra, value, f"{name}.metadata"),
        expert=expert_of(value.get("expert"), f"{name}.expert", attributes),
    )


def _flat_row(raw: RawRow, values: dict[str, Any], attributes: Mapping[str, int]) -> _FlatRow:
    prompt, text = required(values, "prompt"), required(values, "response")
    only_known(values, {"prompt", "response", *attributes}, "column")
    scores = {key: _from_cell(values[key]) if raw.from_csv else values[key] for key in attributes if key in values}
    if scores:
        for key in attributes:
            required(values, key)
    label: dict[str, int] = {}
    ratings: tuple[dict[str, int], ...] = ()
    if scores and all(isinstance(value, list) for value in scores.values()):
        ratings = _rating_lists(scores, attributes)
    else:
        label = {key: level(value, key, attributes[key]) for key, value in scores.items()}
    response = ResponseRow(storable_text(text, "response"), raw.line, label=label, ratings=ratings)
    return _FlatRow(raw.line, _prompt(prompt), response, raw.size)


def _prompt(value: Any) -> str:
    """Returns the prompt, the last turn of which must be the user's, as the responses answer it. Raises BadRow."""
    prompt = storable_text(value, "prompt")
    messages = messages_from_prompt(prompt)
    check_messages(len(messages))
    if messages[-1]["role"] != "user":
        raise BadRow("the prompt must end with the user's turn, which the responses answer", "prompt")
    return prompt


def _from_cell(cell: str) -> Any:
    """Reads a level or a list of levels from a CSV cell. Any other cell stays text, which later checks refuse."""
    if cell.startswith("["):
        try:
            return json.loads(cell)
        except ValueError:
            return cell
    return _LEVELS.get(cell.strip(), cell)


def _rating_lists(lists: dict[str, list[Any]], attributes: Mapping[str, int]) -> tuple[dict[str, int], ...]:
    """Turns lists of equal length, with one place for each rater, into one rating for each rater. Raises BadRow."""
    lengths = {key: len(values) for key, values in lists.items()}
    if len(set(lengths.values())) != 1 or not next(iter(lengths.values())):
        counts = ", ".join(f"{key} {length}" for key, length in lengths.items())
        raise BadRow(f"the lists of ratings must have the same length, at least 1: {counts}")
    count = next(iter(lengths.values()))
    check_raters(count, "the row")
    return tuple(
        {key: level(values[rater], f"{key}[{rater}]", attributes[key]) for key, values in lists.items()}
        for rater in range(count)
    )


def _preference_row(raw: RawRow, values: dict[str, Any], ties: bool) -> TaskRow:
    only_known(values, PREFERENCE_FIELDS, "column")
    for name in ("prompt", "response_1", "response_2", "preference_strength"):
        required(values, name)
    preferences = values.get("all_preferences_unprocessed", [])
    if not isinstance(preferences, list):
        raise BadRow("all_preferences_unprocessed must be a list")
    check_raters(len(preferences), "all_preferences_unprocessed")
    extra = {key: values[key] for key in ("split", "preference_statement", "preference_elaboration") if key in values}
    return TaskRow(
        line=raw.line,
        messages=messages_from_prompt(_prompt(values["prompt"])),
        responses=tuple(ResponseRow(text=storable_text(values[key], key)) for key in ("response_1", "response_2")),
        metadata=checked_metadata(extra, "metadata"),
        preference=_strength(values["preference_strength"], "preference_strength", zero=True) or None,
        preferences=tuple(
            _preference(preference, f"all_preferences_unprocessed[{n}]", ties)
            for n, preference in enumerate(preferences)
        ),
        layout="preference",
        size=raw.size,
    )


def _preference(value: Any, name: str, ties: bool) -> GivenPreference:
    if not isinstance(value, dict):
        raise BadRow(f"{name} is {shown(value)}: it must be an object with strength and justification")
    justification = value.get("justification")
    return GivenPreference(
        strength=_strength(required(value, "strength"), f"{name}.strength", zero=ties),
        justification="" if justification in (None, "") else storable_text(justification, f"{name}.justification"),
    )


def _strength(value: Any, name: str, *, zero: bool) -> int:
    """Returns the strength of a preference. HelpSteer2's consensus may be 0; a single rater's, if ties are allowed."""
    if type(value) is not int or value not in PREFERENCES:
        raise BadRow(f"{name} is {shown(value)}: it must be -3 to 3, or {NEITHER_VALID} for neither valid")
    if value == TIE and not zero:
        raise BadRow(f"{name} is 0: this project allows no ties. A manager can turn on allow_ties")
    return value
