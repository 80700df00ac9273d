"""Reads what other annotation tools ask and store: texts by the names of fields, answers by the names of questions.

A question is named by an attribute and, where there are several responses, by its number: helpfulness_1.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from annotator.models.annotation import PREFERENCE_STATEMENTS, PREFERENCES, TIE
from annotator.stages.importing.conversations import (
    Message,
    answered_messages,
    parted,
    refuse_media,
    rest_of,
    shown_with,
)
from annotator.stages.importing.field_checks import (
    BadRow,
    check_raters,
    check_responses,
    identifier,
    language_as_written,
    metadata_of,
    moment_of,
    seconds_of,
    shown,
    storable_text,
    whole_of_cell,
    with_metadata,
)
from annotator.stages.importing.mappings import guessed
from annotator.stages.importing.task_rows import GivenAnnotation, ImportRules, ResponseRow, TaskRow

CONVERSATIONS = ("conversation", "messages", "chat", "context")
PREFERENCE = "preference"
REASONS = ("justification", "reason", "reasoning", "comment", "comments", "explanation")
_STRENGTHS = {text.lower(): strength for strength, text in PREFERENCE_STATEMENTS.items()} | {"left": -1, "right": 1}
_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
_NUMBERED = re.compile(r"(?P<attribute>.+?)[_\s-](?P<number>\d{1,2}|[a-z])", re.IGNORECASE)


@dataclass(frozen=True)
class Texts:
    """The texts of a task; `names` are the fields of the responses, `rest` is what else there is."""

    messages: list[Message]
    responses: tuple[ResponseRow, ...]
    names: tuple[str, ...]
    rest: dict[str, Any]


def texts_of(fields: Mapping[str, Any], name: str) -> Texts:
    """Finds prompt and responses among the fields by their names. Raises BadRow."""
    refuse_media(fields)
    fields, companions = parted(dict(fields))
    columns = guessed([key for key, value in fields.items() if value not in ("", None)])
    asked = next((key for key in CONVERSATIONS if isinstance(fields.get(key), list)), columns["prompt"])
    answers = [response for response in columns["responses"] if response["text"] != asked]
    if not asked or not answers:
        raise BadRow(f"{name} needs a prompt and a response: call them prompt and response_1, response_2, ...", name)
    check_responses(len(answers))
    models = [fields.get(answer["model"]) if answer["model"] else "" for answer in answers]
    responses = tuple(
        ResponseRow(
            storable_text(fields[answer["text"]], f"{name}.{answer['text']}"),
            model=model if isinstance(model, str) and len(model) <= 200 else "",
        )
        for answer, model in zip(answers, models, strict=True)
    )
    names = tuple(answer["text"] for answer in answers)
    read = {asked, *names, *(answer["model"] for answer in answers)}
    messages = answered_messages(fields[asked], f"{name}.{asked}")
    messages = shown_with(messages, companions)
    return Texts(messages, responses, names, {key: value for key, value in fields.items() if key not in read})


@dataclass(frozen=True)
class ToolAnswer:
    """One answer to a question. `of` names the field that the question is about, if the tool says so."""

    question: str
    value: Any
    of: str = ""


def annotation_of(
    rater: str, answers: Sequence[ToolAnswer], names: Sequence[str], rules: ImportRules, where: str
) -> tuple[GivenAnnotation | None, list[ToolAnswer]]:
    """Makes one person's answers an annotation; returns it, if there is any, with the answers that are none of ours.

    `names` are the fields of the responses. Levels count from 1. Raises BadRow where attributes of a response lack.
    """
    ratings: dict[int, dict[str, int]] = {}
    preference, justification, rest = None, "", []
    strengths = {*PREFERENCES} - ({TIE} if not rules.ties else set())
    for answer in (_renamed(answer, rules.questions) for answer in answers):
        asked = _asked(answer, names, rules.attributes)
        if asked:
            attribute, position = asked
            levels = rules.attributes[attribute]
            value = whole_of_cell(answer.value)
            if type(value) is not int or not 1 <= value <= levels:
                raise BadRow(f"{where}.{answer.question} is {shown(answer.value)}: its levels go from 1 to {levels}")
            ratings.setdefault(position, {})[attribute] = value - 1
        elif answer.question == PREFERENCE and _preference(answer.value) in strengths:
            preference = _preference(answer.value)
        elif answer.question in REASONS and isinstance(answer.value, str):
            justification = storable_text(answer.value, f"{where}.{answer.question}") if answer.value.strip() else ""
        else:
            rest.append(answer)
    for position, scores in ratings.items():
        if missing := [attribute for attribute in rules.attributes if attribute not in scores]:
            raise BadRow(f"{where} rates response {position + 1} without {', '.join(missing)}: rate every attribute")
    if not ratings and preference is None:
        return None, rest
    if preference is not None and len(names) != 2:
        raise BadRow(f"{where} has a preference, which is for tasks of two responses")
    return GivenAnnotation(rater, ratings, preference, justification), rest


def _preference(value: Any) -> int | None:
    strength = _STRENGTHS.get(value.strip().lower()) if isinstance(value, str) else value
    return strength if type(strength) is int else None


def unnumbered(question: str) -> str:
    """Returns the name of a question without the response's number."""
    match = _NUMBERED.fullmatch(question)
    return match["attribute"] if match else question


def _renamed(answer: ToolAnswer, questions: Mapping[str, str]) -> ToolAnswer:
    """Returns the answer under the name of what its question stands for here, with the response's number if any."""
    if not questions:
        return answer
    if name := questions.get(answer.question):
        return replace(answer, question=name)
    match = _NUMBERED.fullmatch(answer.question)
    name = questions.get(match["attribute"]) if match else None
    return replace(answer, question=f"{name}_{match['number']}") if match and name else answer


def _asked(answer: ToolAnswer, names: Sequence[str], attributes: Mapping[str, int]) -> tuple[str, int] | None:
    """Returns the attribute and the position of the response that a question is about, or None."""
    attribute, position = answer.question, None
    if attribute not in attributes and (match := _NUMBERED.fullmatch(attribute)):
        attribute, number = match["attribute"], match["number"].lower()
        position = int(number) - 1 if number.isdigit() else ord(number) - ord("a")
    if attribute not in attributes:
        return None
    if position is None:
        position = names.index(answer.of) if answer.of in names else 0 if len(names) == 1 else None
    return None if position is None or not 0 <= position < len(names) else (attribute, position)


@dataclass(frozen=True)
class Person:
    """What one person answered to the questions about a task. `where` names the place of it in the row."""

    rater: str
    answers: Sequence[ToolAnswer]
    where: str
    submitted_at: datetime | None = None
    active_seconds: float | None = None


@dataclass
class People:
    """What people said of a task: annotations, answers that are none of ours, and why some ratings do not count."""

    annotations: tuple[GivenAnnotation, ...]
    unread: list[ToolAnswer]
    left_out: tuple[str, ...]


def people_of(people: Iterable[Person], names: Sequence[str], rules: ImportRules) -> People:
    """Makes each person's answers an annotation. Of two by one person, the later one counts.

    Raises BadRow for an annotation that does not fit, unless the rules say that these are left out: then its answers
    are among those that are none of ours.
    """
    given: list[tuple[GivenAnnotation, str]] = []
    unread: list[ToolAnswer] = []
    left_out: list[str] = []
    for person in people:
        try:
            annotation, rest = annotation_of(person.rater, person.answers, names, rules, person.where)
        except BadRow as bad:
            if not rules.fitting_only:
                raise
            left_out.append(str(bad))
            unread += person.answers
            continue
        unread += rest
        if annotation:
            at, seconds = person.submitted_at, person.active_seconds
            given.append((replace(annotation, submitted_at=at, active_seconds=seconds), person.where))
    # Where the file says when, the order of its lists decides nothing.
    given.sort(key=lambda one: one[0].submitted_at or _LONG_AGO)
    last = {annotation.rater or n: (annotation, where) for n, (annotation, where) in enumerate(given)}
    counted = {where for _, where in last.values()}
    left_out += [f"{where}: a later rating by the same person counts" for _, where in given if where not in counted]
    check_raters(len(last), "the row")
    return People(tuple(annotation for annotation, _ in last.values()), unread, tuple(left_out))


AGENT = "rewardloop"
"""Who suggests labels in our own export. What other agents suggest are the opinions of models: metadata."""
SUBMITTED = ("submitted", None)
"""States of answers that count; drafts and what somebody discarded do not."""
READ_OF_ARGILLA = {"id", "fields", "responses", "suggestions", "metadata", "vectors", "status"}


def argilla_row(values: dict[str, Any], rules: ImportRules) -> TaskRow:
    """Reads a record as Argilla's `to_json` writes it, or its REST API. Ratings count from 1. Raises BadRow."""
    texts = texts_of(values["fields"], "fields")
    said = people_of(_people(values.get("responses") or {}), texts.names, rules)
    unread = [{"question": answer.question, "value": answer.value} for answer in said.unread]
    ours, others = _suggestions(values.get("suggestions") or {})
    extra = rest_of(values, READ_OF_ARGILLA) | texts.rest
    extra |= ({"responses": unread} if unread else {}) | ({"suggestions": others} if others else {})
    metadata = with_metadata(extra, values if values.get("metadata") else {}, "metadata")
    texts, preference = _with_labels(texts, ours, rules)
    return TaskRow(
        messages=texts.messages,
        responses=texts.responses,
        external_id=identifier(values.get("id") or "", "id"),
        metadata=metadata,
        preference=preference,
        annotations=said.annotations,
        left_out=said.left_out,
        language=language_as_written(metadata.get("language")),
    )


def _people(responses: Any) -> list[Person]:
    """Returns each person's submitted answers, from either form of a record."""
    if isinstance(responses, dict):
        people: dict[str, list[ToolAnswer]] = {}
        for question, given in responses.items():
            for n, response in enumerate(given if isinstance(given, list) else [given]):
                if not isinstance(response, dict) or "value" not in response:
                    name = f"responses.{question}"
                    raise BadRow(f"{name} holds {shown(response)}: it must be an object with value and user_id", name)
                if response.get("status") in SUBMITTED:
                    answer = ToolAnswer(str(question), response["value"])
                    people.setdefault(str(response.get("user_id") or n), []).append(answer)
        return [Person(person, answers, "responses") for person, answers in people.items()]
    return list(_of_people(responses))


def _of_people(responses: Any) -> Iterator[Person]:
    for n, response in enumerate(responses if isinstance(responses, list) else [responses]):
        values = response.get("values", 0) if isinstance(response, dict) else 0
        if values is not None and not isinstance(values, dict):
            raise BadRow(f"responses[{n}] is {shown(response)}: it must be an object with values", "responses")
        # Whoever discards a record, or has not begun with it, has no values.
        if values is None or response.get("status") not in SUBMITTED:
            continue
        answers = [
            ToolAnswer(str(question), value["value"] if isinstance(value, dict) and "value" in value else value)
            for question, value in values.items()
        ]
        time = moment_of(response.get("updated_at") or response.get("inserted_at"))
        seconds = seconds_of(response.get("active_seconds"))
        yield Person(str(response.get("user_id") or n), answers, f"responses[{n}]", time, seconds)


def _suggestions(given: Any) -> tuple[list[ToolAnswer], list[dict[str, Any]]]:
    """Returns the answers that our own export suggested, and what others did."""
    if isinstance(given, dict):
        given = [{"question_name": question, **_object(value)} for question, value in given.items()]
    listed = [_object(value) for value in given]
    ours = [value for value in listed if value.get("agent") == AGENT]
    answers = [ToolAnswer(str(value.get("question_name", "")), value.get("value")) for value in ours]
    return answers, [value for value in listed if value.get("agent") != AGENT]


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadRow(f"suggestions holds {shown(value)}: it must be an object with a value", "suggestions")
    return value


def _with_labels(texts: Texts, ours: list[ToolAnswer], rules: ImportRules) -> tuple[Texts, int | None]:
    """Returns the texts with the suggested scores as labels, and the suggested preference."""
    suggested, _ = annotation_of("", ours, texts.names, replace(rules, ties=True), "suggestions")
    if suggested is None:
        return texts, None
    responses = tuple(
        replace(response, label=suggested.ratings.get(n, {})) for n, response in enumerate(texts.responses)
    )
    return replace(texts, responses=responses), suggested.preference or None


OURS = {"task", "language"}
"""What our own export adds to `data`."""
READ_OF_LABEL_STUDIO = {"id", "data", "annotations", "completions", "drafts", "updated_by", "comment_authors"}
"""Drafts are not submitted. They and the fields behind them name people, whom nothing stores."""
KEPT_OF_RESULT = ("from_name", "to_name", "type", "value")


def is_label_studio(values: Mapping[str, Any]) -> bool:
    return isinstance(values.get("data"), dict) and not {"messages", "prompt"} & values.keys()


def label_studio_row(values: dict[str, Any], rules: ImportRules) -> TaskRow:
    """Reads a task as Label Studio exports it to JSON. Stars and numbers count from 1. Raises BadRow."""
    data = values["data"]
    texts = texts_of({key: value for key, value in data.items() if key not in OURS}, "data")
    people, others = [], []
    given = values.get("annotations") or values.get("completions") or []
    if not isinstance(given, list):
        raise BadRow(f"annotations is {shown(given)}: it must be a list", "annotations")
    for number, value in enumerate(given):
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
    metadata = rest_of(values, READ_OF_LABEL_STUDIO) | texts.rest | ({"results": unread} if unread else {})
    identity = data.get("task") or values.get("id", "")
    return TaskRow(
        messages=texts.messages,
        responses=texts.responses,
        external_id=identifier(identity, "id"),
        metadata=metadata_of(metadata),
        annotations=said.annotations,
        left_out=said.left_out,
        language=language_as_written(data.get("language")),
    )


def _answers(annotation: Mapping[str, Any], where: str) -> tuple[str, list[ToolAnswer], list[dict[str, Any]]]:
    """Returns who annotated, the answers, and the results that are no answers to questions."""
    person, answers, others = annotation.get("completed_by"), [], []
    if isinstance(person, dict):  # an object with an address or a number, or just the number
        person = person.get("email") or person.get("id")
    rater = "" if person is None else str(person)
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
            answers.append(ToolAnswer(name, value, str(result.get("to_name", ""))))
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
