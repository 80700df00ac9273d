"""Reads HelpSteer2's and HelpSteer3's released layouts (arXiv 2406.08673, 2505.11475, 2503.04378)."""

from collections.abc import Mapping, Sequence
from typing import Any

from annotator.models.annotation import TIE
from annotator.stages.importing.conversations import (
    Message,
    checked_messages,
    messages_from_prompt,
    prompt_from_messages,
    rest_of,
)
from annotator.stages.importing.field_checks import (
    BadRow,
    check_messages,
    check_raters,
    from_json_cells,
    identifier,
    language_as_written,
    level,
    metadata_of,
    required,
    shown,
    storable_text,
    strength,
    whole_of_cell,
)
from annotator.stages.importing.layouts.steps import lists_of_levels, segments_of
from annotator.stages.importing.task_rows import GivenPreference, ImportRules, ResponseRow, SegmentLabel, TaskRow
from annotator.stages.segmenting import Range

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


def labels_row(values: dict[str, Any], rules: ImportRules) -> TaskRow:
    """Reads a row of our own layout *labels*, whose `response` is the response's id. Raises BadRow."""
    if "id" in values:
        raise BadRow("response is the response's id in this layout, so there can be no other id: leave it out", "id")
    others = {name: value for name, value in values.items() if name not in ("response", "text")}
    return flat_row({**others, "id": values["response"], "response": values["text"]}, rules)


def flat_cells(values: dict[str, Any], rules: ImportRules) -> dict[str, Any]:
    """Reads levels and lists of levels from the cells of a table. Any other cell stays, which later checks refuse."""
    scored = {*rules.attributes, *HELPSTEER2, *rules.aspects}
    lists = {*scored, *(("segments", "ranges") if rules.aspects else ())}
    values = from_json_cells(values, lists)
    return {name: whole_of_cell(value) if name in scored else value for name, value in values.items()}


def flat_row(values: dict[str, Any], rules: ImportRules) -> TaskRow:
    """Reads one response. Two consecutive rows with the same prompt become one task."""
    attributes = rules.attributes
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
    response = ResponseRow(
        text,
        external_id=identifier(values.get("id", ""), "id"),
        model=identifier(values.get("model") or "", "model"),
        metadata=metadata_of(rest_of(values, FLAT_FIELDS | attributes.keys() | further)),
        segments=segments,
        segment_label=segment_label,
        label=label,
        ratings=ratings,
    )
    language = language_as_written(values.get("lang"))
    return TaskRow(messages=_messages(prompt), responses=(response,), language=language, pairs_up=True)


def _segments(
    values: dict[str, Any], text: str, rules: ImportRules
) -> tuple[tuple[Range, ...], SegmentLabel | None, set[str]]:
    """Reads HelpSteer-2D's `segments`, ranges or texts, with a list of levels for each aspect.

    Returns the names of the fields that were read, too. Raises BadRow.
    """
    if not rules.aspects or not values.get("segments"):
        return (), None, set()
    # Ranges say exactly what the texts mean.
    segments = segments_of(values.get("ranges") or values["segments"], text, "segments")
    return segments, lists_of_levels(values, rules, len(segments)), {"segments", "ranges", *rules.aspects}


def _messages(value: Any) -> list[Message]:
    """Returns the turns of a prompt, the last of which must be the user's: the responses answer it. Raises BadRow."""
    if isinstance(value, list):
        return messages_from_prompt(prompt_from_messages(checked_messages(value, "prompt")))
    messages = messages_from_prompt(storable_text(value, "prompt"))
    check_messages(len(messages))
    if messages[-1]["role"] != "user":
        raise BadRow("the prompt must end with the user's turn, which the responses answer", "prompt")
    return messages


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


def preference_cells(values: dict[str, Any], _rules: ImportRules) -> dict[str, Any]:
    read = from_json_cells(values, ("all_preferences_unprocessed", "three_most_similar_preferences"))
    return {**read, "preference_strength": whole_of_cell(values.get("preference_strength"))}


def preference_row(values: dict[str, Any], rules: ImportRules) -> TaskRow:
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
        messages=_messages(values["prompt"]),
        responses=tuple(ResponseRow(text=storable_text(values[key], key)) for key in ("response_1", "response_2")),
        external_id=identifier(values.get("id", ""), "id"),
        metadata=metadata_of(rest_of(values, read)),
        preference=consensus if consensus or rules.ties else None,
        preferences=tuple(
            _preference(preference, f"all_preferences_unprocessed[{n}]", rules, ("strength", "justification"))
            for n, preference in enumerate(preferences)
        ),
    )


RESPONSES = (
    ("response1", "response2"),
    ("good_edited_response", "bad_edited_response"),
    ("original_response", "edited_response"),
    ("response",),
)
"""The responses of each configuration, looked for in this order."""
PREFERRED = {"good_edited_response": -1, "original_response": 1}
"""By the first response: a good edit is better than a bad one, and an edit is better than what it was made from."""
FEEDBACK = {"response1": "feedback1", "response2": "feedback2", "response": "feedback", "original_response": "feedback"}
NAMED = {"original_response", "edited_response", "good_edited_response", "bad_edited_response"}
"""Responses whose fields become their ids: an export tells by these which configuration a task came from."""


def is_helpsteer3(values: Mapping[str, Any]) -> bool:
    context = values.get("context")
    is_list = isinstance(context, list) or (isinstance(context, str) and context.lstrip().startswith("["))
    return is_list and any(names[0] in values for names in RESPONSES)


def helpsteer3_cells(values: dict[str, Any], _rules: ImportRules) -> dict[str, Any]:
    read = from_json_cells(values, ("context", "individual_preference", *FEEDBACK.values()))
    return {**read, "overall_preference": whole_of_cell(values.get("overall_preference"))}


def helpsteer3_row(values: dict[str, Any], rules: ImportRules) -> TaskRow:
    """Reads a task of one response or two; what people wrote about a response is kept with it. Raises BadRow."""
    # In a table of several configurations, the others' cells are empty.
    there = [names for names in RESPONSES if names[0] in values]
    names = next((names for names in there if values[names[0]] not in (None, "")), there[0])
    feedback = {FEEDBACK[name] for name in names if name in FEEDBACK}
    read = {"id", "context", "overall_preference", "individual_preference", *names, *feedback}
    given = values.get("individual_preference") or []
    if not isinstance(given, list):
        raise BadRow("individual_preference must be a list", "individual_preference")
    check_raters(len(given), "individual_preference")
    preference = PREFERRED.get(names[0], 0)
    if values.get("overall_preference") not in (None, ""):
        preference = strength(values["overall_preference"], "overall_preference", zero=True)
    preferences = [
        _preference(value, f"individual_preference[{n}]", rules, ("score", "reasoning"))
        for n, value in enumerate(given)
    ]
    rest = rest_of(values, read, "context")
    # Ours has a justification and no feedback on each response, so HelpSteer3's is kept as it is.
    if any(isinstance(value, dict) and value.keys() - {"score", "reasoning"} for value in given):
        rest["individual_preference"] = given
    # Ours is 0 where raters allow ties alone, so HelpSteer3's is kept.
    if values.get("overall_preference") == 0:
        rest["overall_preference"] = 0
    return TaskRow(
        messages=checked_messages(values["context"], "context"),
        responses=tuple(_response(values, name) for name in names),
        external_id=identifier(values.get("id", ""), "id"),
        metadata=metadata_of(rest),
        preference=preference if preference or (rules.ties and "overall_preference" in rest) else None,
        preferences=tuple(preferences),
        language=language_as_written(values.get("language")),
    )


def _response(values: Mapping[str, Any], name: str) -> ResponseRow:
    feedback = values.get(FEEDBACK.get(name, ""))
    text = storable_text(required(dict(values), name), name)
    metadata = metadata_of({"feedback": feedback} if feedback else {})
    return ResponseRow(text, external_id=name if name in NAMED else "", metadata=metadata)


def _preference(value: Any, name: str, rules: ImportRules, keys: tuple[str, str]) -> GivenPreference:
    """Reads one person's preference, an object with these keys of its strength and of the reason. Raises BadRow."""
    if not isinstance(value, dict):
        raise BadRow(f"{name} is {shown(value)}: it must be an object with {keys[0]} and {keys[1]}", name)
    given, reason = required(value, keys[0]), value.get(keys[1])
    return GivenPreference(
        strength=strength(given, f"{name}.{keys[0]}", zero=rules.ties),
        justification="" if reason in (None, "") else storable_text(reason, f"{name}.{keys[1]}"),
    )


def texts_of(feedback: Any) -> list[str]:
    """Returns what several people wrote about one response; it may be a list, a single text or missing."""
    texts = [feedback] if isinstance(feedback, str) else feedback if isinstance(feedback, list) else []
    return [text for text in texts if isinstance(text, str) and text]


def by_raters(metadata: Mapping[str, Any], votes: Sequence[tuple[int | None, str]]) -> list[tuple[str, str]]:
    """Returns what each voter wrote about the first and about the second response; empty texts if nothing came.

    A voter is known by the strength and the reason, in which the kept list and the stored preferences agree. Of two
    who are alike in both, the first one gets what comes first.
    """
    kept = metadata.get("individual_preference")
    if not kept:
        return [("", "")] * len(votes)
    waiting = [each for each in kept if isinstance(each, dict)] if isinstance(kept, list) else []
    found = []
    for vote in votes:
        said = ((each.get("score"), _text(each.get("reasoning"))) for each in waiting)
        place = next((n for n, one in enumerate(said) if one == vote), None)
        given = {} if place is None else waiting.pop(place)
        found.append((_text(given.get("feedback1")), _text(given.get("feedback2"))))
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
