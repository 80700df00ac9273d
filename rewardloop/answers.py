"""What the server answers, as frozen dataclasses.

A field that a newer server adds is in `raw`, which holds the whole answer; one that an older server, or one's role,
leaves out has its default.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Json = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One object of an answer; `raw` is all that the server said of it."""

    raw: Json = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, kw_only=True)
class Token(Answer):
    """A token and when it ends."""

    token: str = field(repr=False)
    expiry: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class StoredToken(Answer):
    """A token as the server keeps it: `begins` are the first characters of the token itself."""

    id: int
    begins: str
    name: str = ""
    expiry: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Membership(Answer):
    """One's own part in a project: *annotator*, *reviewer* or *manager*."""

    project: str
    role: str
    pseudonym: str = ""


@dataclass(frozen=True, kw_only=True)
class Me(Answer):
    """The account of the token."""

    username: str
    is_staff: bool = False
    memberships: tuple[Membership, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TaskCounts(Answer):
    """Counts of tasks by state."""

    tasks: int = 0
    open: int = 0
    complete: int = 0
    quarantined: int = 0


@dataclass(frozen=True, kw_only=True)
class OwnPart(Answer):
    """The role of the token's account in a project, and the tasks that it has rated and may rate (0: no limit)."""

    role: str | None = None
    done: int = 0
    quota: int | None = None


@dataclass(frozen=True, kw_only=True)
class Project(Answer):
    """A project. `progress` is None for annotators, who do not see it; its other settings are in `raw`."""

    slug: str
    name: str
    description: str = ""
    rubric: str = ""
    paused: bool = False
    created_at: datetime | None = None
    archived_at: datetime | None = None
    own: OwnPart | None = None
    progress: TaskCounts | None = None


@dataclass(frozen=True, kw_only=True)
class Message(Answer):
    """One turn of a conversation, of the *system*, the *user* or the *assistant*."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True)
class Response(Answer):
    """A response in a list of tasks, with its id as imported."""

    id: str
    text: str
    model: str = ""


@dataclass(frozen=True, kw_only=True)
class Task(Answer):
    """A task as managers and reviewers see it."""

    id: str
    conversation: tuple[Message, ...] = ()
    responses: tuple[Response, ...] = ()
    metadata: Json = field(default_factory=dict)
    priority: int = 0
    state: str = ""
    created_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class RefusedRow(Answer):
    """A row of an imported file that was refused: its line from 1, the field where that is known, and why."""

    line: int
    error: str
    field: str = ""


@dataclass(frozen=True, kw_only=True)
class Note(Answer):
    """What an import says of rows that went in: a sentence, the first line and the number of rows that it is about."""

    line: int
    rows: int
    text: str


@dataclass(frozen=True, kw_only=True)
class ImportJob(Answer):
    """An import in the background. `state` is *uploaded, waiting, working, done, failed* or *cancelled*."""

    id: int
    state: str
    dry_run: bool = False
    file_bytes: int = 0
    bytes_read: int = 0
    rows_done: int = 0
    created: int = 0
    existing: int = 0
    rejected: int = 0
    ratings_added: int = 0
    ratings_left_out: int = 0
    notes: tuple[Note, ...] = ()
    import_id: int | None = None
    error: str = ""
    hub: str = ""
    created_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class ImportResult(Answer):
    """What an import has done, or would do with `dry_run`. `refused` holds the first 1,000 of the
    `rejected` rows and of the ratings that do not count.

    `notes` say what else to know of the rows: columns that were kept as metadata, texts that are the same.
    `name` is that of the file. A data set of the Hub has several `files`, each with a result of its own: then the
    numbers are those of all of them, and `refused`, `notes` and `import_id` stand with each.
    """

    created: int
    existing: int
    rejected: int
    ratings_added: int = 0
    ratings_left_out: int = 0
    refused: tuple[RefusedRow, ...] = ()
    notes: tuple[Note, ...] = ()
    import_id: int | None = None
    dry_run: bool = False
    name: str = ""
    files: "tuple[ImportResult, ...]" = ()


@dataclass(frozen=True, kw_only=True)
class ExportJob(Answer):
    """A file that the server writes. `state` is *waiting, working, done, failed, expired* or *withdrawn*."""

    id: int
    state: str
    rows_expected: int | None = None
    rows_done: int = 0
    bytes_done: int = 0
    sha256: str = ""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Attribute(Answer):
    """What responses are rated by. A score counts its `levels`, the lowest first, from 0."""

    key: str
    name: str = ""
    description: str = ""
    levels: tuple[str, ...] = ()
    scope: str = "response"


@dataclass(frozen=True, kw_only=True)
class Rubric(Answer):
    """The attributes of a project in one version."""

    key: str
    version: int = 1
    name: str = ""
    attributes: tuple[Attribute, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LeasedResponse(Answer):
    """A response to rate, with its number."""

    id: int
    text: str


@dataclass(frozen=True, kw_only=True)
class LeasedTask(Answer):
    """A task to rate, its responses in this annotator's own order."""

    id: int
    conversation: tuple[Message, ...] = ()
    responses: tuple[LeasedResponse, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Lease(Answer):
    """A task that is one's own until `lease_expires_at`.

    `asks` lists what a rating needs besides scores, by the names of its fields, such as *preference* or *confidence*.
    """

    assignment: int
    task: LeasedTask
    rubric: Rubric
    lease_expires_at: datetime | None = None
    asks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NothingToRate(Answer):
    """There is no task, and why. It is false, so that `while lease := client.next_task(...)` ends by it."""

    reason: str = ""
    detail: str = ""

    def __bool__(self) -> bool:
        return False


NextTask = Lease | NothingToRate


@dataclass(frozen=True, kw_only=True)
class StoredRating(Answer):
    """A rating that is in. `counts` is false for one that came when the task had no room left.

    `next` is the next task, where it was asked for.
    """

    annotation: int
    assignment: int
    revision: int = 1
    counts: bool = True
    next: NextTask | None = None


@dataclass(frozen=True, kw_only=True)
class Run(Answer):
    """A training run. It has ended as *promoted, rejected, failed* or *cancelled*; *awaiting_promotion* wants a yes."""

    id: int
    state: str
    project: str = ""
    reason: str = ""
    reward_model: int | None = None
    progress: Any = None
    metrics: Json = field(default_factory=dict)
    verdict: Any = None
    error: str = ""
    created_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Model(Answer):
    """A reward model."""

    id: int
    version: int = 0
    project: str = ""
    attributes: tuple[str, ...] = ()
    attribute_weights: Any = None
    is_champion: bool = False
    scored: int = 0
    score_precision: str = ""
    evaluations: Json = field(default_factory=dict)
    erased: bool = False
    license: str = ""
    created_at: datetime | None = None
    promoted_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class StoredFile(Answer):
    """A file of a model or a release: its path there, its size in bytes, and its SHA-256."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Score(Answer):
    """What a model gives one response. `reward` ranks responses; `uncertainty` is its standard deviation.

    `precision` is what it was computed in. In bfloat16 a reward differs from that in float32 by some thousandths.
    """

    reward: float
    scores: Mapping[str, float] = field(default_factory=dict)
    uncertainty: float | None = None
    truncated: bool = False
    precision: str = ""


@dataclass(frozen=True, kw_only=True)
class Scores(Answer):
    """The results in the order of the items, and the model that gave them. `results` is None while a job goes on."""

    model: int
    results: tuple[Score, ...] | None = None
    id: int | None = None
    state: str = "done"
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Release(Answer):
    """A frozen state of a project's data. `state` is *waiting, working, done, failed* or *withdrawn*."""

    number: int
    state: str
    title: str = ""
    license: str = ""
    rows_expected: int | None = None
    rows_done: int = 0
    counts: Json = field(default_factory=dict)
    content_hash: str = ""
    archive_size: int | None = None
    archive_sha256: str = ""
    error: str = ""
    created_at: datetime | None = None
