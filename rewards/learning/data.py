"""Reads snapshots and items: verified files become tasks, tasks become targets. No torch here."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewards.learning.refusals import Refused
from rewards.learning.segments import Range, Segment, mean_scores, on_scale, ranges_of, segments_of
from rewards.learning.tool_messages import message_of

FORMAT = 1
USUAL_LEVELS, MOST_LEVELS = 5, 7
"""The levels of an attribute of which a manifest says nothing, and the most that one may have."""
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Features = NDArray[np.float32] | NDArray[np.float64]
"""What heads are fitted on. Large ones are float32 in a file; whoever computes with them does so in float64."""


class MissingFile(Refused):
    """A file that must exist is absent."""


class BadManifest(Refused):
    """The snapshot's manifest is not JSON, lacks a key, or is of another format."""


class CorruptFile(Refused):
    """A file of the snapshot differs from the one that its manifest describes."""


class BadRow(Refused):
    """A row of a file cannot be used; the message gives the file and the line."""


class EmptyPart(Refused):
    """The train or the validation part holds neither a labelled nor a compared response."""


class OneClass(Refused):
    """All train labels are the same, and no responses are compared."""


class LeakedPrompt(Refused):
    """A prompt is in the train part and in the validation part."""


@dataclass(frozen=True)
class Turn:
    """A turn as every chat template renders it.

    `source` has the messages, as JSON, that a turn with calls of tools or their answers was made from: templates that
    know tools render those.
    """

    role: str
    content: str
    source: tuple[str, ...] = field(default=(), compare=False)


CALL, ANSWER = "Call of a tool:\n", "Answer of a tool:\n"
"""What stands before calls of tools, which are turns of the kind `tool_calls`, and before what a tool answered."""


def turns_of(rows: Iterable[Mapping[str, Any]]) -> tuple[Turn, ...]:
    """Returns turns as every chat template renders them: those of tools as texts of the assistant and of the user.

    Neighbours of one role become one turn if either is about a tool, as many templates want roles to alternate.
    """
    turns: list[Turn] = []
    joins = False
    for row in rows:
        role, text, is_call = _text(row["role"]), _text(row["content"]), row.get("kind") == "tool_calls"
        is_tool = is_call or role == "tool"
        source = (message_of(row, is_call=is_call),) if is_tool else ()
        text = f"{CALL if is_call else ANSWER}{text}" if is_tool else text
        turn = Turn("user" if role == "tool" else role, text, source)
        if turns and (is_tool or joins) and turns[-1].role == turn.role:
            first, second = turns[-1], turn
            sources = (
                turn.source or (message_of({"role": turn.role, "content": turn.content}),) for turn in (first, second)
            )
            turns[-1] = Turn(first.role, f"{first.content}\n\n{second.content}", tuple(chain.from_iterable(sources)))
        else:
            turns.append(turn)
        joins = is_tool
    return tuple(turns)


@dataclass(frozen=True)
class Response:
    """A response with its mean scores over the kept ratings (0 to levels - 1), its consensus labels, and those ratings.

    `model` is the model that wrote it, where the rows say so; `segments` divide its text, where people did.
    """

    id: str
    text: str
    scores: Mapping[str, float]
    labels: Mapping[str, int]
    ratings: Sequence[Mapping[str, int]]
    model: str = ""
    segments: tuple[Segment, ...] = ()


@dataclass(frozen=True)
class Task:
    """A prompt with its responses.

    `preference` is the consensus: positive if the second response is better, None if nobody was asked. For more than
    two responses `pairs` holds the places of every two that rankings tell apart, the better one first. `source` is
    where the prompt came from and `language` its code, where the rows say so. `alike` holds the places of every two
    responses that a model reads as the same tokens, the smaller place first.
    """

    id: str
    prompt_hash: str
    conversation: tuple[Turn, ...]
    responses: tuple[Response, ...]
    preference: int | None
    source: str = ""
    pairs: tuple[tuple[int, int], ...] = ()
    alike: tuple[tuple[int, int], ...] = ()
    language: str = ""

    @property
    def is_compared(self) -> bool:
        """Whether people said which response is better, besides rating each."""
        return bool(self.pairs) or bool(self.preference and len(self.responses) == 2)


@dataclass(frozen=True)
class Item:
    """One response in its context, ready to be encoded; `segments` divide its text where they are to be scored."""

    id: str
    conversation: tuple[Turn, ...]
    response: str
    segments: tuple[Range, ...] = ()


EXAMPLE = Item("", (Turn("user", "Name a prime above 10."),), "11 is one.")
"""What every stored model has scored in float32, so that whoever loads it can see that it gives the same figure."""


@dataclass(frozen=True)
class Snapshot:
    """A snapshot's tasks; `levels` holds the number of levels of each attribute or aspect that has not five.

    `attributes` and `aspects` are those by which a train response or segment is scored, `unscored` the others of the
    manifest, such as one that a new version of the rubric has and nobody has rated by. With `by_segments` the
    attributes are the aspects; `read_snapshot` says when.
    """

    content_hash: str
    attributes: tuple[str, ...]
    train: tuple[Task, ...]
    validation: tuple[Task, ...]
    levels: Mapping[str, int] = field(default_factory=dict)
    aspects: tuple[str, ...] = ()
    unscored: tuple[str, ...] = ()
    by_segments: bool = False


def read_snapshot(directory: Path) -> Snapshot:
    """Returns the snapshot in `directory`, after its files were compared with the manifest's sha256.

    Attributes and aspects that nobody rated in the train part are left out; without a rated response, all attributes
    stay. Where people rated segments, and neither rated nor compared whole responses, or where the rubric has no
    attribute of these, the aspects become the attributes, and the means over a response's segments its scores.

    Raises:
        MissingFile, BadManifest, CorruptFile: the directory is not what a snapshot writes.
        BadRow: a line cannot be used.
        EmptyPart, OneClass: there is nothing to learn from, or nothing to judge by.
        LeakedPrompt: both parts share a prompt, so a model would be judged by what it has learnt.
    """
    manifest = read_manifest(directory / "manifest.json")
    for name, digest in manifest["files"].items():
        path = directory / name
        if not path.is_file():
            raise MissingFile(f"there is no {path}")
        if file_sha256(path) != digest:
            raise CorruptFile(f"{path} is not the file that the manifest describes: its sha256 differs")
    levels, attributes = manifest.get("levels", {}), tuple(manifest.get("attributes") or ())
    scales, aspects = scales_of(attributes, levels), scales_of(aspects_in(manifest), levels)
    names = ("train.jsonl", "validation.jsonl")
    train, validation = (tuple(read_tasks(directory / name, scales, aspects)) for name in names)
    scored = {name for task in train for r in task.responses for segment in r.segments for name in segment.scores}
    learnt = rated_attributes(train, attributes)
    named = tuple(name for name in aspects if name in scored)
    unscored = tuple(name for name in (*attributes, *aspects) if name not in (*learnt, *named))
    snapshot = Snapshot(manifest["content_hash"], learnt, train, validation, levels, named, unscored)
    if not attributes or (named and not is_judged(train, attributes)):
        train, validation = by_segments(train), by_segments(validation)
        snapshot = replace(
            snapshot, attributes=named or tuple(aspects), train=train, validation=validation, by_segments=True
        )
    _refuse_unusable(snapshot)
    return snapshot


def by_segments(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """Returns the tasks with the means over the segments of each response as its scores; comparisons stay."""

    def scored(response: Response) -> Response:
        return replace(response, scores=mean_scores(response.segments), labels={}, ratings=())

    return tuple(replace(task, responses=tuple(map(scored, task.responses))) for task in tasks)


def scales_of(attributes: Sequence[str], levels: Mapping[str, int]) -> dict[str, int]:
    """Returns the number of levels of every attribute."""
    return {name: levels.get(name, USUAL_LEVELS) for name in attributes}


def read_tasks(path: Path, scales: Mapping[str, int] = {}, aspects: Mapping[str, int] = {}) -> Iterator[Task]:
    """Returns the tasks of a JSONL file in its order; the first line that cannot be used raises BadRow."""
    return tasks_of(path.name, read_rows(path), scales, aspects)


def tasks_of(
    name: str,
    rows: Iterable[tuple[int, Mapping[str, Any]]],
    scales: Mapping[str, int] = {},
    aspects: Mapping[str, int] = {},
) -> Iterator[Task]:
    """Yields the tasks of numbered rows; `name` is the file that they are from, for the message of BadRow.

    scales: the number of levels by attribute; other attributes may have as many as any. aspects: the number of levels
    by aspect, in the order in which the rows have their scores; without them segments are not read.
    """
    for number, row in rows:
        try:
            yield _task(row, scales, aspects)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadRow(f"{name}, line {number}: {_reason(error)}") from None


def read_items(path: Path) -> Iterator[Item]:
    """Yields the items {"id", "conversation", "response", "segments"?} of a JSONL file; raises BadRow at another."""
    for number, row in read_rows(path):
        try:
            text = _text(row["response"])
            segments = ranges_of(row["segments"], len(text)) if "segments" in row else ()
            yield Item(str(row["id"]), _conversation(row["conversation"]), text, segments)
        except (KeyError, TypeError, ValueError) as error:
            raise BadRow(f"{path.name}, line {number}: {_reason(error)}") from None


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields each line's number, from 1, and its JSON object; raises MissingFile or BadRow."""
    if not path.is_file():
        raise MissingFile(f"there is no {path}")
    # As bytes: only b"\n" ends a line, while text mode would also take a lone carriage return for one.
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
            except ValueError:
                raise BadRow(f"{path.name}, line {number}: not JSON in UTF-8") from None
            if not isinstance(row, dict):
                raise BadRow(f"{path.name}, line {number}: not a JSON object")
            yield number, row


def items_of(tasks: Sequence[Task]) -> list[Item]:
    """Returns the responses of all tasks, each in its conversation."""
    return [
        Item(response.id, task.conversation, response.text, tuple((s.start, s.end) for s in response.segments))
        for task in tasks
        for response in task.responses
    ]


def targets_of(tasks: Sequence[Task], attributes: Sequence[str], *, rounded: bool = False) -> Floats:
    """[responses, attributes]: mean scores or, if `rounded`, consensus labels on 0 to levels - 1; NaN if missing."""
    targets = [r.labels if rounded and r.labels else r.scores for task in tasks for r in task.responses]
    rows = [[scores.get(name, math.nan) for name in attributes] for scores in targets]
    # Without a response, or without an attribute, the array would have other axes.
    return np.array(rows, dtype=np.float64).reshape(len(targets), len(attributes))


def prompts_of(tasks: Sequence[Task]) -> list[str]:
    """Returns the prompt hash of every response, in the order of `items_of`."""
    return [task.prompt_hash for task in tasks for _ in task.responses]


def rated_attributes(tasks: Iterable[Task], attributes: Sequence[str]) -> tuple[str, ...]:
    """Returns those of the attributes by which any response is rated; all of them where none is."""
    rated = {name for task in tasks for response in task.responses for name in response.scores} & set(attributes)
    return tuple(name for name in attributes if name in (rated or attributes))


def has_labels(tasks: Sequence[Task], attributes: Sequence[str]) -> bool:
    """Returns whether any response is rated; a preference between responses is not a rating."""
    return bool(np.isfinite(targets_of(tasks, attributes)).any())


def is_judged(tasks: Sequence[Task], attributes: Sequence[str]) -> bool:
    """Returns whether any response is rated or compared as a whole."""
    return has_labels(tasks, attributes) or any(task.is_compared for task in tasks)


def file_sha256(path: Path) -> str:
    """Returns the sha256 of the file's content in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest(path: Path) -> dict[str, Any]:
    """Returns what a snapshot's manifest says; raises MissingFile or BadManifest."""
    if not path.is_file():
        raise MissingFile(f"there is no {path}")
    try:
        manifest = json.loads(path.read_bytes())
    except ValueError as error:
        raise BadManifest(f"{path} is not JSON: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BadManifest(f"{path} is not a snapshot's manifest of format {FORMAT}")
    aspects = manifest.get("aspects") or []
    wanted = ("content_hash", *(() if aspects else ("attributes",)), "files")
    if lacking := [key for key in wanted if not manifest.get(key)]:
        raise BadManifest(f"{path} lacks {', '.join(lacking)}")
    if not isinstance(aspects, list) or len(aspects) != len({name for name in aspects if isinstance(name, str)}):
        raise BadManifest(f"{path}: aspects must be a list of different names")
    return manifest


def aspects_in(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the aspects in the order in which the rows of a snapshot have their scores."""
    return tuple(manifest.get("aspects") or ())


def _refuse_unusable(snapshot: Snapshot) -> None:
    for name, tasks in (("train", snapshot.train), ("validation", snapshot.validation)):
        if not is_judged(tasks, snapshot.attributes):
            raise EmptyPart(f"the snapshot has no labelled response in its {name} part")
    labels = targets_of(snapshot.train, snapshot.attributes)
    known = np.isfinite(labels)
    labels_differ = any(np.ptp(column[np.isfinite(column)]) > 0 for column in labels.T if np.isfinite(column).any())
    of_segments = {tuple(s.scores.items()) for task in snapshot.train for r in task.responses for s in r.segments}
    labels_differ = labels_differ or len(of_segments) > 1
    if known.any() and not labels_differ and not any(task.is_compared for task in snapshot.train):
        raise OneClass("every train response has the same labels: there is nothing to tell apart")
    shared = {task.prompt_hash for task in snapshot.train} & {task.prompt_hash for task in snapshot.validation}
    if shared:
        raise LeakedPrompt(f"{len(shared)} prompts stand in train and in validation, {min(shared)} among them")


def _task(row: Mapping[str, Any], scales: Mapping[str, int], aspects: Mapping[str, int]) -> Task:
    responses = tuple(_response(response, scales, aspects) for response in row["responses"])
    if not responses:
        raise ValueError("no responses")
    preference = row.get("preference")
    if preference is not None and not isinstance(preference, int):
        raise ValueError("preference is not an integer")
    conversation, source = _conversation(row["conversation"]), str(row.get("source") or "")
    pairs = tuple((better, worse) for better, worse in row.get("pairs") or [])
    if any(type(place) is not int or not 0 <= place < len(responses) for pair in pairs for place in pair):
        raise ValueError("a pair names no response by its place")
    if len({frozenset(pair) for pair in pairs if pair[0] != pair[1]}) < len(pairs):
        raise ValueError("a pair stands there twice, or is of one response")
    language, prompt = str(row.get("language") or ""), str(row["prompt_hash"])
    return Task(str(row["task"]), prompt, conversation, responses, preference, source, pairs, language=language)


def _response(row: Mapping[str, Any], scales: Mapping[str, int], aspects: Mapping[str, int]) -> Response:
    scores = {name: on_scale(name, value, scales.get(name, MOST_LEVELS)) for name, value in row["scores"].items()}
    labels, ratings = dict(row.get("labels") or {}), [dict(r) for r in row.get("ratings") or []]
    text, model = _text(row["text"]), str(row.get("model") or "")
    segments = segments_of(row, len(text), aspects) if aspects and "segments" in row else ()
    return Response(str(row["id"]), text, scores, labels, ratings, model, segments)


def _conversation(rows: Any) -> tuple[Turn, ...]:
    if not isinstance(rows, list) or not rows:
        raise ValueError("the conversation is empty")
    return turns_of(rows)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{json.dumps(value)[:40]} is not text")
    return value


def _reason(error: Exception) -> str:
    return f"lacks {error}" if isinstance(error, KeyError) else str(error)
