"""Reads HelpSteer2's three released layouts: labels, disagreements and preferences."""

import json
from collections.abc import Mapping
from typing import Any

from annotator.importing.conversations import checked_messages, rest_of
from annotator.importing.field_checks import (
    BadRow,
    check_messages,
    check_raters,
    from_json_cells,
    identifier,
    level,
    metadata_of,
    required,
    shown,
    storable_text,
    strength,
    whole_of_cell,
)
from annotator.importing.layouts.own_tasks import language_as_written
from annotator.importing.prompts import messages_from_prompt, prompt_from_messages
from annotator.importing.rows import FlatRow, GivenPreference, ResponseRow, Rules, SegmentLabel, TaskRow
from annotator.importing.segment_fields import lists_of_levels, segments_of
from annotator.importing.sources import RawRow
from annotator.models.annotation import TIE
from annotator.segmenting import Range

PREFERENCE_FIELDS = {
    "id",
    "prompt",
    "response_1",
    "response_2",
    "preference_strength",
    "three_most_similar_preferences",
    "all_preferences_unprocessed",
}
HELPSTEER2 = ("helpfulness", "correctness", "coherence", "complexity", "verbosity")
FLAT_FIELDS = {"prompt", "response", "id", "model"}


def is_preference(values: Mapping[str, Any]) -> bool:
    return "preference_strength" in values


def is_labels(values: Mapping[str, Any]) -> bool:
    return values.keys() >= {"task", "response", "prompt", "text", "made_at"}


def labels_row(raw: RawRow, values: dict[str, Any], rules: Rules) -> FlatRow:
    """Reads a row of our own layout *labels*, whose `response` is the response's id. Raises BadRow."""
    if "id" in values:
        raise BadRow("response is the response's id in this layout, so there can be no other id: leave it out", "id")
    others = {name: value for name, value in values.items() if name not in ("response", "text")}
    return flat_row(raw, {**others, "id": values["response"], "response": values["text"]}, rules)


def is_flat(values: Mapping[str, Any]) -> bool:
    return "prompt" in values and "response" in values


def flat_row(raw: RawRow, values: dict[str, Any], rules: Rules) -> FlatRow:
    """Reads one response. Two consecutive rows with the same prompt become one task."""
    attributes = rules.attributes
    if raw.from_csv:
        scored = {*attributes, *HELPSTEER2, *rules.aspects}
        values = from_json_cells(values, ("segments", "ranges") if rules.aspects else ())
        values = {name: _from_cell(value) if name in scored else value for name, value in values.items()}
    prompt, text = required(values, "prompt"), required(values, "response")
    scores = {key: values[key] for key in attributes if key in values}
    if scores:
        for key in attributes:
            required(values, key)
    elif unknown := [key for key in HELPSTEER2 if isinstance(values.get(key), int | list) and key not in rules.aspects]:
        raise BadRow(
            f"the project has no attribute {unknown[0]}: give it a rubric that has, or leave the column out", unknown[0]
        )
    label: dict[str, int] = {}
    ratings: tuple[dict[str, int], ...] = ()
    if scores and all(isinstance(value, list) for value in scores.values()):
        ratings = _rating_lists(scores, attributes)
    else:
        label = {key: level(value, key, attributes[key]) for key, value in scores.items()}
    text = storable_text(text, "response")
    segments, segment_label, further = _segments(values, text, rules)
    return FlatRow(
        raw.line,
        _prompt(prompt),
        ResponseRow(
            text,
            raw.line,
            external_id=identifier(values.get("id", ""), "id"),
            model=identifier(values.get("model") or "", "model"),
            metadata=metadata_of(rest_of(values, FLAT_FIELDS | attributes.keys() | further)),
            segments=segments,
            segment_label=segment_label,
            label=label,
            ratings=ratings,
        ),
        raw.size,
        language_as_written(values.get("lang")),
    )


def _segments(
    values: dict[str, Any], text: str, rules: Rules
) -> tuple[tuple[Range, ...], SegmentLabel | None, set[str]]:
    """Reads HelpSteer-2D's `segments`, ranges or texts, with a list of levels for each aspect.

    Returns the names of the fields that were read, too. Raises BadRow.
    """
    if not rules.aspects or not values.get("segments"):
        return (), None, set()
    # Ranges say exactly what the texts mean.
    segments = segments_of(values.get("ranges") or values["segments"], text, "segments")
    return segments, lists_of_levels(values, rules, len(segments)), {"segments", "ranges", *rules.aspects}


def _prompt(value: Any) -> str:
    """Returns the prompt, the last turn of which must be the user's, as the responses answer it. Raises BadRow."""
    if isinstance(value, list):
        return prompt_from_messages(checked_messages(value, "prompt"))
    prompt = storable_text(value, "prompt")
    messages = messages_from_prompt(prompt)
    check_messages(len(messages))
    if messages[-1]["role"] != "user":
        raise BadRow("the prompt must end with the user's turn, which the responses answer", "prompt")
    return prompt


def _from_cell(cell: Any) -> Any:
    """Reads a level or a list of levels from a cell. Any other cell stays as it is, which later checks refuse."""
    if not isinstance(cell, str):
        return cell
    if cell.startswith("["):
        try:
            return json.loads(cell)
        except ValueError:
            return cell
    return whole_of_cell(cell)


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


def preference_row(raw: RawRow, values: dict[str, Any], rules: Rules) -> TaskRow:
    if raw.from_csv:
        values = from_json_cells(values, ("all_preferences_unprocessed", "three_most_similar_preferences"))
        values["preference_strength"] = whole_of_cell(values.get("preference_strength"))
    for name in ("prompt", "response_1", "response_2", "preference_strength"):
        required(values, name)
    preferences = values.get("all_preferences_unprocessed", [])
    if not isinstance(preferences, list):
        raise BadRow("all_preferences_unprocessed must be a list")
    check_raters(len(preferences), "all_preferences_unprocessed")
    consensus = strength(values["preference_strength"], "preference_strength", zero=True)
    read = PREFERENCE_FIELDS
    # A tie stays among the metadata where the project allows none, and so do the three where the others are not there.
    if consensus == TIE and not rules.ties:
        read = read - {"preference_strength"}
    if any(one not in preferences for one in values.get("three_most_similar_preferences") or ()):
        read = read - {"three_most_similar_preferences"}
    return TaskRow(
        line=raw.line,
        messages=messages_from_prompt(_prompt(values["prompt"])),
        responses=tuple(ResponseRow(text=storable_text(values[key], key)) for key in ("response_1", "response_2")),
        external_id=identifier(values.get("id", ""), "id"),
        metadata=metadata_of(rest_of(values, read)),
        preference=consensus if consensus or rules.ties else None,
        preferences=tuple(
            _preference(preference, f"all_preferences_unprocessed[{n}]", rules.ties)
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
        strength=strength(required(value, "strength"), f"{name}.strength", zero=ties),
        justification="" if justification in (None, "") else storable_text(justification, f"{name}.justification"),
    )
