"""What an import and each of its batches came to, and who is told about it while it runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.conf import settings

from annotator.importing.notes import Note, Notes
from annotator.importing.rows import Rejected
from annotator.refusals import Refusal


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
        of_ratings = ratings_among(rows)
        self.ratings_left_out += of_ratings
        self.rejected_total += len(rows) - of_ratings


def ratings_among(refused: Sequence[Rejected]) -> int:
    """Returns how many of these are ratings whose rows went in."""
    return sum(row.of_rating for row in refused)


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
        return ratings_among(self.refused)

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
