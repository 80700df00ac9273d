"""The checked rows that one part of an import hands to the next, the same for every layout."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.functional import cached_property

from annotator.models import Project
from annotator.models.splits import prompt_hash
from annotator.stages.importing.conversations import Message, content_hash
from annotator.stages.segmenting import Range

LEFT_OUT = "a rating does not count: "
"""What the result of an import says first of a rating whose row went in."""
RATING_BYTES = 400
"""What one rating counts for in the weight of a row, which limits the size of a batch."""
HOPELESS = 10_000
"""Rows without a good one among them after which the rest of the file is not read."""


@dataclass(frozen=True)
class RawRow:
    """One row of the file, unchecked. `size` counts bytes or characters; `error` says why it could not be read.

    `field` names the field or the column that the error is about, if it is about a single one. With `not_finite` there
    are numbers among the values that JSON cannot say, such as NaN. `is_mapped` says that a mapping has made the values
    from other columns.
    """

    line: int
    values: dict[str, Any] | None
    error: str = ""
    from_csv: bool = False
    size: int = 0
    field: str = ""
    not_finite: bool = False
    is_mapped: bool = False


@dataclass(frozen=True)
class Expert:
    """The experts' scores of one response, from 0 by the attribute's key, their reasons, and the scores of segments."""

    scores: dict[str, int]
    explanation: str = ""
    segments: "SegmentLabel | None" = None


@dataclass(frozen=True)
class SegmentLabel:
    """Imported scores of a response's segments: [segments][aspects], None where an aspect does not apply.

    `cut` is empty where they follow the response's own segments.
    """

    aspects: tuple[str, ...]
    scores: tuple[tuple[int | None, ...], ...]
    cut: tuple[Range, ...] = ()


@dataclass  # not frozen, as millions of them are made: that would take twice the time
class ResponseRow:
    """A response in a file. In the flat layouts, which have one response in each row, it has its own `line`.

    `segments` are given where the file says how the text is cut.
    """

    text: str
    line: int = 0
    external_id: str = ""
    model: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    segments: tuple[Range, ...] = ()
    segment_label: SegmentLabel | None = None
    label: dict[str, int] = field(default_factory=dict)
    ratings: tuple[dict[str, int], ...] = ()
    expert: Expert | None = None

    @property
    def is_labelled(self) -> bool:
        return bool(self.label or self.segment_label)


@dataclass(frozen=True)
class GivenPreference:
    """One imported rater's preference between the two responses."""

    strength: int
    justification: str


@dataclass(frozen=True)
class GivenAnnotation:
    """What one person said of a task elsewhere: scores by attribute, by the response's position, or a preference.

    `rater` is the person's name in the file; where it is empty, the place among the task's annotations stands for it.
    `segments` holds scores of segments by the response's position, all of the same aspects. `ranking` has tiers of
    positions, the best first, of every response. Where the file does not say when it was submitted, the time of the
    import stands for it. `evidence` has (attribute, start, end, note) by the response's position: the characters for
    which an attribute has its score.
    """

    rater: str
    ratings: Mapping[int, dict[str, int]]
    preference: int | None = None
    justification: str = ""
    segments: Mapping[int, SegmentLabel] = field(default_factory=dict)
    ranking: tuple[tuple[int, ...], ...] = ()
    submitted_at: datetime | None = None
    active_seconds: float | None = None
    evidence: Mapping[int, tuple[tuple[str, int, int, str], ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class GivenSegment:
    """One segment of a response, the text that the file has of it, and its scores by aspect. Labels have no rater."""

    rater: str
    response: str
    index: int
    range: Range
    text: str | None
    scores: Mapping[str, int | None]


@dataclass(frozen=True)
class GivenSegments:
    """Ranges of a stored response, their texts where the file has them, and the scores as of SegmentLabel."""

    cut: tuple[Range, ...]
    texts: tuple[str | None, ...]
    scores: tuple[tuple[int | None, ...], ...]


@dataclass(frozen=True)
class SegmentSheet:
    """What one rater said of the segments of a task's responses, by their names; without a rater, their labels."""

    rater: str
    aspects: tuple[str, ...]
    responses: Mapping[str, GivenSegments]


@dataclass  # not frozen, as responses are not
class TaskRow:
    """A task in a file. `line` is its first line, `size` the number of bytes that it takes in the file: the layout's
    name and these are filled in where the row has been read.

    A row that only `refers` to a task by its id has annotations and no texts, or a `sheet` of segments. An id that is
    `of_a_group` may stand for several tasks, as that of a question does. `kept` names the columns that became metadata,
    some of which were `read_and_kept`, and `notes` say what else people should know of the row. `left_out` says of each
    rating that does not count why it does not; the row itself goes in. `unknown_language` has the words for a language
    that are neither a code nor an English name. A row that `pairs_up` is one task with the next one of the same prompt,
    and rows of one `segment` each become a sheet (layouts/grouping.py).
    """

    messages: list[Message]
    responses: tuple[ResponseRow, ...]
    external_id: str = ""
    priority: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)
    preference: int | None = None
    preferences: tuple[GivenPreference, ...] = ()
    annotations: tuple[GivenAnnotation, ...] = ()
    sheet: SegmentSheet | None = None
    refers: bool = False
    left_out: tuple[str, ...] = ()
    gold: str = ""
    language: str = ""
    unknown_language: str = ""
    layout: str = ""
    line: int = 0
    size: int = 0
    segment: GivenSegment | None = None
    pairs_up: bool = False
    of_a_group: bool = False
    read_and_kept: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    kept: tuple["Kept", ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def prompt_hash(self) -> str:
        return prompt_hash(self.messages)

    @cached_property
    def content_hash(self) -> str:
        return content_hash(self.prompt_hash, [response.text for response in self.responses])

    @cached_property
    def name(self) -> str:
        """The task's id in the file, or one that is derived from its content."""
        return self.external_id or self.name_by_content

    @property
    def name_by_content(self) -> str:
        return f"content-{self.content_hash[:24]}"

    def listed_raters(self) -> int:
        """Returns how many places the lists of ratings have."""
        return max((len(response.ratings) for response in self.responses), default=0)

    def raters(self) -> int:
        """Returns how many imported raters rated the task's responses."""
        return self.listed_raters() + sum(bool(annotation.ratings) for annotation in self.annotations)

    def people(self) -> int:
        """Returns how many imported raters rated the responses or said which of them they prefer."""
        return max(self.listed_raters(), len(self.preferences)) + len(self.annotations)

    def weight(self) -> int:
        """Returns the bytes that the row counts for in a batch: each rating becomes rows of its own in the database."""
        ratings = sum(len(response.ratings) for response in self.responses) + len(self.preferences)
        ratings += sum(len(annotation.ratings) + 1 for annotation in self.annotations)
        return self.size + RATING_BYTES * ratings

    def has_ratings(self) -> bool:
        """Returns whether the row has labels or ratings of its responses."""
        return bool(self.annotations or self.sheet) or any(
            response.is_labelled or response.ratings for response in self.responses
        )

    def has_answers(self) -> bool:
        """Returns whether the row has anything that people said of its responses: ratings, preferences, or gold."""
        return bool(self.preferences or self.gold) or self.has_ratings()


@dataclass(frozen=True)
class Kept:
    """A column of a row that became metadata, what it looks like, and the characters of its text."""

    column: str
    characters: int = 0
    judges: bool = False


@dataclass(frozen=True)
class ImportRules:
    """What the project says of ratings: the number of levels by attribute, and whether a preference may be 0.

    `aspects` are the attributes of segments, and `deciding_aspect` that which a verdict on a segment is about.
    `person` is whose ratings a file holds where its rows name nobody, if its folder or a mapping says so. `questions`
    says which attribute another tool's question stands for. With `fitting_only`, a rating that does not fit is left out
    of its row; otherwise the row is refused.
    """

    attributes: Mapping[str, int]
    ties: bool
    aspects: Mapping[str, int] = field(default_factory=dict)
    deciding_aspect: str = ""
    person: str = ""
    questions: Mapping[str, str] = field(default_factory=dict)
    fitting_only: bool = False

    @classmethod
    def of(cls, project: Project, person: str = "") -> "ImportRules":
        aspects = {aspect.key: len(aspect.levels) for aspect in project.aspects()}
        deciding = project.spread_attribute if project.spread_attribute in aspects else next(iter(aspects), "")
        return cls(project.scales(), project.allow_ties, aspects, deciding, person)


@dataclass(frozen=True)
class Rejected:
    """A row that was refused, and the reason. `field` is empty where the reason is not about a single field.

    `layout` is the one that the row was recognised by. If `of_rating`, only one rating of the row does not count.
    """

    line: int
    error: str
    field: str = field(default="", compare=False)
    layout: str = ""
    of_rating: bool = False


@dataclass(frozen=True)
class Placed:
    """A checked row with the ids of its task and of the task's responses, in the order of their positions.

    `responses` is empty for a known task if the row has no labels or ratings of them.
    """

    task: int
    responses: Sequence[int]
    row: TaskRow
    is_new: bool = False
