"""What an import and its batches came to, and what is said of rows that went in: shown, kept aside, looking odd."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any

from django.conf import settings

from annotator.infrastructure.refusals import Refusal
from annotator.models import Task
from annotator.reading.languages import CODE as LANGUAGE_CODE
from annotator.stages.importing.conversations import Companions, shown_with
from annotator.stages.importing.field_checks import metadata_of
from annotator.stages.importing.task_rows import Kept, RawRow, Rejected, TaskRow

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
OTHER_METADATA = "The task is there already with other metadata. It keeps its own, and that of this row is not stored."
OTHERS = "Kept as metadata, which annotators do not see: %s."
_JUDGING = frozenset(
    {"vote", "votes", "winner", "winners", "preference", "preferences", "preferred", "better", "best"}
    | {"rank", "ranks", "ranking", "rating", "ratings", "score", "scores", "label", "labels"}
    | {"judgement", "judgment", "verdict", "verdicts"}
)
_PEOPLE = re.compile(r"(annotator|rater|judge|user|expert)s?")


def told(row: TaskRow, raw: RawRow, layout: str, companions: Companions) -> TaskRow:
    """Returns the row with its place in the file, its companions and what the result of the import says of it.

    The words for a language that is not known stay as metadata. Raises BadRow.
    """
    if row.refers:
        return replace(row, layout=layout, line=raw.line, size=raw.size)
    words, metadata = "" if re.fullmatch(LANGUAGE_CODE, row.language) else row.language, row.metadata
    told_already = any(str(metadata.get(name)).strip().startswith(words) for name in LANGUAGE_FIELDS)
    if words and not row.pairs_up and not told_already:
        metadata = metadata_of({**metadata, "lang": words})
    place = "" if row.pairs_up else "responses[]."
    of_responses = (
        _kept(response.metadata, place, row.read_and_kept) for response in row.responses if response.metadata
    )
    same = same_responses([response.text for response in row.responses])
    return replace(
        row,
        layout=layout,
        line=raw.line,
        size=raw.size,
        messages=shown_with(row.messages, companions) if companions.columns else row.messages,
        responses=tuple(replace(one, line=raw.line) for one in row.responses) if row.pairs_up else row.responses,
        metadata=metadata,
        language="" if words else row.language,
        unknown_language=words,
        shown=companions.columns,
        kept=(*_kept(metadata, "", row.read_and_kept), *chain.from_iterable(of_responses)),
        notes=(*row.notes, *same, *((NOT_FINITE,) if raw.not_finite else ())),
    )


def same_responses(texts: Sequence[str]) -> tuple[str, ...]:
    """Returns the note on a task whose two responses are the same."""
    return (SAME,) if len(texts) == 2 and texts[0] == texts[1] else ()


def _kept(metadata: Mapping[str, Any], place: str, read: Collection[str] = ()) -> Iterable[Kept]:
    for name, value in metadata.items():
        if value in (None, "", [], {}):  # such as Label Studio's predictions, of which there mostly are none
            continue
        is_text = isinstance(value, str)
        is_short = name not in read and (not is_text or len(value) <= SHORT)
        # Whether its name is that of votes, ranks or scores, or of one of several people.
        words = re.findall(r"[a-z]+|[0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()) if is_short else []
        numbered = any(_PEOPLE.fullmatch(word) and after.isdigit() for word, after in pairwise(words))
        judges = numbered or not _JUDGING.isdisjoint(words)
        yield Kept(f"{place}{name}", len(value) if is_text else 0, judges=judges)


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
        notes = [_note({text: seen}, text) for text, seen in self.texts.items()]
        if seen := self.languages.values():
            # A task has one language, so the tasks of several add up.
            rows = sum(one.rows for one in seen)
            notes.append(Note(min(one.line for one in seen), rows, LANGUAGES % ", ".join(self.languages)))
        return notes + of_columns


def _add(part: dict[str, _Seen], name: str, seen: _Seen, most: int) -> None:
    if name in part:
        part[name].add(seen)
    elif len(part) < most:
        part[name] = seen


def _note(part: Mapping[str, _Seen], text: str) -> Note:
    return Note(min(seen.line for seen in part.values()), max(seen.rows for seen in part.values()), text)


def notes_of(new: Mapping[str, TaskRow], known: Sequence[tuple[str, TaskRow]], stored: Mapping[str, int]) -> Notes:
    """Returns what is said of new and known rows, by the names of their tasks. `stored` are the ids of known tasks.

    A known row may also repeat one of the new ones.
    """
    noted = Notes()
    for row in (*new.values(), *(row for _, row in known)):
        noted.add(row)
    given = [(name, row) for name, row in known if row.metadata]
    ids = [stored[name] for name, _ in given if name in stored]
    there = dict(Task.objects.filter(pk__in=ids).values_list("pk", "metadata")) if ids else {}
    for name, row in given:
        if row.metadata != (there.get(stored[name]) if name in stored else new[name].metadata):
            noted.add_text(OTHER_METADATA, row.line)
    return noted


class TakenBack(Refusal):
    """Somebody took the import back while it was running, so the rest of the file is not read."""

    code = "taken_back"

    def __init__(self) -> None:
        super().__init__("The import was taken back while it was running. To get its tasks, import the file again.")


@dataclass
class ImportResult:
    """How many tasks are new, how many existed before, which rows were refused and why, and which layouts occurred.

    `noted` is what is said of the rows that went in: columns that were kept aside, responses that are the same.
    `ratings_added` counts what people said of tasks, one for each person and task, and `ratings_left_out` the ratings
    that do not count although their rows went in. `rejected` holds the first IMPORT_ERRORS_REPORTED of both these and
    the `rejected_total` rows. `has_answers` says whether rows may have come with labels or ratings. `import_id` names
    the Import row of the file; it is None after a dry run, and for a file that made no task.
    """

    created: int = 0
    existing: int = 0
    ratings_added: int = 0
    ratings_left_out: int = 0
    rejected: list[Rejected] = field(default_factory=list)
    rejected_total: int = 0
    layouts: set[str] = field(default_factory=set)
    has_answers: bool = field(default=False, compare=False)
    noted: Notes = field(default_factory=Notes, compare=False)
    import_id: int | None = field(default=None, compare=False)

    @property
    def notes(self) -> list[Note]:
        """Returns what is to be said of rows that went in."""
        return self.noted.sentences()

    def reject(self, rows: Sequence[Rejected]) -> None:
        # All refusals are counted, few are kept: a file of nothing but bad rows must not fill the memory.
        room = settings.IMPORT_ERRORS_REPORTED - len(self.rejected)
        self.rejected += sorted(rows, key=lambda row: row.line)[: max(room, 0)]
        of_ratings = sum(row.of_rating for row in rows)
        self.ratings_left_out += of_ratings
        self.rejected_total += len(rows) - of_ratings


@dataclass(frozen=True)
class Batch:
    """What one batch came to. `rows` is the number of tasks and refusals of the file that it used up.

    `refused` holds the ratings that do not count, too.
    """

    rows: int
    created: int
    existing: int
    refused: Sequence[Rejected]
    layouts: frozenset[str]
    ratings: int = 0
    has_answers: bool = False
    noted: Notes = field(default_factory=Notes)

    @property
    def left_out(self) -> int:
        return sum(row.of_rating for row in self.refused)

    @property
    def rejected(self) -> int:
        return len(self.refused) - self.left_out


class Journal:
    """Is told about every batch, so that an import can be followed, and resumed. This one forgets everything.

    An error that it raises ends the import; one that `note` raises also undoes the batch.
    """

    rows_done = 0
    """The first tasks and refusals of the file, which an earlier attempt has finished with."""

    def note(self, batch: Batch) -> None:
        """Is called in the transaction of the batch; in a dry run after it was rolled back."""
