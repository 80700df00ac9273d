"""Reads Label Studio's tasks: texts in `data`, what people said in `annotations`. Predictions are kept as metadata."""

from collections.abc import Mapping
from typing import Any

from annotator.importing.conversations import rest_of
from annotator.importing.field_checks import BadRow, identifier, metadata_of, moment_of, seconds_of, shown
from annotator.importing.layouts.own_tasks import language_as_written
from annotator.importing.layouts.questions import PREFERENCE, Answer, Person, people_of, texts_of
from annotator.importing.rows import Rules, TaskRow
from annotator.importing.sources import RawRow

OURS = {"task", "language"}
"""What our own export adds to `data`."""
READ = {"id", "data", "annotations", "completions", "drafts", "updated_by", "comment_authors"}
"""Drafts are not submitted. They and the fields behind them name people, whom nothing stores."""
KEPT_OF_RESULT = ("from_name", "to_name", "type", "value")


def is_label_studio(values: Mapping[str, Any]) -> bool:
    return isinstance(values.get("data"), dict) and not {"messages", "prompt"} & values.keys()


def label_studio_row(raw: RawRow, values: dict[str, Any], rules: Rules) -> TaskRow:
    """Reads a task as Label Studio exports it to JSON. Stars and numbers count from 1. Raises BadRow."""
    data = values["data"]
    texts = texts_of({key: value for key, value in data.items() if key not in OURS}, "data")
    people, others = [], []
    for number, value in enumerate(_annotations(values)):
        where = f"annotations[{number}]"
        if not isinstance(value, dict) or not isinstance(value.get("result", []), list):
            raise BadRow(f"{where} is {shown(value)}: it must be an object with a result", where)
        if value.get("was_cancelled"):
            continue
        rater, answers, no_answers = _answers(value, where)
        others += no_answers
        times = moment_of(value.get("created_at")), seconds_of(value.get("lead_time"))
        people.append(Person(rater, answers, where, *times))
    said = people_of(people, texts.names, rules)
    unread = others + [{"from_name": answer.question, "value": answer.value} for answer in said.unread]
    metadata = rest_of(values, READ) | texts.rest | ({"results": unread} if unread else {})
    identity = data.get("task") or values.get("id", "")
    return TaskRow(
        line=raw.line,
        messages=texts.messages,
        responses=texts.responses,
        external_id=identifier(identity, "id"),
        metadata=metadata_of(metadata),
        annotations=said.annotations,
        left_out=said.left_out,
        language=language_as_written(data.get("language")),
        layout="label_studio",
        size=raw.size,
    )


def _annotations(values: Mapping[str, Any]) -> list[Any]:
    given = values.get("annotations") or values.get("completions") or []
    if not isinstance(given, list):
        raise BadRow(f"annotations is {shown(given)}: it must be a list", "annotations")
    return given


def _answers(annotation: Mapping[str, Any], where: str) -> tuple[str, list[Answer], list[dict[str, Any]]]:
    """Returns who annotated, the answers, and the results that are no answers to questions."""
    rater, answers, others = _person(annotation.get("completed_by")), [], []
    for result in annotation.get("result", []):
        if not isinstance(result, dict) or not isinstance(result.get("value", {}), dict):
            raise BadRow(f"{where}.result holds {shown(result)}: it must be an object with a value", where)
        question, value = str(result.get("from_name", "")), _value(result)
        if question == "annotator" and isinstance(value, str):
            rater = value
        elif value is None:
            others.append({key: result[key] for key in KEPT_OF_RESULT if key in result})
        else:
            name = PREFERENCE if result.get("type") == "pairwise" else question
            answers.append(Answer(name, value, str(result.get("to_name", ""))))
    return rater, answers, others


def _value(result: Mapping[str, Any]) -> Any:
    """Returns the rating, number, only choice, side or text of a result; None for anything else, such as a region."""
    value = result.get("value", {})
    if {"start", "end"} & value.keys():
        return None
    for key in ("rating", "number", "selected"):
        if key in value:
            return value[key]
    listed = value.get("choices") or value.get("text")
    if isinstance(listed, list):
        return listed[0] if len(listed) == 1 else None
    return listed


def _person(value: Any) -> str:
    """Returns who completed an annotation: a number, or an object with an address or a number."""
    if isinstance(value, dict):
        value = value.get("email") or value.get("id")
    return "" if value is None else str(value)
