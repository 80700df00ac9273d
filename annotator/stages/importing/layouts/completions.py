"""Reads lists of completions, as UltraFeedback (arXiv 2310.01377) and NeMo RL have, and Open Assistant's trees."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from annotator.stages.importing.conversations import (
    ROLES,
    Message,
    answered_messages,
    checked_turns,
    rest_of,
    written_out,
)
from annotator.stages.importing.field_checks import (
    BadRow,
    check_messages,
    check_responses,
    identifier,
    language_as_written,
    metadata_of,
    required,
    shown,
    storable_text,
    whole,
)
from annotator.stages.importing.task_rows import GivenAnnotation, ImportRules, ResponseRow, TaskRow

LISTS = ("completions", "answers")
PROMPTS = ("context", "messages", "instruction", "prompt")
CELLS = (*PROMPTS, *LISTS)
BETTER = (-1, 1)
"""By whether the second response has the better rank. Ranks do not say how much better a response is."""


def has_completions(values: Mapping[str, Any]) -> bool:
    # Beside a response, such a column is an attribute of the same name.
    listed = any(name in values for name in LISTS) and "response" not in values
    return listed and any(name in values for name in PROMPTS)


def completions_row(values: dict[str, Any], _rules: ImportRules) -> TaskRow:
    """Reads a task with a response for each completion: a text, or an object that also holds a model's ratings of it.

    A model's ratings are kept as metadata of the response, because they are not people's. Raises BadRow.
    """
    name = next(name for name in PROMPTS if name in values)
    column = next(name for name in LISTS if name in values)
    completions = values[column]
    if not isinstance(completions, list) or not completions:
        raise BadRow(f"{column} must be a list of at least one completion", column)
    check_responses(len(completions))
    is_list = isinstance(values[name], list)
    messages = answered_messages(values[name], name)
    responses = tuple(_response(value, f"{column}[{number}]", messages) for number, value in enumerate(completions))
    read = {"id", column, name}
    if values.get("models") == [response.model for response in responses]:
        read.add("models")
    preference, ranking = by_rank([value.get("rank") if isinstance(value, dict) else None for value in completions])
    return TaskRow(
        messages=messages,
        responses=responses,
        external_id=identifier(values.get("id", ""), "id"),
        metadata=metadata_of(rest_of(values, read, name if is_list else "")),
        preference=preference,
        annotations=ranking,
        read_and_kept=("rank",) if ranking or preference else (),
        language=language_as_written(values.get("lang") or values.get("language")),
    )


def _response(value: Any, name: str, asked: list[Message]) -> ResponseRow:
    """Reads a completion, which may repeat the conversation that it answers. Raises BadRow."""
    if isinstance(value, str):
        return ResponseRow(storable_text(value, name))
    if not isinstance(value, dict):
        raise BadRow(f"{name} is {shown(value)}: it must be a text, or an object with one", name)
    key = next((key for key in ("response", "completion", "answer", "text") if key in value), "response")
    text = required(value, key)
    if isinstance(text, list):
        turns = checked_turns(text, f"{name}.{key}")
        own = turns[len(asked) :] if turns[: len(asked)] == asked else turns
        if not own or own[0]["role"] != "assistant":
            raise BadRow(f"{name}.{key} must begin with the assistant's message", f"{name}.{key}")
        text = written_out(own)
    return ResponseRow(
        storable_text(text, f"{name}.{key}"),
        model=identifier(value.get("model") or "", f"{name}.model"),
        metadata=metadata_of(rest_of(value, {key, "model"})),
    )


def by_rank(given: Sequence[Any]) -> tuple[int | None, tuple[GivenAnnotation, ...]]:
    """Returns what the ranks of all responses say, the lowest being the best: a preference of two, else a ranking."""
    ranks = [whole(rank) for rank in given]
    if len(ranks) < 2 or any(type(rank) is not int for rank in ranks) or len(set(ranks)) == 1:
        return None, ()
    if len(ranks) == 2:
        return BETTER[ranks[1] < ranks[0]], ()
    tiers = tuple(tuple(n for n, rank in enumerate(ranks) if rank == one) for one in sorted(set(ranks)))
    return None, (GivenAnnotation("", {}, ranking=tiers),)


READ = {"text", "role", "lang", "replies", "message_id"}


def is_tree(values: Mapping[str, Any]) -> bool:
    root = values.get("prompt")
    return "message_tree_id" in values and isinstance(root, dict) and isinstance(root.get("replies"), list)


def tree_rows(values: dict[str, Any], _rules: ImportRules) -> list[TaskRow]:
    """Reads a task for each question that has answers, in the order of the tree, with the turns before it.

    Ranks of the answers become a preference or a ranking. The ids of the tree and of the messages stay. Raises BadRow.
    """
    of_tree = {name: value for name, value in values.items() if name != "prompt"}
    rows = [_row(of_tree, turns, question, answers) for turns, question, answers in _asked(values["prompt"])]
    if not rows:
        raise BadRow("the tree has no question with an answer", "prompt")
    return rows


def _asked(root: Any) -> Iterator[tuple[list[Message], Mapping[str, Any], list[Any]]]:
    """Yields the turns up to each question that has answers, the question and the answers."""
    waiting: list[tuple[list[Message], Any]] = [([], root)]
    while waiting:
        before, message = waiting.pop()
        check_messages(len(before) + 1)
        turn = _turn(message)
        replies = message.get("replies") or []
        if not isinstance(replies, list):
            raise BadRow(f"replies is {shown(replies)}: it must be a list of messages", "replies")
        turns = [*before, turn]
        if turn["role"] == "user" and replies:
            yield turns, message, replies
        waiting += [(turns, reply) for reply in reversed(replies)]


def _turn(message: Any) -> Message:
    if not isinstance(message, dict) or str(message.get("role")).lower() not in ROLES:
        raise BadRow(f"the tree holds {shown(message)}: it must be a message with role and text", "prompt")
    return {"role": ROLES[message["role"].lower()], "content": storable_text(message.get("text"), "text")}


def _row(tree: Mapping[str, Any], turns: list[Message], question: Mapping[str, Any], answers: list[Any]) -> TaskRow:
    check_responses(len(answers))
    said = [_turn(answer) for answer in answers]
    if any(turn["role"] != "assistant" for turn in said):
        raise BadRow("a question of the tree is answered by a question", "prompt")
    preference, ranking = by_rank([answer.get("rank") for answer in answers])
    return TaskRow(
        messages=turns,
        responses=tuple(
            ResponseRow(
                turn["content"],
                external_id=identifier(answer.get("message_id") or "", "message_id"),
                metadata=metadata_of(_rest(answer)),
            )
            for turn, answer in zip(said, answers, strict=True)
        ),
        external_id=identifier(question.get("message_id") or "", "message_id"),
        metadata=metadata_of({**tree, **_rest(question)}),
        preference=preference,
        annotations=ranking,
        read_and_kept=("rank",) if ranking or preference else (),
        language=language_as_written(question.get("lang")),
    )


def _rest(message: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name not in READ and value not in ("", None)}
