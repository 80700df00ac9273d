"""Finds the pairs whose responses a model reads as the same tokens: there is nothing to learn from, or to judge by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from rewards.learning.data import Item, Task
from rewards.learning.encoding import Encoded, Frame
from rewards.learning.pairs import is_different, told_apart

UNLIMITED = 1 << 40


@dataclass(frozen=True)
class Alike:
    """How many of the `pairs` that people tell apart are the same to a model, and why.

    `same_text` have one text twice. `cut` are the same once they are cut to `max_length` tokens; with a limit of
    `apart_at` tokens all of them differ; the model can read `most` tokens, or 0 where it has no limit. The template or
    the tokenizer makes the others the same, `hidden`.
    """

    pairs: int
    same_text: int
    cut: int
    hidden: int
    max_length: int
    apart_at: int
    most: int = 0

    @property
    def left_out(self) -> int:
        """The pairs that nobody learns from or judges by."""
        return self.same_text + self.cut + self.hidden


def with_alike(tasks: Sequence[Task], encoded: Iterable[Encoded]) -> list[Task]:
    """Returns the tasks with the pairs of responses that are the same tokens; `encoded` has their responses in order.

    An encoder is told the length before the cut too, but by that alone nobody should learn which of two texts is
    better.
    """
    rows = iter(encoded)
    found = []
    for task in tasks:
        ids = [next(rows).ids for _ in task.responses]
        places = combinations(range(len(ids)), 2)
        alike = tuple((first, second) for first, second in places if ids[first] == ids[second])
        found.append(task if alike == task.alike else replace(task, alike=alike))
    return found


def alike_of(tasks: Sequence[Task], frame: Frame, reward: Mapping[str, float], *, most: int) -> Alike:
    """Counts the pairs of tasks that `with_alike` has returned."""
    pairs = same_text = 0
    apart_at: list[int] = []
    for task in tasks:
        for first, second, _strength in told_apart(task, reward):
            pairs += 1
            if not is_different(task, first, second):
                same_text += 1
            elif (min(first, second), max(first, second)) in task.alike:
                texts = (task.responses[place].text for place in (first, second))
                apart_at.append(length_apart(frame, *(Item("", task.conversation, text) for text in texts)))
    return counted(pairs, apart_at, same_text=same_text, max_length=frame.max_length, most=most)


def counted(pairs: int, apart_at: Sequence[int], *, same_text: int = 0, max_length: int, most: int) -> Alike:
    """Returns the counts of so many pairs; `apart_at` has what `length_apart` says of those that are the same."""
    hidden = apart_at.count(0)
    cut = len(apart_at) - hidden
    return Alike(pairs, same_text, cut, hidden, max_length, max(apart_at, default=0), most)


def length_apart(frame: Frame, first: Item, second: Item) -> int:
    """Returns the smallest limit at which two items that are the same tokens differ; 0 if there is none."""
    cut = frame.encode(first)
    # Segments are not needed to compare, and take time.
    uncut = replace(frame, max_length=UNLIMITED)
    one, other = (encoded.ids[encoded.response_start :] for encoded in map(uncut.encode, (first, second)))
    place = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    if not cut.response_cut or one == other:
        return 0
    # A limit of one token more keeps one token more before those that close the turn.
    kept = cut.response_tokens - cut.response_cut - cut.closing
    return frame.max_length + place - kept + 1


def sentences(alike: Alike) -> list[str]:
    """Returns in words what was left out, a clause for each reason."""
    of, said = f"of {alike.pairs} pairs", []
    if alike.same_text:
        said.append(f"{alike.same_text} {of} have the same text twice")
    if alike.cut:
        remedy = f"a max_length of {alike.apart_at} would keep them apart"
        limit = f", but the language model reads at most {alike.most}" if 0 < alike.most < alike.apart_at else ""
        said.append(f"{alike.cut} {of} are the same once cut to {alike.max_length} tokens; {remedy}{limit}")
    if alike.hidden:
        said.append(
            f"{alike.hidden} {of} are the same tokens, as the chat template or the tokenizer drops what differs"
        )
    return said
