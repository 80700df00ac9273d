"""Reads what other annotation tools ask and store: texts by the names of fields, answers by the names of questions.

A question is named by an attribute and, where there are several responses, by its number: helpfulness_1.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from annotator.importing.companions import parted, refuse_media, shown_with
from annotator.importing.conversations import answered_messages
from annotator.importing.field_checks import BadRow, check_raters, check_responses, shown, storable_text
from annotator.importing.guessed_mappings import guessed
from annotator.importing.prompts import Message
from annotator.importing.rows import GivenAnnotation, ResponseRow, Rules
from annotator.models.annotation import PREFERENCE_STATEMENTS, PREFERENCES, TIE

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
    responses = tuple(
        ResponseRow(storable_text(fields[answer["text"]], f"{name}.{answer['text']}"), model=_model(fields, answer))
        for answer in answers
    )
    names = tuple(answer["text"] for answer in answers)
    read = {asked, *names, *(answer["model"] for answer in answers)}
    messages = answered_messages(fields[asked], f"{name}.{asked}")
    messages = shown_with(messages, companions)
    return Texts(messages, responses, names, {key: value for key, value in fields.items() if key not in read})


def _model(fields: Mapping[str, Any], answer: Mapping[str, str]) -> str:
    model = fields.get(answer["model"]) if answer["model"] else ""
    return model if isinstance(model, str) and len(model) <= 200 else ""


@dataclass(frozen=True)
class Answer:
    """One answer to a question. `of` names the field that the question is about, if the tool says so."""

    question: str
    value: Any
    of: str = ""


def annotation_of(
    rater: str, answers: Sequence[Answer], names: Sequence[str], rules: Rules, where: str
) -> tuple[GivenAnnotation | None, list[Answer]]:
    """Makes one person's answers an annotation; returns it, if there is any, with the answers that are none of ours.

    `names` are the fields of the responses. Levels count from 1. Raises BadRow where attributes of a response lack.
    """
    ratings: dict[int, dict[str, int]] = {}
    preference, justification, rest = None, "", []
    for answer in (_renamed(answer, rules.questions) for answer in answers):
        asked = _asked(answer, names, rules.attributes)
        if asked:
            attribute, position = asked
            ratings.setdefault(position, {})[attribute] = _level(answer, rules.attributes[attribute], where)
        elif answer.question == PREFERENCE and (strength := _strength(answer.value, rules)) is not None:
            preference = strength
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


def unnumbered(question: str) -> str:
    """Returns the name of a question without the response's number."""
    match = _NUMBERED.fullmatch(question)
    return match["attribute"] if match else question


def _renamed(answer: Answer, questions: Mapping[str, str]) -> Answer:
    """Returns the answer under the name of what its question stands for here, with the response's number if any."""
    if not questions:
        return answer
    if name := questions.get(answer.question):
        return replace(answer, question=name)
    match = _NUMBERED.fullmatch(answer.question)
    name = questions.get(match["attribute"]) if match else None
    return replace(answer, question=f"{name}_{match['number']}") if match and name else answer


def _asked(answer: Answer, names: Sequence[str], attributes: Mapping[str, int]) -> tuple[str, int] | None:
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


def _level(answer: Answer, levels: int, where: str) -> int:
    value = answer.value
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value.strip()[:3])
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int or not 1 <= value <= levels:
        raise BadRow(f"{where}.{answer.question} is {shown(answer.value)}: its levels go from 1 to {levels}")
    return value - 1


def _strength(value: Any, rules: Rules) -> int | None:
    strength = _STRENGTHS.get(value.strip().lower()) if isinstance(value, str) else value
    if type(strength) is not int or strength not in PREFERENCES or (strength == TIE and not rules.ties):
        return None
    return strength


@dataclass(frozen=True)
class Person:
    """What one person answered to the questions about a task. `where` names the place of it in the row."""

    rater: str
    answers: Sequence[Answer]
    where: str
    submitted_at: datetime | None = None
    active_seconds: float | None = None


@dataclass
class People:
    """What people said of a task: annotations, answers that are none of ours, and why some ratings do not count."""

    annotations: tuple[GivenAnnotation, ...]
    unread: list[Answer]
    left_out: tuple[str, ...]


def people_of(people: Iterable[Person], names: Sequence[str], rules: Rules) -> People:
    """Makes each person's answers an annotation. Of two by one person, the later one counts.

    Raises BadRow for an annotation that does not fit, unless the rules say that these are left out: then its answers
    are among those that are none of ours.
    """
    given: list[tuple[GivenAnnotation, str]] = []
    unread: list[Answer] = []
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
