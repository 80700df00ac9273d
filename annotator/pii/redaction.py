"""Redaction: chosen texts give way to placeholders, and the same strings wherever the task's rows repeat them.

Snapshots that lie on disk already are not touched: the machine half marks them, and managers may erase them.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from annotator import annotation, audit
from annotator.models import (
    Adjudication,
    Annotation,
    Draft,
    ExpertRating,
    PiiKind,
    Report,
    Response,
    Skip,
    Task,
    Verdict,
)
from annotator.pii.quotations import check_quotes
from annotator.pii.texts import Place, likeness, occurrences, text_at, texts_of
from annotator.refusals import Refusal

# Part of the data, hence in one language.
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


class CannotRedact(Refusal):
    """The task cannot be redacted as it is asked for; the message says why."""

    code = "cannot_redact"


@dataclass(frozen=True)
class Choice:
    """What is to be erased: every text that one of these spans has, and quotes besides."""

    spans: Collection[int] = ()
    quotes: Sequence[str] = ()


@dataclass(frozen=True)
class Stretch:
    """Characters start..end of one text, and what they are."""

    place: Place
    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Eraser:
    """Replaces every occurrence of some strings, the longest first, whatever their case and white space."""

    pattern: re.Pattern[str]
    placeholders: Mapping[str, str]

    @classmethod
    def of(cls, strings: Mapping[str, str], *, glued: Collection[str] = ()) -> "Eraser":
        """`strings` to their placeholders; those that are `glued` to a letter somewhere are found inside words too."""
        named = {f"n{number}": each for number, each in enumerate(sorted(strings, key=len, reverse=True))}
        parts = (f"(?P<{name}>{likeness(each, whole_words=each not in glued)})" for name, each in named.items())
        return cls(re.compile("|".join(parts), re.IGNORECASE), {name: strings[each] for name, each in named.items()})

    def text(self, text: str) -> str:
        return self.pattern.sub(lambda match: self.placeholders[str(match.lastgroup)], text)

    def json(self, value: Any) -> Any:
        """Every string of a JSON value, names of fields too; a number that is one of the strings gives way as well."""
        if isinstance(value, str):
            return self.text(value)
        if type(value) in (int, float):
            return self.text(str(value)) if self.pattern.fullmatch(str(value)) else value
        if isinstance(value, list):
            return [self.json(each) for each in value]
        if isinstance(value, dict):
            return {self.text(name): self.json(each) for name, each in value.items()}
        return value


def eraser_for(task: Task, choice: Choice) -> Eraser:
    """What replaces the chosen texts.

    Raises:
        CannotRedact: nothing is chosen.
        NotInTheText: a quote stands nowhere.
    """
    check_quotes(choice.quotes, task)
    texts = texts_of(task)
    chosen = list(_chosen(task, choice, texts))
    if not chosen:
        raise CannotRedact(_("Choose at least one place to redact."))
    # Those that overlap also count as one string: else the end of one would be left behind.
    stretches = chosen + list(_joined(chosen))
    strings = {texts[each.place][each.start : each.end]: PLACEHOLDERS[each.kind] for each in stretches}
    glued = {texts[each.place][each.start : each.end] for each in stretches if _is_glued(texts[each.place], each)}
    return Eraser.of(strings, glued=glued)


def _chosen(task: Task, choice: Choice, texts: Mapping[Place, str]) -> Iterator[Stretch]:
    """Quotes first: where a text has a kind of its own, that one counts."""
    for quote in choice.quotes:
        for place, text in texts.items():
            yield from (Stretch(place, start, end, PiiKind.OTHER) for start, end in occurrences(quote, text))
    spans = list(task.pii_spans.order_by("-source"))
    wanted = {text_at(span, texts) for span in spans if span.pk in choice.spans}
    for span in spans:
        if text_at(span, texts).strip() and text_at(span, texts) in wanted:
            yield Stretch(Place.of(span), span.start, span.end, span.kind)


def _joined(stretches: Iterable[Stretch]) -> Iterator[Stretch]:
    """Stretches that overlap, as one, under the first kind that says something."""
    whole: Stretch | None = None
    for each in sorted(stretches, key=lambda each: (str(each.place), each.start, -each.end)):
        if whole and each.place == whole.place and each.start < whole.end:
            kind = each.kind if whole.kind == PiiKind.OTHER else whole.kind
            whole = replace(whole, end=max(whole.end, each.end), kind=kind)
            continue
        if whole:
            yield whole
        whole = each
    if whole:
        yield whole


def _is_glued(text: str, stretch: Stretch) -> bool:
    """Whether a letter or digit touches it, as in scripts that put no space between words."""
    ends = (text[max(0, stretch.start - 1) : stretch.start + 1], text[stretch.end - 1 : stretch.end + 1])
    return any(re.fullmatch(r"\w\w", end) for end in ends)


def preview(task: Task, choice: Choice) -> dict[Place, str]:
    """The texts that would change, as they would be."""
    eraser = eraser_for(task, choice)
    return {place: new for place, text in texts_of(task).items() if (new := eraser.text(text)) != text}


@transaction.atomic
def redact(task_id: int, choice: Choice, *, now: datetime) -> Task:
    """Erases what is chosen for good and returns the task to the queue; what is left of it is scanned anew.

    The hashes of content and prompt stay: the same file imported again finds its task, and the split does not change.

    Raises:
        CannotRedact: the task is not quarantined, nothing is chosen, or its id holds what is to be erased.
        NotInTheText: a quote stands nowhere.
    """
    task = Task.objects.select_for_update().get(pk=task_id)
    if task.state != Task.State.QUARANTINED:
        raise CannotRedact(_("Only a quarantined task can be redacted; %(task)s is not.") % {"task": task})
    eraser = eraser_for(task, choice)
    if eraser.text(task.external_id) != task.external_id:
        raise CannotRedact(
            _("The task's id also contains this text, and the id cannot change. Retire the task instead.")
        )
    _erase(task, eraser)
    task.pii_spans.all().delete()
    # Neither what was erased nor where it stood: this is kept for good.
    audit.record("task.redacted", f"task {task.external_id}", project=task.project)
    Task.objects.filter(pk=task.pk).update(redacted_at=now, pii_scanned_at=None)
    return annotation.decide_quarantine(task.pk, safe_to_use=True, now=now)


def _erase(task: Task, eraser: Eraser) -> None:
    """Every row about the task that may repeat the text."""
    responses = {"text": eraser.text, "external_id": eraser.text, "model": eraser.text, "metadata": eraser.json}
    _rewrite(Task.objects.filter(pk=task.pk), {"conversation": eraser.json, "metadata": eraser.json})
    _rewrite(Response.objects.filter(task=task), responses)
    _rewrite(Annotation.objects.filter(assignment__task=task), {"justification": eraser.text})
    _rewrite(Skip.objects.filter(assignment__task=task), {"note": eraser.text})
    _rewrite(Report.objects.filter(assignment__task=task), {"note": eraser.text})
    _rewrite(Verdict.objects.filter(assignment__task=task), {"comment": eraser.text})
    _rewrite(Adjudication.objects.filter(task=task), {"comment": eraser.text})
    _rewrite(Draft.objects.filter(assignment__task=task), {"form": eraser.json})
    _rewrite(ExpertRating.objects.filter(gold__task=task), {"explanation": eraser.text})


def _rewrite(rows: QuerySet[Any], fields: Mapping[str, Callable[[Any], Any]]) -> None:
    changed = [row for row in rows.only(*fields) if _change(row, fields)]
    rows.model.objects.bulk_update(changed, list(fields))


def _change(row: Any, fields: Mapping[str, Callable[[Any], Any]]) -> bool:
    before = {name: vars(row)[name] for name in fields}
    after = {name: erase(before[name]) for name, erase in fields.items()}
    vars(row).update(after)
    return before != after
