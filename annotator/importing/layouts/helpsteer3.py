"""Reads HelpSteer3's configurations: preference, feedback, edit and edit_quality (arXiv 2505.11475, 2503.04378)."""

from collections.abc import Mapping, Sequence
from typing import Any

from annotator.importing.conversations import checked_messages, rest_of
from annotator.importing.field_checks import (
    BadRow,
    check_raters,
    from_json_cells,
    identifier,
    metadata_of,
    required,
    shown,
    storable_text,
    strength,
    whole_of_cell,
)
from annotator.importing.layouts.own_tasks import language_as_written
from annotator.importing.rows import GivenPreference, ResponseRow, Rules, TaskRow
from annotator.importing.sources import RawRow

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
_CELLS = ("context", "individual_preference", *FEEDBACK.values())


def is_helpsteer3(values: Mapping[str, Any]) -> bool:
    context = values.get("context")
    is_list = isinstance(context, list) or (isinstance(context, str) and context.lstrip().startswith("["))
    return is_list and any(names[0] in values for names in RESPONSES)


def helpsteer3_row(raw: RawRow, values: dict[str, Any], rules: Rules) -> TaskRow:
    """Reads a task of one response or two; what people wrote about a response is kept with it. Raises BadRow."""
    if raw.from_csv:
        values = from_json_cells(values, _CELLS)
        values["overall_preference"] = whole_of_cell(values.get("overall_preference"))
    names = _responses(values)
    feedback = {FEEDBACK[name] for name in names if name in FEEDBACK}
    read = {"id", "context", "overall_preference", "individual_preference", *names, *feedback}
    given = values.get("individual_preference") or []
    if not isinstance(given, list):
        raise BadRow("individual_preference must be a list", "individual_preference")
    check_raters(len(given), "individual_preference")
    preference = PREFERRED.get(names[0], 0)
    if values.get("overall_preference") not in (None, ""):
        preference = strength(values["overall_preference"], "overall_preference", zero=True)
    preferences = [_preference(value, f"individual_preference[{n}]", rules) for n, value in enumerate(given)]
    rest = rest_of(values, read, "context")
    # Ours has a justification and no feedback on each response, so HelpSteer3's is kept as it is.
    if any(isinstance(value, dict) and value.keys() - {"score", "reasoning"} for value in given):
        rest["individual_preference"] = given
    # Ours is 0 where raters allow ties alone, so HelpSteer3's is kept.
    if values.get("overall_preference") == 0:
        rest["overall_preference"] = 0
    return TaskRow(
        line=raw.line,
        messages=checked_messages(values["context"], "context"),
        responses=tuple(_response(values, name) for name in names),
        external_id=identifier(values.get("id", ""), "id"),
        metadata=metadata_of(rest),
        preference=preference if preference or (rules.ties and "overall_preference" in rest) else None,
        preferences=tuple(preferences),
        language=language_as_written(values.get("language")),
        layout="helpsteer3",
        size=raw.size,
    )


def _responses(values: Mapping[str, Any]) -> Sequence[str]:
    """Returns the names of the responses; in a table of several configurations, the others' cells are empty."""
    there = [names for names in RESPONSES if names[0] in values]
    return next((names for names in there if values[names[0]] not in (None, "")), there[0])


def _response(values: Mapping[str, Any], name: str) -> ResponseRow:
    feedback = values.get(FEEDBACK.get(name, ""))
    text = storable_text(required(dict(values), name), name)
    metadata = metadata_of({"feedback": feedback} if feedback else {})
    return ResponseRow(text, external_id=name if name in NAMED else "", metadata=metadata)


def _preference(value: Any, name: str, rules: Rules) -> GivenPreference:
    if not isinstance(value, dict):
        raise BadRow(f"{name} is {shown(value)}: it must be an object with score and reasoning", name)
    reasoning = value.get("reasoning")
    return GivenPreference(
        strength=strength(required(value, "score"), f"{name}.score", zero=rules.ties),
        justification="" if reasoning in (None, "") else storable_text(reasoning, f"{name}.reasoning"),
    )
