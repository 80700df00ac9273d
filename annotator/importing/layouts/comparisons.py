"""Reads two responses in columns such as response_a and response_b, and the conversations of Chatbot Arena's votes."""

import json
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from annotator.importing.conversations import answered_messages, checked_turns, ending_with_user, rest_of, written_out
from annotator.importing.field_checks import (
    BadRow,
    check_messages,
    from_json_cells,
    identifier,
    metadata_of,
    required,
    shown,
    storable_text,
)
from annotator.importing.layouts.own_tasks import language_of
from annotator.importing.prompts import Message
from annotator.importing.rows import GivenAnnotation, ResponseRow, Rules, TaskRow
from annotator.importing.sources import RawRow
from annotator.models.annotation import NEITHER_VALID, TIE

COLUMNS = tuple(
    (f"{word}{first}", f"{word}{second}")
    for word in ("response", "answer", "completion", "output")
    for first, second in (("_a", "_b"), ("_A", "_B"), ("_0", "_1"), ("_1", "_2"), ("1", "2"))
)
CONVERSATIONS = ("conversation_a", "conversation_b")
PROMPTS = ("messages", "prompt", "question", "instruction")
MODELS = (("model_a", "model_b"), ("model_1", "model_2"), ("model1", "model2"))
FIRST, SECOND = -1, 1
"""Votes say which response is better, not how much: the weakest preferences."""
WINNERS = {
    **dict.fromkeys(("a", "model_a", "response_a", "answer_a", "model_1", "response_1", "left"), FIRST),
    **dict.fromkeys(("b", "model_b", "response_b", "answer_b", "model_2", "response_2", "right"), SECOND),
    **dict.fromkeys(("tie", "tie_both_good"), TIE),
    **dict.fromkeys(("tie (bothbad)", "tie_both_bad", "bothbad", "both_bad", "neither"), NEITHER_VALID),
}
VOTES = ("winner", "better_response_id", "winner_model_a", "winner_model_b", "winner_tie")
PEOPLE = ("judge", "annotator", "annotator_id", "user")


def is_comparison(values: Mapping[str, Any]) -> bool:
    return any(first in values and second in values for first, second in COLUMNS)


def comparison_row(raw: RawRow, values: dict[str, Any], rules: Rules) -> TaskRow:
    """Reads a prompt with two responses and, where there is one, the vote for one of them. Raises BadRow."""
    if raw.from_csv:
        values = from_json_cells(values, PROMPTS)
    columns = next(pair for pair in COLUMNS if pair[0] in values and pair[1] in values)
    prompt = next((name for name in PROMPTS if name in values), "")
    if not prompt:
        raise BadRow("the field prompt is missing", "prompt")
    if turns := _turns_in_lists(values, prompt, columns):
        messages, texts = _compared(*turns)
    else:
        messages = answered_messages(values[prompt], prompt)
        texts = [storable_text(values[name], name) for name in columns]
    return _row(raw, values, rules, messages=messages, texts=texts, read={prompt, *columns})


def is_arena(values: Mapping[str, Any]) -> bool:
    return CONVERSATIONS[0] in values


def arena_row(raw: RawRow, values: dict[str, Any], rules: Rules) -> TaskRow:
    """Reads two conversations that begin alike: what differs is what was compared. Raises BadRow."""
    if raw.from_csv:
        values = from_json_cells(values, CONVERSATIONS)
    messages, texts = _compared(*(checked_turns(required(values, name), name) for name in CONVERSATIONS))
    return _row(raw, values, rules, messages=messages, texts=texts, read=set(CONVERSATIONS))


def _row(
    raw: RawRow, values: dict[str, Any], rules: Rules, *, messages: list[Message], texts: list[str], read: set[str]
) -> TaskRow:
    models = next((pair for pair in MODELS if pair[0] in values), ("", ""))
    vote = _vote(values)
    person = next((name for name in PEOPLE if values.get(name) not in (None, "")), "")
    # A tie of one person stays among the metadata where the project allows none; the row is a task all the same.
    counts = vote is not None and (vote != TIE or rules.ties)
    voted = counts and person
    identity = "id" if "id" in values else "question_id"
    read |= {identity, *models} | ({person} if person else set()) | ({*VOTES} if counts else set())
    return TaskRow(
        line=raw.line,
        messages=messages,
        responses=tuple(
            ResponseRow(text, model=identifier(values.get(model) or "", model))
            for text, model in zip(texts, models, strict=True)
        ),
        external_id=identifier(values.get(identity, ""), identity),
        metadata=metadata_of(rest_of(values, read)),
        preference=vote or None,
        annotations=(GivenAnnotation(str(values[person]), {}, vote),) if voted else (),
        language=language_of(values.get("lang") or values.get("language")),
        layout="comparisons",
        size=raw.size,
    )


def _vote(values: Mapping[str, Any]) -> int | None:
    """Returns the preference that the row's vote comes to, or None if it has none."""
    for name, vote in (("winner_model_a", FIRST), ("winner_model_b", SECOND), ("winner_tie", TIE)):
        if str(values.get(name, "")).lower() in ("1", "true"):
            return vote
    if "better_response_id" in values:
        number = str(values["better_response_id"])
        if number not in ("0", "1"):
            raise BadRow(f"better_response_id is {shown(values['better_response_id'])}: it must be 0 or 1")
        return (FIRST, SECOND)[int(number)]
    winner = values.get("winner")
    if winner in (None, ""):
        return None
    if str(winner).lower() not in WINNERS:
        raise BadRow(f"winner is {shown(winner)}: it must be model_a, model_b, tie or tie (bothbad)", "winner")
    return WINNERS[str(winner).lower()]


def _turns_in_lists(values: Mapping[str, Any], prompt: str, columns: tuple[str, str]) -> list[list[Message]]:
    """Returns both conversations where prompt and responses are lists of texts, one for each turn."""
    lists = [_texts(values[name]) for name in (prompt, *columns)]
    if not all(lists) or len({len(texts) for texts in lists}) > 1:
        return []
    asked, *answers = lists
    check_messages(2 * len(asked))
    turns = [
        [turn for pair in zip(asked, texts, strict=True) for turn in zip(("user", "assistant"), pair, strict=True)]
        for texts in answers
    ]
    return [
        [{"role": role, "content": storable_text(text, prompt)} for role, text in conversation]
        for conversation in turns
    ]


def _texts(value: Any) -> list[str]:
    """Returns a list of texts, which a table may hold as JSON; an empty list for any other value."""
    if isinstance(value, str) and value.startswith('["'):
        try:
            value = json.loads(value)
        except ValueError:
            return []
    return value if isinstance(value, list) and all(isinstance(text, str) for text in value) else []


def _compared(first: list[Message], second: list[Message]) -> tuple[list[Message], list[str]]:
    """Returns the messages with which both begin, and the rest of each as one text."""
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))))
    # Where both answers are equal as well, the last one is still what was compared.
    same = min(same, len(first) - 1, len(second) - 1)
    while same and first[same - 1]["role"] != "user":
        same -= 1
    rests = (first[same:], second[same:])
    for name, rest in zip(CONVERSATIONS, rests, strict=True):
        if rest[0]["role"] != "assistant":
            raise BadRow(f"{name} must have the same question as the other conversation, and an answer to it", name)
    return ending_with_user(first[:same], CONVERSATIONS[0]), [written_out(rest) for rest in rests]
