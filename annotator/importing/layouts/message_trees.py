"""Reads trees of messages as Open Assistant publishes them: every question with its answers is a task."""

from collections.abc import Iterator, Mapping
from typing import Any

from annotator.importing.conversations import ROLES
from annotator.importing.field_checks import (
    BadRow,
    check_messages,
    check_responses,
    identifier,
    metadata_of,
    shown,
    storable_text,
)
from annotator.importing.layouts.completions import by_rank
from annotator.importing.layouts.own_tasks import language_as_written
from annotator.importing.prompts import Message
from annotator.importing.rows import ResponseRow, Rules, TaskRow
from annotator.importing.sources import RawRow

READ = {"text", "role", "lang", "replies", "message_id"}


def is_tree(values: Mapping[str, Any]) -> bool:
    root = values.get("prompt")
    return "message_tree_id" in values and isinstance(root, dict) and isinstance(root.get("replies"), list)


def tree_rows(raw: RawRow, values: dict[str, Any], _rules: Rules) -> list[TaskRow]:
    """Reads a task for each question that has answers, in the order of the tree, with the turns before it.

    Ranks of the answers become a preference or a ranking. The ids of the tree and of the messages stay. Raises BadRow.
    """
    of_tree = {name: value for name, value in values.items() if name != "prompt"}
    rows = [_row(raw, of_tree, turns, question, answers) for turns, question, answers in _asked(values["prompt"])]
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


def _row(
    raw: RawRow, tree: Mapping[str, Any], turns: list[Message], question: Mapping[str, Any], answers: list[Any]
) -> TaskRow:
    check_responses(len(answers))
    said = [_turn(answer) for answer in answers]
    if any(turn["role"] != "assistant" for turn in said):
        raise BadRow("a question of the tree is answered by a question", "prompt")
    preference, ranking = by_rank([answer.get("rank") for answer in answers])
    return TaskRow(
        line=raw.line,
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
        layout="trees",
        size=raw.size,
    )


def _rest(message: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name not in READ and value not in ("", None)}
