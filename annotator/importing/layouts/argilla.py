"""Reads Argilla's records: texts in `fields`, what people said in `responses`, and our own labels in `suggestions`."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from annotator.importing.conversations import rest_of
from annotator.importing.field_checks import BadRow, identifier, moment_of, seconds_of, shown, with_metadata
from annotator.importing.layouts.own_tasks import language_as_written
from annotator.importing.layouts.questions import Answer, Person, Texts, annotation_of, people_of, texts_of
from annotator.importing.rows import Rules, TaskRow
from annotator.importing.sources import RawRow

AGENT = "rewardloop"
"""Who suggests labels in our own export. What other agents suggest are the opinions of models: metadata."""
SUBMITTED = ("submitted", None)
"""States of answers that count; drafts and what somebody discarded do not."""
READ = {"id", "fields", "responses", "suggestions", "metadata", "vectors", "status"}


def is_argilla(values: Mapping[str, Any]) -> bool:
    return isinstance(values.get("fields"), dict)


def argilla_row(raw: RawRow, values: dict[str, Any], rules: Rules) -> TaskRow:
    """Reads a record as Argilla's `to_json` writes it, or its REST API. Ratings count from 1. Raises BadRow."""
    texts = texts_of(values["fields"], "fields")
    said = people_of(_people(values.get("responses") or {}), texts.names, rules)
    unread = [{"question": answer.question, "value": answer.value} for answer in said.unread]
    ours, others = _suggestions(values.get("suggestions") or {})
    extra = rest_of(values, READ) | texts.rest
    extra |= ({"responses": unread} if unread else {}) | ({"suggestions": others} if others else {})
    metadata = with_metadata(extra, values if values.get("metadata") else {}, "metadata")
    texts, preference = _with_labels(texts, ours, rules)
    return TaskRow(
        line=raw.line,
        messages=texts.messages,
        responses=texts.responses,
        external_id=identifier(values.get("id") or "", "id"),
        metadata=metadata,
        preference=preference,
        annotations=said.annotations,
        left_out=said.left_out,
        language=language_as_written(metadata.get("language")),
        layout="argilla",
        size=raw.size,
    )


def _people(responses: Any) -> list[Person]:
    """Returns each person's submitted answers, from either form of a record."""
    if isinstance(responses, dict):
        people: dict[str, list[Answer]] = {}
        for person, answer in _of_questions(responses):
            people.setdefault(person, []).append(answer)
        return [Person(person, answers, "responses") for person, answers in people.items()]
    return list(_of_people(responses))


def _of_questions(responses: Mapping[str, Any]) -> Iterator[tuple[str, Answer]]:
    for question, given in responses.items():
        for n, response in enumerate(given if isinstance(given, list) else [given]):
            if not isinstance(response, dict) or "value" not in response:
                name = f"responses.{question}"
                raise BadRow(f"{name} holds {shown(response)}: it must be an object with value and user_id", name)
            if response.get("status") in SUBMITTED:
                yield str(response.get("user_id") or n), Answer(str(question), response["value"])


def _of_people(responses: Any) -> Iterator[Person]:
    for n, response in enumerate(responses if isinstance(responses, list) else [responses]):
        values = response.get("values", 0) if isinstance(response, dict) else 0
        if values is not None and not isinstance(values, dict):
            raise BadRow(f"responses[{n}] is {shown(response)}: it must be an object with values", "responses")
        # Whoever discards a record, or has not begun with it, has no values.
        if values is None or response.get("status") not in SUBMITTED:
            continue
        answers = [
            Answer(str(question), value["value"] if isinstance(value, dict) and "value" in value else value)
            for question, value in values.items()
        ]
        time = moment_of(response.get("updated_at") or response.get("inserted_at"))
        seconds = seconds_of(response.get("active_seconds"))
        yield Person(str(response.get("user_id") or n), answers, f"responses[{n}]", time, seconds)


def _suggestions(given: Any) -> tuple[list[Answer], list[dict[str, Any]]]:
    """Returns the answers that our own export suggested, and what others did."""
    if isinstance(given, dict):
        given = [{"question_name": question, **_object(value)} for question, value in given.items()]
    listed = [_object(value) for value in given]
    ours = [Answer(str(value.get("question_name", "")), value.get("value")) for value in listed if _is_ours(value)]
    return ours, [value for value in listed if not _is_ours(value)]


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadRow(f"suggestions holds {shown(value)}: it must be an object with a value", "suggestions")
    return value


def _is_ours(value: Mapping[str, Any]) -> bool:
    return value.get("agent") == AGENT


def _with_labels(texts: Texts, ours: list[Answer], rules: Rules) -> tuple[Texts, int | None]:
    """Returns the texts with the suggested scores as labels, and the suggested preference."""
    suggested, _ = annotation_of("", ours, texts.names, replace(rules, ties=True), "suggestions")
    if suggested is None:
        return texts, None
    responses = tuple(
        replace(response, label=suggested.ratings.get(n, {})) for n, response in enumerate(texts.responses)
    )
    return replace(texts, responses=responses), suggested.preference or None
