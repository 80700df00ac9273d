"""Stores what an annotator marks when skipping a task: detected spans that are indeed personal, and quotes."""

from collections.abc import Collection, Sequence
from datetime import datetime

from django.utils.translation import gettext as _

from annotator.infrastructure.refusals import Refusal
from annotator.models import PiiKind, PiiSpan, Task, User
from annotator.stages.pii.texts import occurrences, text_at, texts_of

SHOWN = 60


class NotInTheText(Refusal):
    """A quote does not occur in any text of the task."""

    status = 400
    code = "not_in_the_text"

    def __init__(self, quotes: Sequence[str]) -> None:
        texts = [
            _("“%(quote)s” is not in the text. Copy each passage exactly as it appears in the text, one per line.")
            % {"quote": quote if len(quote) <= SHOWN else f"{quote[:SHOWN]}…"}
            for quote in quotes
        ]
        super().__init__(" ".join(texts))
        self.errors = {"quotes": texts}


class MarksWithoutReason(Refusal):
    """The skip marks personal information but gives another reason, so one of the two is a mistake."""

    status = 400
    code = "marks_without_reason"

    def __init__(self) -> None:
        text = _("You marked personal information. Choose it as the reason, or remove the marks.")
        super().__init__(text)
        self.errors = {"reason": [text]}


def check_quotes(quotes: Sequence[str], task: Task) -> None:
    """Raises NotInTheText with all quotes that occur in no text of the task."""
    texts = texts_of(task).values()
    if missing := [quote for quote in quotes if not any(any(occurrences(quote, text)) for text in texts)]:
        raise NotInTheText(missing)


def mark(task: Task, *, spans: Collection[int], quotes: Sequence[str], by: User, now: datetime) -> None:
    """Stores every occurrence of the quotes, and of the texts of the detected spans that the annotator confirms.

    Raises:
        NotInTheText: A quote does not occur in the task.
    """
    check_quotes(quotes, task)
    texts = texts_of(task)
    kinds = {quote: str(PiiKind.OTHER) for quote in quotes}
    # A confirmed span knows the kind, and wins over a quote of the same text.
    kinds |= {text_at(span, texts): span.kind for span in task.pii_spans.detected().filter(pk__in=spans)}
    PiiSpan.objects.bulk_create(
        [
            PiiSpan(
                task=task,
                turn=place.turn,
                response_id=place.response,
                start=start,
                end=end,
                kind=kind,
                source=PiiSpan.Source.ANNOTATOR,
                marked_by=by,
                created_at=now,
            )
            for quote, kind in kinds.items()
            for place, text in texts.items()
            for start, end in occurrences(quote, text)
        ],
        # The same place may be marked twice, by two quotes or by an earlier skip of the same annotator.
        ignore_conflicts=True,
    )


def unmark(task: Task, *, by: User) -> None:
    """Deletes what the annotator marked in the task."""
    task.pii_spans.filter(source=PiiSpan.Source.ANNOTATOR, marked_by=by).delete()
