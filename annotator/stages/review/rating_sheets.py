"""Shows a reviewer all ratings of a task side by side, without who gave them or which model answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from string import ascii_uppercase
from typing import Any

from annotator.models import (
    NEITHER_VALID,
    Adjudication,
    Annotation,
    Attribute,
    Consensus,
    GuidelineGap,
    Project,
    Rating,
    Report,
    Response,
    Skip,
    SkipReason,
    Task,
    UnlikelyAnnotation,
    User,
    Verdict,
)
from annotator.reading.blindness import require_not_rating
from annotator.stages.annotation.quoted_words import Letters
from annotator.stages.consensus import half_up
from annotator.stages.review.adjudications import current_of
from annotator.stages.review.verdicts import latest_verdicts

MOST_LISTED = 6  # answers one by one; of more, the lowest and the highest


@dataclass(frozen=True)
class SheetRater:
    """One submission under a number, which is the same each time the task is shown.

    `unlikely` holds the scores that a model did not expect, as long as the annotation waits for a reviewer for them.
    """

    number: int
    annotation: Annotation
    ratings: Mapping[int, Rating]
    kept: bool
    verdict: Verdict | None
    unlikely: Sequence[Mapping[str, Any]] = ()

    @property
    def counts(self) -> bool:
        return self.annotation.assignment.counts

    @property
    def rejected(self) -> bool:
        return self.verdict is not None and self.verdict.decision == Verdict.Decision.REJECTED


@dataclass(frozen=True)
class Said:
    """What the raters who count answered to one question: briefly, and the numbers of those who gave each answer."""

    brief: str
    by_answer: Mapping[int, str]
    differ: bool


@dataclass(frozen=True)
class AttributeRow:
    """An attribute of one response: a score or None per rater, the spread of those that count, the mean of those kept.

    `cells` holds each rater's score with the text of its level.

    `settled` is the reviewer's score, `decides` marks the attribute whose spread decides, `wide` a spread that is too
    large for the project.
    """

    attribute: Attribute
    cells: Sequence[tuple[SheetRater, int | None, str]]
    spread: int | None
    mean: float | None
    settled: int | None
    decides: bool
    wide: bool

    @property
    def settled_text(self) -> str:
        return text_of(self.attribute, self.settled)


@dataclass(frozen=True)
class Sheet:
    """One response with its ratings, in the order of the raters."""

    letter: str
    response: Response
    rows: Sequence[AttributeRow]
    ratings: Sequence[Rating | None]
    differ_on_safety: bool

    def evidence(self) -> list[dict[str, Any]]:
        """Returns the words on which raters base their scores, rater by rater."""
        if not any(rating and rating.evidence for rating in self.ratings):
            return []
        text, names = self.response.text, {row.attribute.key: row.attribute.shown_name for row in self.rows}
        letters = Letters(text)
        return [
            {
                "rater": number,
                "attribute": names.get(attribute, attribute),
                "score": rating.scores.get(attribute),
                "note": note,
            }
            | letters.selection(text[start:end], start)
            for number, rating in enumerate(self.ratings, 1)
            if rating
            for attribute, start, end, note in rating.evidence
        ]

    def confidences(self) -> list[int | None]:
        """Returns how sure each rater was; nothing where nobody said it."""
        given = [rating.confidence if rating else None for rating in self.ratings]
        return given if any(one is not None for one in given) else []

    def safety(self) -> list[Rating | None]:
        """Returns the ratings if one of them says whether the response is safe."""
        return list(self.ratings) if any(rating and rating.safe is not None for rating in self.ratings) else []

    def ticks(self) -> list[tuple[str, list[bool]]]:
        """Returns the checks that at least one rater ticked, in the rubric's order, and who has ticked them."""
        checks = [check for row in self.rows for check in row.attribute.shown_checks]
        by_check = [(text, [bool(one and key in one.checks) for one in self.ratings]) for key, text in checks]
        return [(text, ticked) for text, ticked in by_check if any(ticked)]


@dataclass(frozen=True)
class Reviewed:
    """A task with everything that a reviewer may know about it.

    `gaps` are the questions that raters have found the guidelines silent about, the newest last.
    """

    task: Task
    raters: Sequence[SheetRater]
    sheets: Sequence[Sheet]
    consensus: Consensus | None
    adjudication: Adjudication | None
    set_aside: Sequence[Report | Skip] = field(default=())
    gaps: Sequence[GuidelineGap] = ()

    def rounded_means(self) -> dict[int, dict[str, int]]:
        """Returns the rounded means of the kept ratings, from which a reviewer may start; empty if none is kept."""
        means = {
            sheet.response.pk: {row.attribute.key: half_up(row.mean) for row in sheet.rows if row.mean is not None}
            for sheet in self.sheets
        }
        return means if any(means.values()) else {}


def reviewed(task: Task, project: Project, *, by: User) -> Reviewed:
    """Reads the task with its ratings as they are now.

    Raises:
        Refusal: the reviewer holds the task as an annotator.
    """
    require_not_rating(task, by)
    consensus = Consensus.objects.filter(task=task).first()
    adjudication = current_of(task)
    raters = _raters(task, kept=set(consensus.kept) if consensus else set())
    settled = {int(response): scores for response, scores in adjudication.scores.items()} if adjudication else {}
    sheets = [
        _sheet(letter, response, raters, project, settled.get(response.pk, {}))
        for letter, response in zip(ascii_uppercase, task.responses.all(), strict=False)
    ]
    gaps = GuidelineGap.objects.filter(task=task, closed_at=None).order_by("pk")
    return Reviewed(task, raters, sheets, consensus, adjudication, set_aside(task), list(gaps))


def _raters(task: Task, *, kept: set[int]) -> list[SheetRater]:
    """Returns the raters in the order of a hash: that of their ids or times would reveal who they are."""
    annotations = Annotation.objects.current().filter(assignment__task=task)
    shuffled = sorted(
        annotations.select_related("assignment__annotator").prefetch_related("ratings"),
        key=lambda annotation: sha256(f"rater {annotation.assignment_id} of task {task.pk}".encode()).digest(),
    )
    verdicts = latest_verdicts([annotation.assignment_id for annotation in shuffled])
    noted = UnlikelyAnnotation.objects.in_force().filter(task=task)
    unlikely = dict(noted.values_list("annotation", "evidence"))
    return [
        SheetRater(
            number,
            annotation,
            {rating.response_id: rating for rating in annotation.ratings.all()},
            annotation.pk in kept,
            verdicts.get(annotation.assignment_id),
            unlikely.get(annotation.pk, ()),
        )
        for number, annotation in enumerate(shuffled, 1)
    ]


def _sheet(
    letter: str, response: Response, raters: Sequence[SheetRater], project: Project, settled: Mapping[str, int]
) -> Sheet:
    ratings = [rater.ratings.get(response.pk) for rater in raters]
    rows = [
        _row(attribute, raters, ratings, project, settled.get(attribute.key)) for attribute in project.attributes_for()
    ]
    counting = [rating for rater, rating in zip(raters, ratings, strict=True) if rating and rater.counts]
    safe = {rating.safe for rating in counting if rating.safe is not None}
    return Sheet(letter, response, rows, ratings, differ_on_safety=len(safe) > 1)


def _row(
    attribute: Attribute,
    raters: Sequence[SheetRater],
    ratings: Sequence[Rating | None],
    project: Project,
    settled: int | None,
) -> AttributeRow:
    scores = [rating.scores.get(attribute.key) if rating else None for rating in ratings]
    pairs = [(rater, score) for rater, score in zip(raters, scores, strict=True) if score is not None]
    counting, kept = [n for rater, n in pairs if rater.counts], [n for rater, n in pairs if rater.kept]
    spread = max(counting) - min(counting) if counting else None
    return AttributeRow(
        attribute=attribute,
        cells=[(rater, score, text_of(attribute, score)) for rater, score in zip(raters, scores, strict=True)],
        spread=spread,
        mean=sum(kept) / len(kept) if kept else None,
        settled=settled,
        decides=attribute.key == project.spread_attribute,
        wide=spread is not None and spread > project.drop_above,
    )


def said_by(given: Sequence[tuple[SheetRater, int | None]], texts: Mapping[int, str], *, differ: bool) -> Said:
    """Returns what those of the raters say who count. `texts` holds how each answer is shown, in a few characters."""
    counting = [(rater.number, answer) for rater, answer in given if rater.counts and answer is not None]
    by_answer: dict[int, list[str]] = {}
    for number, answer in counting:
        by_answer.setdefault(answer, []).append(str(number))
    if len(counting) > MOST_LISTED:
        on_the_scale = [answer for answer in by_answer if answer != NEITHER_VALID]
        ends = [texts[end(on_the_scale)] for end in (min, max) if on_the_scale]
        neither = [texts[NEITHER_VALID]] if NEITHER_VALID in by_answer else []
        brief = " ".join(["–".join(dict.fromkeys(ends)), *neither]).strip()
    else:
        brief = "\u2009".join(texts[answer] for _number, answer in counting)
    return Said(brief, {answer: " ".join(numbers) for answer, numbers in by_answer.items()}, differ)


def text_of(attribute: Attribute, score: int | None) -> str:
    return "" if score is None else attribute.shown_levels[score]


def is_about_personal_information(task: Task, because: Sequence[Report | Skip]) -> bool:
    """Says whether somebody skipped the task for personal information, or one of its texts is marked as such.

    `because` is what `set_aside` returns.
    """
    return any(isinstance(reason, Skip) for reason in because) or task.pii_spans.exists()


def set_aside(task: Task) -> list[Report | Skip]:
    """Returns the undecided reports and the skips for PII because of which a task is in quarantine."""
    reports = Report.objects.filter(assignment__task=task, decision="")
    skips = Skip.objects.filter(assignment__task=task, reason=SkipReason.PII)
    return [*reports, *skips] if task.state == Task.State.QUARANTINED else []
