"""Reads two responses of which one may be better: chosen and rejected, or a and b as in Chatbot Arena's votes."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from annotator.models.annotation import NEITHER_VALID, TIE
from annotator.stages.importing.conversations import (
    ASKING,
    Message,
    alike,
    answered_messages,
    checked_turns,
    compared,
    rest_of,
    turns_of,
)
from annotator.stages.importing.field_checks import (
    BadRow,
    check_messages,
    identifier,
    language_as_written,
    metadata_of,
    required,
    shown,
    storable_text,
    whole,
)
from annotator.stages.importing.task_rows import GivenAnnotation, ImportRules, ResponseRow, TaskRow

PAIR_PROMPTS = ("prompt", "messages", "conversations", "conversation", "question", "instruction", "query", "input")
READ = {"id", "chosen", "rejected"}
STRENGTHS = (1, 2, 3)
BETTER = -1
"""The strength of a preference of which nobody says how strong it is: that the first response is slightly better."""


def pair_row(values: dict[str, Any], _rules: ImportRules) -> TaskRow:
    """Makes a task of two responses, the chosen one first, with a preference.

    `prompt`, `chosen` and `rejected` are texts or lists of messages. Without a prompt, `chosen` and `rejected` begin
    with the same conversation. All other fields become metadata. Raises BadRow.
    """
    chosen, rejected = required(values, "chosen"), required(values, "rejected")
    asked = next((name for name in PAIR_PROMPTS if values.get(name) not in (None, "", [])), "prompt")
    messages, texts = _conversation((values.get(asked), asked), chosen, rejected)
    # Our own export says of pairs with a preference how much better the chosen response is.
    margin = whole(values.get("margin")) if values.get("by") == "preference" else -BETTER
    if margin not in STRENGTHS:
        raise BadRow(f"margin is {shown(margin)}: the strength of a preference is 1, 2 or 3", "margin")
    return TaskRow(
        messages=messages,
        responses=tuple(ResponseRow(storable_text(text, name)) for name, text in texts.items()),
        external_id=identifier(values.get("id", ""), "id"),
        metadata=metadata_of(rest_of(values, {*READ, asked}, asked if isinstance(values.get(asked), list) else "")),
        language=language_as_written(values.get("lang") or values.get("language")),
        preference=-int(margin),
    )


def pair_cells(values: dict[str, Any], _rules: ImportRules) -> dict[str, Any]:
    """Reads messages and the margin from the cells of a table; any other cell stays text."""
    read = dict(values)
    for name, cell in values.items():
        if isinstance(cell, str) and (cell.startswith("[{") or name == "margin"):
            with suppress(ValueError):
                read[name] = json.loads(cell)
    return read


def _conversation(prompt: tuple[Any, str], chosen: Any, rejected: Any) -> tuple[list[Message], dict[str, str]]:
    """Returns the messages that are answered, and the text of each answer.

    Both answers may repeat the prompt, or go on behind it with the same turns; nothing of them is dropped.
    """
    is_implicit = prompt[0] in (None, "", [])
    first, second = (_turns(value, name, is_implicit) for name, value in (("chosen", chosen), ("rejected", rejected)))
    for name, turns in (("chosen", first), ("rejected", second)):
        if turns[-1]["role"] != "assistant":
            raise BadRow(f"{name} must end with the assistant's message", name)
    before = alike(first, second)
    asked = [] if is_implicit else _asked(*prompt, before)
    if not asked and not before:
        if len(first) > 1 or len(second) > 1:
            raise BadRow("chosen and rejected must begin with the same message", "rejected")
        raise BadRow("the field prompt is missing", "prompt")
    messages, texts = compared([*asked, *first], [*asked, *second], ("chosen", "rejected"))
    return messages, dict(zip(("chosen", "rejected"), texts, strict=True))


def _turns(value: Any, name: str, is_implicit: bool) -> list[Message]:
    if isinstance(value, list | dict):
        return checked_turns(value if isinstance(value, list) else [value], name)
    text = storable_text(value, name)
    # Beside a prompt, a text is the answer itself, even if it writes a dialogue out.
    turns = turns_of(text) if is_implicit else []
    return turns if len(turns) > 1 else [{"role": "assistant", "content": text}]


def _asked(prompt: Any, name: str, before: list[Message]) -> list[Message]:
    """Returns what the prompt has to say before the turns with which both answers begin."""
    if not before or before[0]["role"] == "assistant":
        return answered_messages(prompt, name)
    if isinstance(prompt, list):
        given = checked_turns(prompt, name)
        return [] if _holds(before, given) else given
    text = storable_text(prompt, name)
    if _holds(before, turns_of(text)) or any(turn["content"].strip() == text.strip() for turn in before):
        return []
    # Turns that begin with a question do not answer the prompt, so it says how to answer them.
    return [{"role": "system", "content": text}]


def _holds(turns: list[Message], part: list[Message]) -> bool:
    """Returns whether the part stands among the turns, apart from the space around the texts."""
    whole, wanted = ([(turn["role"], turn["content"].strip()) for turn in one] for one in (turns, part))
    return any(whole[at : at + len(wanted)] == wanted for at in range(len(whole) - len(wanted) + 1))


COLUMNS = tuple(
    (f"{word}{first}", f"{word}{second}")
    for word in ("response", "answer", "completion", "output", "generation")
    for first, second in (("_a", "_b"), ("_A", "_B"), ("_0", "_1"), ("_1", "_2"), ("1", "2"), ("A", "B"))
)
CONVERSATIONS = ("conversation_a", "conversation_b")
PROMPTS = ("messages", "prompt", "question", "instruction", "query", "problem", "input")
WORDS = ("full_text", "text", "content")
"""Where a prompt that is an object has its text, as WebGPT's questions do."""
MODELS = (("model_a", "model_b"), ("model_1", "model_2"), ("model1", "model2"), ("generator_1", "generator_2"))
FIRST, SECOND = -1, 1
"""Votes say which response is better, not how much: the weakest preferences."""
WINNERS = {
    **dict.fromkeys(("a", "model_a", "response_a", "answer_a", "model_1", "response_1", "left"), FIRST),
    **dict.fromkeys(("b", "model_b", "response_b", "answer_b", "model_2", "response_2", "right"), SECOND),
    **dict.fromkeys(("tie", "tie_both_good"), TIE),
    **dict.fromkeys(("tie (bothbad)", "tie_both_bad", "bothbad", "both_bad", "neither"), NEITHER_VALID),
}
_BETTER = re.compile(r"\W*(?P<first>[AB12])\s*(?P<sign>>+|<+|=+)\s*(?P<second>[AB12])\W*")
_SIGNS = {">": (FIRST, SECOND), "<": (SECOND, FIRST), "=": (TIE, TIE)}
SCORES = ("score_0", "score_1")
TOKENS = ("tokens_0", "tokens_1")
"""WebGPT's responses once more, as numbers of a model that is not ours."""
VOTES = ("winner", "better_response_id", "winner_model_a", "winner_model_b", "winner_tie", "label")
PEOPLE = ("judge", "annotator", "annotator_id", "user")


def is_comparison(values: Mapping[str, Any]) -> bool:
    return any(first in values and second in values for first, second in COLUMNS)


def comparison_row(values: dict[str, Any], rules: ImportRules) -> TaskRow:
    """Reads a prompt with two responses and, where there is one, the vote for one of them. Raises BadRow."""
    columns = next(pair for pair in COLUMNS if pair[0] in values and pair[1] in values)
    prompt = next((name for name in PROMPTS if values.get(name) not in (None, "")), "")
    if not prompt:
        raise BadRow("the field prompt is missing", "prompt")
    if turns := _turns_in_lists(values, prompt, columns):
        messages, texts = compared(turns[0], turns[1], CONVERSATIONS)
    else:
        asked, rest = values[prompt], {}
        if isinstance(asked, dict):
            word = next((name for name in WORDS if name in asked), "")
            asked, rest = asked.get(word, asked), {key: item for key, item in asked.items() if key != word}
        messages = answered_messages(asked, prompt)
        texts = (storable_text(values[columns[0]], columns[0]), storable_text(values[columns[1]], columns[1]))
        values = {**values, prompt: rest or None}
    return _row(values, rules, messages=messages, texts=texts, read={*columns, *({prompt} if turns else ())})


def arena_row(values: dict[str, Any], rules: ImportRules) -> TaskRow:
    """Reads two conversations that begin alike: what differs is what was compared. Raises BadRow.

    Where the row says which `turn` was judged, as MT-Bench's do, the conversations end with it.
    """
    both = [checked_turns(values[name], name) for name in CONVERSATIONS]
    judged = [_until(turns, whole(values.get("turn"))) for turns in both]
    later = {f"{name}_later": turns[len(cut) :] for name, turns, cut in zip(CONVERSATIONS, both, judged, strict=True)}
    messages, texts = compared(judged[0], judged[1], CONVERSATIONS)
    values = values | {name: turns for name, turns in later.items() if turns}
    return _row(values, rules, messages=messages, texts=texts, read=set(CONVERSATIONS))


def _until(turns: list[Message], judged: Any) -> list[Message]:
    """Returns the turns up to the answer to the question with this number, from 1; all where there is none."""
    if type(judged) is not int or judged < 1:
        return turns
    asked = [number for number, turn in enumerate(turns) if turn["role"] == "user"]
    ends = [number for number in asked[judged:] if turns[number - 1]["role"] not in ASKING]
    return turns[: ends[0]] if ends else turns


def _row(
    values: dict[str, Any], rules: ImportRules, *, messages: list[Message], texts: Sequence[str], read: set[str]
) -> TaskRow:
    models = next((pair for pair in MODELS if pair[0] in values), ("", ""))
    vote, said_by = _vote(values, models)
    # A tie stays among the metadata where the project allows none; the row is a task all the same.
    counts = vote is not None and (vote != TIE or rules.ties)
    person = next((name for name in PEOPLE if values.get(name) not in (None, "")), "") if counts else ""
    identity = "id" if "id" in values else "question_id"
    # A question has as many rows as there are pairs of answers to it.
    is_shared = identity == "question_id"
    read = {*read, *models} | ({person} if person else set()) | ({*said_by} if counts else set())
    read |= set() if is_shared else {identity}
    read -= {*SCORES}
    tokens = [name for name in TOKENS if isinstance(values.get(name), dict)]
    return TaskRow(
        messages=messages,
        responses=tuple(
            ResponseRow(text, model=identifier(values.get(model) or "", model))
            for text, model in zip(texts, models, strict=True)
        ),
        external_id=identifier(values.get(identity, ""), identity),
        metadata=metadata_of(rest_of(values, read | {*tokens})),
        preference=vote if counts else None,
        annotations=(GivenAnnotation(str(values[person]), {}, vote),) if person else (),
        language=language_as_written(values.get("lang") or values.get("language")),
        of_a_group=is_shared,
        read_and_kept=("question_id", *said_by) if counts else (),
        notes=tuple(f"The column {name} holds a text once more as tokens; it is left out." for name in tokens),
    )


def _vote(values: Mapping[str, Any], models: tuple[str, str]) -> tuple[int | None, tuple[str, ...]]:
    """Returns the preference that the row's vote comes to, None if it has none, and the columns that say so."""
    for name, vote in (("winner_model_a", FIRST), ("winner_model_b", SECOND), ("winner_tie", TIE)):
        if str(values.get(name, "")).lower() in ("1", "true", "1.0"):
            return vote, VOTES[2:5]
    if values.get("better_response_id") not in (None, ""):
        number = str(whole(values["better_response_id"]))
        if number not in ("0", "1"):
            raise BadRow(f"better_response_id is {shown(values['better_response_id'])}: it must be 0 or 1")
        return (FIRST, SECOND)[int(number)], VOTES[1:2]
    label = values.get("label")
    if isinstance(label, str) and (match := _BETTER.fullmatch(label)) and match["first"] != match["second"]:
        return _SIGNS[match["sign"][0]][match["first"] in "B2"], ("label",)
    score, other = map(values.get, SCORES)
    if type(score) in (int, float) and isinstance(other, int | float) and score == -other:
        # Each is the other's opposite. They say how much better, too, and stay with the task.
        return FIRST if score > 0 else SECOND if score < 0 else TIE, SCORES
    winner = values.get("winner")
    if winner in (None, ""):
        return None, ()
    named = [FIRST if winner == values[models[0]] else SECOND for name in models if name and winner == values.get(name)]
    if len(named) == 1:
        return named[0], ("winner",)
    if str(winner).lower() not in WINNERS:
        raise BadRow(f"winner is {shown(winner)}: it must be model_a, model_b, tie or tie (bothbad)", "winner")
    return WINNERS[str(winner).lower()], ("winner",)


def _turns_in_lists(values: Mapping[str, Any], prompt: str, columns: tuple[str, str]) -> list[list[Message]]:
    """Returns both conversations where prompt and responses are lists of texts, one for each turn."""
    lists = [_texts(values[name]) for name in (prompt, *columns)]
    if not all(lists) or len({len(texts) for texts in lists}) > 1:
        return []
    asked, *answers = lists
    check_messages(2 * len(asked))
    roles = ("user", "assistant")
    return [
        [
            {"role": role, "content": storable_text(text, prompt)}
            for pair in zip(asked, texts, strict=True)
            for role, text in zip(roles, pair, strict=True)
        ]
        for texts in answers
    ]


def _texts(value: Any) -> list[str]:
    """Returns a list of texts, which a table may hold as JSON; an empty list for any other value."""
    if isinstance(value, str) and value.startswith('["'):
        try:
            value = json.loads(value)
        except ValueError:
            return []
    return value if isinstance(value, list) and all(isinstance(text, str) for text in value) else []
