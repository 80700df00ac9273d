"""What the result of an import says of rows that went in: what was shown, what was kept aside, and what looks odd."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from annotator.importing.companions import Companions, shown_with
from annotator.importing.field_checks import metadata_of
from annotator.importing.prompts import messages_from_prompt
from annotator.importing.rows import FlatRow, Kept, ResponseRow, TaskRow
from annotator.importing.sources import RawRow
from annotator.projects.languages import CODE as LANGUAGE_CODE

MOST_COLUMNS, MOST_TEXTS, MOST_LANGUAGES = 200, 50, 20
"""Columns, texts and unknown languages of which a result speaks."""
FURTHER = "..."
"""Stands for the languages beyond these."""
LANGUAGE_FIELDS = ("lang", "language")
LONG = 200
"""Characters from which the text of a column may be something that annotators need."""
SHORT = 60
"""Characters of the longest judgement, such as a winner's name."""
SAME = "Both responses are the same. Nothing can be learnt from comparing them."
NOT_FINITE = "A number that JSON cannot say, such as NaN, was kept as null."
JUDGING = (
    "These columns look like judgements, and none was read from them; they are kept as metadata: %s. "
    "A mapping with votes or scores imports them."
)
TOO_LONG = "These columns hold long texts, which annotators do not see; they are kept as metadata: %s."
LANGUAGES = (
    "These languages are not known, so their tasks are of no language: %s. "
    "Write a code such as de, or the English name."
)
SHOWN = "Shown as part of the prompt: %s."
OTHERS = "Kept as metadata, which annotators do not see: %s."
_JUDGING = frozenset(
    {"vote", "votes", "winner", "winners", "preference", "preferences", "preferred", "better", "best"}
    | {"rank", "ranks", "ranking", "rating", "ratings", "score", "scores", "label", "labels"}
    | {"judgement", "judgment", "verdict", "verdicts"}
)
_PEOPLE = re.compile(r"(annotator|rater|judge|user|expert)s?")


def told(raw: RawRow, row: TaskRow | FlatRow, companions: Companions) -> TaskRow | FlatRow:
    """Returns the row with its companions, and with what the result of the import says of it. Raises BadRow."""
    row = _with_known_language(row)
    if isinstance(row, FlatRow):
        if companions.columns:  # raises here, where the row can be refused
            shown_with(messages_from_prompt(row.prompt), companions)
        notes = (NOT_FINITE,) if raw.not_finite else ()
        kept = tuple(_kept(row.response.metadata, ""))
        return replace(row, companions=companions, kept=kept, notes=notes)
    if row.refers:
        return row
    same = same_responses([response.text for response in row.responses])
    return replace(
        row,
        messages=shown_with(row.messages, companions) if companions.columns else row.messages,
        shown=companions.columns,
        kept=(*_kept(row.metadata, "", row.read_and_kept), *_of_responses(row.responses, row.read_and_kept)),
        notes=(*row.notes, *same, *((NOT_FINITE,) if raw.not_finite else ())),
    )


def _with_known_language(row: TaskRow | FlatRow) -> TaskRow | FlatRow:
    """Returns the row without a language that is not known; a task keeps its words as metadata. Raises BadRow."""
    words = row.language
    if not words or re.fullmatch(LANGUAGE_CODE, words):
        return row
    row = replace(row, language="", unknown_language=words)
    if isinstance(row, FlatRow):  # its response has them
        return row
    if any(str(row.metadata.get(name)).strip().startswith(words) for name in LANGUAGE_FIELDS):
        return row
    return replace(row, metadata=metadata_of({**row.metadata, "lang": words}))


def same_responses(texts: Sequence[str]) -> tuple[str, ...]:
    """Returns the note on a task whose two responses are the same."""
    return (SAME,) if len(texts) == 2 and texts[0] == texts[1] else ()


def _kept(metadata: Mapping[str, Any], place: str, read: Collection[str] = ()) -> Iterable[Kept]:
    for name, value in metadata.items():
        if value in (None, "", [], {}):  # such as Label Studio's predictions, of which there mostly are none
            continue
        is_text = isinstance(value, str)
        is_short = name not in read and (not is_text or len(value) <= SHORT)
        yield Kept(f"{place}{name}", len(value) if is_text else 0, judges=is_short and _judges(name))


def _judges(column: str) -> bool:
    """Returns whether the name of a column is that of votes, ranks or scores, or of one of several people."""
    words = re.findall(r"[a-z]+|[0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column).lower())
    numbered = any(_PEOPLE.fullmatch(word) and after.isdigit() for word, after in pairwise(words))
    return numbered or not _JUDGING.isdisjoint(words)


def _of_responses(responses: Iterable[ResponseRow], read: Collection[str]) -> Iterable[Kept]:
    for response in responses:
        if response.metadata:
            yield from _kept(response.metadata, "responses[].", read)


@dataclass
class _Seen:
    """Where a column or a note occurred first, in how many tasks, and what the column held."""

    line: int
    rows: int = 0
    characters: int = 0
    judges: bool = False

    def add(self, other: "_Seen") -> None:
        self.line = min(self.line, other.line)
        self.rows += other.rows
        self.characters = max(self.characters, other.characters)
        self.judges |= other.judges


@dataclass(frozen=True)
class Note:
    """A sentence of a result, the first line that it is about, and the number of tasks."""

    line: int
    rows: int
    text: str


@dataclass
class Notes:
    """What is said of the rows of a file so far: their columns by name, and sentences. All of it is bounded."""

    shown: dict[str, _Seen] = field(default_factory=dict)
    kept: dict[str, _Seen] = field(default_factory=dict)
    texts: dict[str, _Seen] = field(default_factory=dict)
    languages: dict[str, _Seen] = field(default_factory=dict)

    def add(self, row: TaskRow) -> None:
        for name in row.shown:
            _add(self.shown, name[:SHORT], _Seen(row.line, 1), MOST_COLUMNS)
        for name, seen in {kept.column: _Seen(row.line, 1, kept.characters, kept.judges) for kept in row.kept}.items():
            _add(self.kept, name[:LONG], seen, MOST_COLUMNS)
        if row.unknown_language:
            self._add_language(f"“{row.unknown_language}”", _Seen(row.line, 1))
        for text in row.notes:
            self.add_text(text, row.line)

    def add_text(self, text: str, line: int) -> None:
        _add(self.texts, text, _Seen(line, 1), MOST_TEXTS)

    def add_all(self, others: "Notes") -> None:
        for mine, theirs, most in (
            (self.shown, others.shown, MOST_COLUMNS),
            (self.kept, others.kept, MOST_COLUMNS),
            (self.texts, others.texts, MOST_TEXTS),
        ):
            for name, seen in theirs.items():
                _add(mine, name, replace(seen), most)
        for words, seen in others.languages.items():
            self._add_language(words, replace(seen))

    def _add_language(self, words: str, seen: _Seen) -> None:
        has_room = words in self.languages or len(self.languages) < MOST_LANGUAGES
        _add(self.languages, words if has_room else FURTHER, seen, MOST_LANGUAGES + 1)

    def as_json(self) -> dict[str, Any]:
        """Returns what `from_json` reads, for the row of a job."""
        parts: dict[str, dict[str, _Seen]] = vars(self)
        return {name: {key: list(vars(seen).values()) for key, seen in part.items()} for name, part in parts.items()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Notes":
        return cls(**{name: {key: _Seen(*seen) for key, seen in part.items()} for name, part in value.items()})

    def sentences(self) -> list[Note]:
        """Returns what is to be said, the most important first."""
        judging = {name: seen for name, seen in self.kept.items() if seen.judges}
        long = {name: seen for name, seen in self.kept.items() if seen.characters >= LONG and not seen.judges}
        others = {name: seen for name, seen in self.kept.items() if name not in judging and name not in long}
        parts = ((judging, JUDGING), (long, TOO_LONG), (self.shown, SHOWN), (others, OTHERS))
        of_columns = [_note(part, text % ", ".join(part)) for part, text in parts if part]
        of_texts = [_note({text: seen}, text) for text, seen in self.texts.items()]
        return of_texts + self._of_languages() + of_columns

    def _of_languages(self) -> list[Note]:
        if not (seen := self.languages.values()):
            return []
        # A task has one language, so the tasks of several add up.
        rows = sum(one.rows for one in seen)
        return [Note(min(one.line for one in seen), rows, LANGUAGES % ", ".join(self.languages))]


def _add(part: dict[str, _Seen], name: str, seen: _Seen, most: int) -> None:
    if name in part:
        part[name].add(seen)
    elif len(part) < most:
        part[name] = seen


def _note(part: Mapping[str, _Seen], text: str) -> Note:
    return Note(min(seen.line for seen in part.values()), max(seen.rows for seen in part.values()), text)
