"""The form by which a manager chooses what is erased from a quarantined task."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.functional import cached_property
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from annotator.infrastructure.refusals import Refusal
from annotator.models import PiiKind, Task
from annotator.stages.pii import redaction
from annotator.stages.pii.highlights import Mark, marked
from annotator.stages.pii.texts import Place, text_at, texts_of


@dataclass
class Marked:
    """A text that is marked in a task, once however often it is marked, and by whom."""

    span: int
    text: str
    kind: str
    by: list[str]

    def title(self) -> str:
        return str(PiiKind(self.kind).label)


class RedactForm(forms.Form):
    """Ticks every marked text at first and takes others by name. It always shows what would become of the task."""

    spans = forms.TypedMultipleChoiceField(coerce=int, required=False, widget=forms.CheckboxSelectMultiple)
    quotes = forms.CharField(required=False, max_length=20_000, widget=forms.Textarea)
    previewed = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, task: Task, data: Any = None) -> None:
        self.task, prefix = task, f"task-{task.pk}"
        self.marked = marked_in(task)
        # Bound from the start, so that the first page already shows the preview.
        first = {f"{prefix}-spans": [mark.span for mark in self.marked]} if self.marked else None
        super().__init__(first if data is None else data, prefix=prefix)
        self.fields["spans"].choices = [(mark.span, mark) for mark in self.marked]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        try:
            self.cleaned_data["preview"] = redaction.preview(self.task, self.choice)
        except Refusal as refused:
            self.add_error(None, str(refused))
        return data

    @cached_property
    def choice(self) -> redaction.Choice:
        lines = self.cleaned_data.get("quotes", "").splitlines()
        quotes = [line.strip() for line in lines if line.strip()]
        return redaction.Choice(self.cleaned_data.get("spans", []), quotes)

    def key(self) -> str:
        """Returns a digest that identifies the choice whose preview is shown; it reveals no text of the task."""
        content = [sorted(self.choice.spans), list(self.choice.quotes)] if self.is_valid() else []
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def is_confirmed(self) -> bool:
        """Returns whether exactly this choice was previewed."""
        return self.is_valid() and self.cleaned_data["previewed"] == self.key()

    def preview(self) -> list[tuple[str, SafeString]]:
        """Returns each text that would change: the name of its place, and the text as it would be."""
        if not self.is_valid():
            return []
        # Escaped here, before the marks go in: a task's text is anybody's.
        placeholders = [Mark(text, kind) for kind, text in redaction.PLACEHOLDERS.items()]
        texts = self.cleaned_data["preview"].items()
        return [(self._name(place), mark_safe(marked(escape(text), placeholders))) for place, text in texts]

    def _name(self, place: Place) -> str:
        if place.turn is not None:
            role = self.task.conversation[place.turn]["role"]
            return _("Turn %(number)s (%(role)s)") % {"number": place.turn + 1, "role": role}
        positions = dict(self.task.responses.values_list("pk", "position"))
        return _("Response %(number)s") % {"number": positions[place.response or 0] + 1}


def unconfirmed(forms: Sequence[RedactForm], data: Mapping[str, Any]) -> str:
    """Returns why nothing is erased yet, or an empty text where everything is confirmed.

    What is erased cannot be brought back: it takes the tick, and a choice equal to the one in the preview.
    """
    if "understood" not in data:
        return _("Nothing has been erased. First confirm that you know what is lost.")
    if all(form.is_confirmed() for form in forms):
        return ""
    if all(form.is_valid() for form in forms):
        return _("The selection has changed. Check the preview, then confirm.")
    return _("Nothing has been erased. Correct what is marked below.")


def marked_in(task: Task) -> list[Marked]:
    """Returns the marked texts in the order of the task, each once, with those who marked it."""
    texts, marked = texts_of(task), dict[str, Marked]()
    for span in task.pii_spans.select_related("marked_by").in_order():
        text = text_at(span, texts)
        if not text.strip():
            continue
        mark = marked.setdefault(text, Marked(span.pk, text, span.kind, []))
        by = str(span.marked_by) if span.marked_by else _("found by patterns")
        mark.by += [by] if by not in mark.by else []
        # Another mark of the same text may name its kind.
        mark.kind = span.kind if mark.kind == PiiKind.OTHER else mark.kind
    return list(marked.values())
