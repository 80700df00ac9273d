"""Reads our own layout of tasks (docs/formats.md), gold tasks included, and conversations that end with the answer."""

from collections.abc import Mapping, Sequence
from typing import Any

from annotator.models import Gold
from annotator.models.annotation import TIE
from annotator.stages.importing.conversations import (
    answered_messages,
    checked_turns,
    ending_with_user,
    rest_of,
    written_out,
)
from annotator.stages.importing.field_checks import (
    BadRow,
    check_raters,
    check_responses,
    identifier,
    language_as_written,
    level,
    only_known,
    required,
    shown,
    storable_text,
    strength,
    whole,
    with_metadata,
)
from annotator.stages.importing.layouts.steps import segments_of
from annotator.stages.importing.task_rows import (
    Expert,
    GivenAnnotation,
    ImportRules,
    ResponseRow,
    SegmentLabel,
    TaskRow,
)

TASK_FIELDS = {"id", "messages", "responses", "metadata", "priority", "gold", "lang"}
ANNOTATION_FIELDS = {"annotator", "scores", "preference", "justification"}
RESPONSE_FIELDS = {"id", "text", "model", "metadata", "expert", "segments"}
CONVERSATIONS = ("messages", "conversations", "conversation")
COMPLETION_CELLS = ("prompt", "completion")
TASK_CELLS = ("messages", "prompt", "responses", "metadata", *CONVERSATIONS)


def task_row(values: dict[str, Any], rules: ImportRules, *, is_mapped: bool = False) -> TaskRow:
    """Reads a task: `messages`, or a `prompt` in their place, and `responses`, objects or texts. Raises BadRow."""
    name = "prompt" if "prompt" in values and "messages" not in values else "messages"
    given, responses = required(values, name), required(values, "responses")
    if not isinstance(responses, list) or not responses:
        raise BadRow("responses must be a list of at least one response", "responses")
    check_responses(len(responses))
    messages = (
        answered_messages(given, name) if name == "prompt" else ending_with_user(checked_turns(given, name), name)
    )
    parsed = tuple(_response(response, f"responses[{number}]", rules) for number, response in enumerate(responses))
    named = [response.external_id for response in parsed if response.external_id]
    if len(set(named)) != len(named):
        raise BadRow("two responses have the same id", "responses")
    said, values = _annotations(values, parsed, rules)
    gold = _gold_use(values.get("gold"))
    experts = [response.expert for response in parsed]
    if gold and not all(experts):
        raise BadRow("gold needs an expert rating of every response: responses[].expert {scores, explanation}")
    if not gold and any(experts):
        raise BadRow(f"a response has an expert rating: set gold to say what it is for ({', '.join(Gold.Use.values)})")
    return TaskRow(
        messages=messages,
        responses=parsed,
        external_id=identifier(values.get("id", ""), "id"),
        priority=_priority(values.get("priority", 0)),
        metadata=_metadata(values, name, is_mapped=is_mapped),
        annotations=said,
        gold=gold,
        language=language_as_written(values.get("lang") or values.get("language")),
    )


def _annotations(
    values: dict[str, Any], responses: Sequence[ResponseRow], rules: ImportRules
) -> tuple[tuple[GivenAnnotation, ...], dict[str, Any]]:
    """Returns what people said of the responses, and the row without it. Raises BadRow.

    Anything else of that name stays with the task, and so do ties where the project allows none.
    """
    listed = values.get("annotations")
    if not isinstance(listed, list) or not listed:
        return (), values
    named = [one.keys() if isinstance(one, dict) else set() for one in listed]
    if not all(keys & {"scores", "preference"} and keys <= ANNOTATION_FIELDS for keys in named):
        return (), values
    check_raters(len(listed), "annotations")
    ties = [one for one in listed if one.get("preference") == TIE and "scores" not in one and not rules.ties]
    said = [
        _annotation(one, f"annotations[{number}]", len(responses), rules)
        for number, one in enumerate(listed)
        if one not in ties
    ]
    return tuple(said), {**values, "annotations": ties or None}


def _annotation(value: dict[str, Any], name: str, count: int, rules: ImportRules) -> GivenAnnotation:
    preference, reason = value.get("preference"), value.get("justification") or ""
    if preference is not None and count != 2:
        raise BadRow(f"{name} has a preference, which is for tasks of two responses", name)
    scores = value.get("scores") or []
    if not isinstance(scores, list) or len(scores) > count or not all(isinstance(one, dict | None) for one in scores):
        raise BadRow(f"{name}.scores must be a list with an object of scores, or null, for each response", name)
    given = {position: one for position, one in enumerate(scores) if one}
    for position, one in given.items():
        only_known(one, set(rules.attributes), f"attribute of {name}.scores")
        if missing := [key for key in rules.attributes if key not in one]:
            raise BadRow(
                f"{name} rates response {position + 1} without {', '.join(missing)}: rate every attribute", name
            )
    return GivenAnnotation(
        rater=identifier(value.get("annotator") or "", f"{name}.annotator"),
        ratings={
            position: {key: level(one[key], f"{name}.{key}", rules.attributes[key]) for key in rules.attributes}
            for position, one in given.items()
        },
        preference=None if preference is None else strength(preference, f"{name}.preference", zero=rules.ties),
        justification=storable_text(reason, f"{name}.justification") if reason else "",
    )


def completion_row(values: dict[str, Any], rules: ImportRules) -> TaskRow:
    """Reads a prompt with one completion, texts or lists of messages, as TRL takes them. Raises BadRow."""
    completion = values["completion"]
    if isinstance(completion, list):
        turns = checked_turns(completion, "completion")
        if turns[0]["role"] != "assistant":
            raise BadRow("completion must begin with the assistant's message", "completion")
        completion = written_out(turns)
    response = {"text": storable_text(completion, "completion"), "model": values.get("model") or ""}
    rest = {name: value for name, value in values.items() if name not in ("completion", "model", "messages")}
    return task_row({**rest, "responses": [response]}, rules)


def conversation_row(values: dict[str, Any], _rules: ImportRules) -> TaskRow:
    """Reads a conversation whose last message, the assistant's, is the response that is rated. Raises BadRow."""
    name = next(name for name in CONVERSATIONS if name in values)
    *before, last = checked_turns(values[name], name)
    if last["role"] != "assistant" or "kind" in last:
        raise BadRow("the field responses is missing", "responses")
    return TaskRow(
        messages=ending_with_user(before, name),
        responses=(ResponseRow(last["content"], model=identifier(values.get("model") or "", "model")),),
        external_id=identifier(values.get("id", ""), "id"),
        metadata=_metadata({key: value for key, value in values.items() if key != "model"}, name),
        language=language_as_written(values.get("lang") or values.get("language")),
    )


def _metadata(values: Mapping[str, Any], conversation: str, *, is_mapped: bool = False) -> dict[str, Any]:
    # Words of a mapping are those of a column of another name, which is read.
    is_read = is_mapped and isinstance(values.get("lang"), str)
    extra = {"lang": values["lang"]} if "lang" in values and not is_read else {}
    is_list = isinstance(values[conversation], list)
    rest = rest_of(values, TASK_FIELDS | {conversation}, conversation if is_list else "")
    return with_metadata({**extra, **rest}, dict(values), "metadata")


def _priority(value: Any) -> int:
    value = whole(value)
    # Not isinstance: True and False are integers as well.
    if type(value) is not int or not -1000 <= value <= 1000:
        raise BadRow(f"priority is {shown(value)}: it must be a whole number from -1000 to 1000", "priority")
    return value


def _response(value: Any, name: str, rules: ImportRules) -> ResponseRow:
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
        expert=_expert_of(value.get("expert"), f"{name}.expert", rules, segments=len(segments)),
    )


# Gold tasks ----------------------------------------------------------------------------------------------


def _gold_use(value: Any) -> str:
    """Returns where a gold task is used, or an empty text for any other task. Raises BadRow."""
    if value in (None, ""):
        return ""
    if not isinstance(value, str) or value not in Gold.Use.values:
        raise BadRow(f"gold is {shown(value)}: it must be one of {', '.join(Gold.Use.values)}")
    return value


def _expert_of(value: Any, name: str, rules: ImportRules, *, segments: int) -> Expert | None:
    """Reads the object {scores, explanation, segments} of one response with so many given segments.

    It must score every attribute, and every segment by every aspect of a project that rates segments. Raises BadRow.
    """
    attributes = rules.attributes
    if value is None:
        return None
    if not isinstance(value, dict):
        raise BadRow(f"{name} is {shown(value)}: it must be an object with scores and an explanation")
    only_known(value, {"scores", "explanation", "segments"}, f"field of {name}")
    scores = required(value, "scores") if attributes else value.get("scores") or {}
    explanation = value.get("explanation") or ""
    if not isinstance(scores, dict):
        raise BadRow(f"{name}.scores is {shown(scores)}: it must be an object of attributes and scores")
    only_known(scores, set(attributes), f"attribute of {name}.scores")
    if missing := [key for key in attributes if key not in scores]:
        raise BadRow(f"{name}.scores lacks {', '.join(missing)}")
    checked = {key: level(scores[key], f"{name}.scores.{key}", levels) for key, levels in attributes.items()}
    reasons = storable_text(explanation, f"{name}.explanation") if explanation else ""
    return Expert(checked, reasons, _segments_of_expert(value.get("segments"), f"{name}.segments", rules, segments))


def _segments_of_expert(value: Any, name: str, rules: ImportRules, count: int) -> SegmentLabel | None:
    if not rules.aspects:
        return None
    if not isinstance(value, list) or not value or len(value) != count:
        raise BadRow(f"{name} must be a list of scores by aspect for each of the response's segments, which name them")
    aspects = tuple(rules.aspects)
    for number, scores in enumerate(value):
        if not isinstance(scores, dict) or scores.keys() != set(aspects):
            raise BadRow(f"{name}[{number}] must be an object with {', '.join(aspects)}, null where one does not apply")
    rows = tuple(
        tuple(
            None if scores[key] is None else level(scores[key], f"{name}[{number}].{key}", rules.aspects[key])
            for key in aspects
        )
        for number, scores in enumerate(value)
    )
    return SegmentLabel(aspects, rows)
