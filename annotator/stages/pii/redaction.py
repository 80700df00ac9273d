"""Replaces chosen texts of a task by placeholders, also where other rows of the task repeat the same strings.

Snapshots that are on disk already are not changed: the machine half marks them, and managers may erase them.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.refusals import Refusal
from annotator.models import (
    Adjudication,
    Annotation,
    Draft,
    Exclusion,
    ExpertRating,
    ExportJob,
    ImportJob,
    ImportJobError,
    Label,
    PiiKind,
    QualificationAnswer,
    QualificationRun,
    Rating,
    Release,
    Report,
    Response,
    Skip,
    Task,
    Verdict,
)
from annotator.stages import annotation
from annotator.stages.pii.quotations import check_quotes
from annotator.stages.pii.texts import Place, likeness, occurrences, text_at, texts_of
from annotator.stages.segmenting import Range, Replacement, moved, ranges

# These become part of the data, so they are not translated.
PLACEHOLDERS: dict[str, str] = {
    PiiKind.EMAIL: "[e-mail address removed]",
    PiiKind.PHONE: "[phone number removed]",
    PiiKind.SSN: "[social security number removed]",
    PiiKind.ADDRESS: "[address removed]",
    PiiKind.CARD: "[card number removed]",
    PiiKind.IP: "[IP address removed]",
    PiiKind.IBAN: "[bank account removed]",
    PiiKind.OTHER: "[personal information removed]",
}


@dataclass(frozen=True)
class Choice:
    """The texts to be erased: those of the spans, and the quotes."""

    spans: Collection[int] = ()
    quotes: Sequence[str] = ()


@dataclass(frozen=True)
class Stretch:
    """A range of characters in one text, without `end`, and the kind of personal information that it is."""

    place: Place
    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Eraser:
    """Replaces every occurrence of some strings, the longest first, regardless of case and white space."""

    pattern: re.Pattern[str]
    placeholders: Mapping[str, str]

    @classmethod
    def of(cls, strings: Mapping[str, str], *, glued: Collection[str] = ()) -> "Eraser":
        """Makes an eraser from strings and their placeholders; finds those in `glued` inside of words too."""
        # The longest first: the pattern takes the first alternative that matches, and would leave a longer one's end.
        named = {f"n{number}": string for number, string in enumerate(sorted(strings, key=len, reverse=True))}
        parts = (f"(?P<{name}>{likeness(string, whole_words=string not in glued)})" for name, string in named.items())
        return cls(
            re.compile("|".join(parts), re.IGNORECASE), {name: strings[string] for name, string in named.items()}
        )

    def text(self, text: str) -> str:
        return self.pattern.sub(lambda match: self.placeholders[str(match.lastgroup)], text)

    def replacements(self, text: str) -> list[Replacement]:
        """Returns what `text` replaces and by what, for ranges of the text to be moved."""
        return [
            Replacement(*match.span(), self.placeholders[str(match.lastgroup)]) for match in self.pattern.finditer(text)
        ]

    def json(self, value: Any) -> Any:
        """Erases in every string of a JSON value and in names of fields, and replaces numbers that are such strings."""
        if isinstance(value, str):
            return self.text(value)
        if type(value) in (int, float):
            return self.text(str(value)) if self.pattern.fullmatch(str(value)) else value
        if isinstance(value, list):
            return [self.json(item) for item in value]
        if isinstance(value, dict):
            return {self.text(name): self.json(item) for name, item in value.items()}
        return value


def eraser_for(task: Task, choice: Choice) -> Eraser:
    """Returns the eraser for the chosen texts.

    Raises:
        Refusal: Nothing is chosen.
        NotInTheText: A quote does not occur in the task.
    """
    check_quotes(choice.quotes, task)
    texts = texts_of(task)
    chosen = list(_chosen(task, choice, texts))
    if not chosen:
        raise Refusal(_("Choose at least one place to redact."), code="cannot_redact")
    # Stretches that overlap are also erased as one string, or the end of one would be left behind.
    stretches = chosen + list(_joined(chosen))
    strings, glued = {}, set()
    for stretch in stretches:
        text, start, end = texts[stretch.place], stretch.start, stretch.end
        strings[text[start:end]] = PLACEHOLDERS[stretch.kind]
        # A letter or digit touches it, as in scripts without spaces between words.
        if any(re.fullmatch(r"\w\w", both) for both in (text[max(0, start - 1) : start + 1], text[end - 1 : end + 1])):
            glued.add(text[start:end])
    return Eraser.of(strings, glued=glued)


def _chosen(task: Task, choice: Choice, texts: Mapping[Place, str]) -> Iterator[Stretch]:
    """Yields the chosen stretches, quotes first: a later span of the same text replaces their kind by its own."""
    for quote in choice.quotes:
        for place, text in texts.items():
            yield from (Stretch(place, start, end, PiiKind.OTHER) for start, end in occurrences(quote, text))
    spans = list(task.pii_spans.order_by("-source"))
    chosen_texts = {text_at(span, texts) for span in spans if span.pk in choice.spans}
    for span in spans:
        if text_at(span, texts).strip() and text_at(span, texts) in chosen_texts:
            yield Stretch(Place.of(span), span.start, span.end, span.kind)


def _joined(stretches: Iterable[Stretch]) -> Iterator[Stretch]:
    """Yields stretches that overlap as one, with the first kind that is not "other"."""
    whole: Stretch | None = None
    for stretch in sorted(stretches, key=lambda stretch: (str(stretch.place), stretch.start, -stretch.end)):
        if whole and stretch.place == whole.place and stretch.start < whole.end:
            kind = stretch.kind if whole.kind == PiiKind.OTHER else whole.kind
            whole = replace(whole, end=max(whole.end, stretch.end), kind=kind)
            continue
        if whole:
            yield whole
        whole = stretch
    if whole:
        yield whole


def preview(task: Task, choice: Choice) -> dict[Place, str]:
    """Returns the new texts of those places that a redaction would change."""
    eraser = eraser_for(task, choice)
    return {place: new for place, text in texts_of(task).items() if (new := eraser.text(text)) != text}


@transaction.atomic
def redact(task_id: int, choice: Choice, *, now: datetime) -> Task:
    """Erases the chosen texts for good, and returns the task to the queue. The remaining texts will be scanned again.

    The hashes of content and prompt stay: the same file imported again finds its task, and the split does not change.

    Raises:
        Refusal: The task is not quarantined, nothing is chosen, or the task's id contains a chosen text.
        NotInTheText: A quote does not occur in the task.
    """
    # A scan that is under way compares `redacted_at` under the same lock, and drops what it found in the old texts.
    task = Task.objects.select_for_update().get(pk=task_id)
    if task.state != Task.State.QUARANTINED:
        raise Refusal(
            _("Only a quarantined task can be redacted; %(task)s is not.") % {"task": task}, code="cannot_redact"
        )
    eraser = eraser_for(task, choice)
    if eraser.text(task.external_id) != task.external_id:
        raise Refusal(
            _("The task's id also contains this text, and the id cannot change. Retire the task instead."),
            code="cannot_redact",
        )
    # An edit that has become a response of another task repeats this one's texts.
    edited = Task.objects.filter(responses__edit_of__annotation__assignment__task=task).distinct()
    repeating = [task, *Task.objects.select_for_update().filter(pk__in=edited).order_by("pk")]
    for one in repeating:
        _erase(one, eraser)
        one.pii_spans.all().delete()
    numbers = [one.pk for one in repeating]
    _erase_in_project(task.project_id, eraser)
    ImportJob.objects.texts_have_gone(task.project_id)
    ExportJob.objects.texts_have_gone(task.project_id)
    Release.objects.texts_have_gone(task.project_id, numbers)
    # The entry names neither the erased texts nor their places, because the audit log is kept for good.
    audit.record("task.redacted", f"task {task.external_id}", project=task.project)
    Task.objects.filter(pk__in=numbers).update(redacted_at=now, pii_scanned_at=None)
    return annotation.decide_quarantine(task.pk, safe_to_use=True, now=now)


def _erase(task: Task, eraser: Eraser) -> None:
    """Erases the text in every row about the task that may repeat it."""
    responses = {"text": eraser.text, "external_id": eraser.text, "model": eraser.text, "metadata": eraser.json}
    move_segments(task, eraser.replacements)  # as long as the texts are the old ones
    _rewrite(Task.objects.filter(pk=task.pk), {"conversation": eraser.json, "metadata": eraser.json})
    _rewrite(Response.objects.filter(task=task), responses)
    _rewrite(Annotation.objects.filter(assignment__task=task), {"justification": eraser.text})
    written = dict.fromkeys(("feedback", "edit", "edit_summary"), eraser.text)
    said = dict.fromkeys(("comments", "evidence"), lambda rows: [[*row[:-1], eraser.text(row[-1])] for row in rows])
    _rewrite(Rating.objects.filter(annotation__assignment__task=task), written | said)
    _rewrite(Skip.objects.filter(assignment__task=task), {"note": eraser.text})
    _rewrite(Report.objects.filter(assignment__task=task), {"note": eraser.text})
    _rewrite(Verdict.objects.filter(assignment__task=task), {"comment": eraser.text})
    _rewrite(Adjudication.objects.filter(task=task), {"comment": eraser.text})
    _rewrite(Draft.objects.filter(assignment__task=task), {"form": eraser.json})
    _rewrite(ExpertRating.objects.filter(gold__task=task), {"explanation": eraser.text})


def _erase_in_project(project: int, eraser: Eraser) -> None:
    """Erases the text in rows that do not say which task they quote."""
    drafts = QualificationRun.objects.filter(member__project=project).exclude(draft={})
    _rewrite(drafts, {"draft": eraser.json})
    _rewrite(Exclusion.objects.filter(project=project), {"reason": eraser.text})
    _rewrite(ImportJob.objects.filter(project=project), {"error": eraser.text})
    errors = ImportJobError.objects.filter(job__project=project)
    _rewrite(errors, {"field": eraser.text, "error": eraser.text})


def _rewrite(rows: QuerySet[Any], fields: Mapping[str, Callable[[Any], Any]]) -> None:
    changed = []
    for row in rows.only(*fields):
        before = {name: vars(row)[name] for name in fields}
        after = {name: erase(before[name]) for name, erase in fields.items()}
        if before != after:  # only rows that change are written
            vars(row).update(after)
            changed.append(row)
    rows.model.objects.bulk_update(changed, list(fields))


# Segments that move ------------------------------------------------------------------------------------------


Replace = Callable[[str], Sequence[Replacement]]
Rows = list[Any]
_OF_A_SEGMENT = ("seg", "comment", "quote")


def move_segments(task: Task, replace: Replace) -> None:
    """Moves the segments and the evidence of the task's responses, whose texts are still the old ones.

    `replace` says what of a text is replaced.
    """
    for response in task.responses.select_for_update():
        if replacements := replace(response.text):
            if response.segments is not None:
                _move(response, replacements)
            _move_evidence(response, replacements)
            _change_drafts(response, names=(f"evidence-{response.public_id}",))


def _move_evidence(response: Response, replacements: Sequence[Replacement]) -> None:
    for rating in Rating.objects.filter(response=response).exclude(evidence=[]):
        stretches = moved([Range(start, end) for _attribute, start, end, _note in rating.evidence], replacements)
        pairs = zip(rating.evidence, stretches, strict=True)
        rating.evidence = [[one[0], *at, one[3]] for one, at in pairs if at is not None]
        rating.save(update_fields=["evidence"])


def _move(response: Response, replacements: Sequence[Replacement]) -> None:
    before = ranges(response.segments)
    places = moved(before, replacements)
    response.segments = _pairs(places)
    response.save(update_fields=["segments"])
    for rating in Rating.objects.filter(response=response).exclude(segment_scores=None, comments=[]):
        own = moved(ranges(rating.cut), replacements) if rating.cut else places
        rating.segment_scores = _left(rating.segment_scores, own)
        rating.cut = _pairs(own) if rating.cut else None
        stretches = moved([Range(start, end) for start, end, _text in rating.comments], replacements)
        pairs = zip(rating.comments, stretches, strict=True)
        rating.comments = [[*at, one[2]] for one, at in pairs if at is not None]
        rating.save(update_fields=["segment_scores", "cut", "comments"])
    for label in Label.objects.filter(response=response).exclude(segment_scores=None):
        own = moved(ranges(label.cut), replacements) if label.cut else places
        label.segment_scores, label.segment_means = _left(label.segment_scores, own), _left(label.segment_means, own)
        label.cut = _pairs(own) if label.cut else None
        label.save(update_fields=["segment_scores", "segment_means", "cut"])
    for model in (ExpertRating, QualificationAnswer):
        for row in model.objects.filter(response=response).exclude(segment_scores=None):
            row.segment_scores = _left(row.segment_scores, places)
            row.save(update_fields=["segment_scores"])
    for score in response.model_scores.exclude(segment_scores=None):
        # A pass that was under way while a manager changed the segments has scored the former ones.
        is_of_these = len(score.segment_scores or ()) == len(places)
        score.segment_scores = _left(score.segment_scores, places) if is_of_these else None
        score.save(update_fields=["segment_scores"])
    key = str(response.pk)
    for adjudication in Adjudication.objects.filter(task=response.task_id, segments__has_key=key):
        adjudication.segments[key] = _left(adjudication.segments[key], places)
        adjudication.save(update_fields=["segments"])
    number = response.public_id
    of_segments = tuple(f"{kind}-{number}-" for kind in _OF_A_SEGMENT) if None in places else ()
    _change_drafts(response, names=(f"cut-{number}",), beginnings=of_segments)


def _pairs(places: Sequence[Range | None]) -> Rows:
    return [list(place) for place in places if place is not None]


def _left(rows: Rows | None, places: Sequence[Range | None]) -> Rows | None:
    """Returns the rows of the segments that are still there."""
    if rows is None:
        return None
    return [row for row, place in zip(rows, places, strict=True) if place is not None]


def _change_drafts(response: Response, *, names: Sequence[str], beginnings: tuple[str, ...] = ()) -> None:
    """Takes from drafts what would be about other characters: an own cut, words, and answers if a segment is gone."""
    for draft in Draft.objects.filter(assignment__task=response.task_id):
        form = {
            name: value for name, value in draft.form.items() if name not in names and not name.startswith(beginnings)
        }
        if form != draft.form:
            draft.form = form
            draft.save(update_fields=["form"])
