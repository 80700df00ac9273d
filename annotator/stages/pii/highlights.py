"""Marks personal information in rendered HTML, wherever the detected texts occur within a text node."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from annotator.infrastructure.web.visible_text import BLANK, visible_text, wrapped
from annotator.models import PiiKind, Task
from annotator.stages.pii.texts import likeness, text_at, texts_of

MOST = 300
"""Most different texts that are marked in one task. Marking more would hold up the page."""

_WRITTEN = {"&": "&{5}", "<": "<{4}", ">": ">{4}", '"': '(?:"{6}|")', "'": "(?:'{6}|'{5}|')"}


@dataclass(frozen=True)
class Mark:
    """A text to be marked, its kind of personal information, and the first span that has this text."""

    text: str
    kind: str
    span: int = 0

    def title(self) -> str:
        return str(PiiKind(self.kind).label)


def marks_of(task: Task) -> list[Mark]:
    """Returns marks for what the patterns found in the task. Marks by other annotators are for managers only."""
    spans = list(task.pii_spans.detected().in_order())
    texts = texts_of(task) if spans else {}
    marks: dict[str, Mark] = {}
    for span in spans:
        if (text := text_at(span, texts)).strip():
            marks.setdefault(text, Mark(text, span.kind, span.pk))
    return list(marks.values())[:MOST]


def marked(html: str, marks: Sequence[Mark]) -> str:
    """Wraps each occurrence of the marks' texts in a `<mark>`. Tags, attributes and formulas stay unchanged."""
    if not marks:
        return html
    plain, places, at = visible_text(html), [], 0
    # Of overlapping stretches the first one is marked, and of those that begin together the longest.
    for start, end, mark in sorted(_stretches(plain, marks), key=lambda stretch: (stretch[0], -stretch[1])):
        if start < at:
            continue
        places.append((start, end, f'<mark class="pii" title="{escape(mark.title())}">'))
        at = end
    return wrapped(html, places)


def _stretches(plain: str, marks: Sequence[Mark]) -> Iterator[tuple[int, int, Mark]]:
    for mark in marks:
        # An empty pattern would match everywhere, and one with blanks would match tags.
        if BLANK in mark.text or not mark.text.strip():
            continue
        # Characters that HTML writes as entities are repeated to their length.
        parts = re.split(r"""(["'<>&])""", likeness(mark.text, whole_words=False))
        after = r"(?!\w)" if re.search(r"\w\s*$", mark.text) else ""
        for match in re.finditer("".join(_WRITTEN.get(part, part) for part in parts) + after, plain):
            start, end = match.span()
            # Checked here, not in the pattern: the search is several times as fast if the pattern begins with letters.
            if not re.match(r"\w\w", plain[max(0, start - 1) : start + 1]):
                yield start, end, mark
