"""{{ score|level }} gives a score as people read it, from 1 up; stored, sent and exported it counts from 0.

{% levels field %} gives the radio buttons of a scale. It is written in Python because a template takes a millisecond
for fifty of them. A scale of a few short words, such as No and Yes, shows the words where others show numbers;
{{ field|worded }} says whether it does. For a reviewer, {% levels field said %} and {% said_by said answer %} name the
raters who gave an answer.
"""

from typing import overload

from django import template
from django.forms import BoundField
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from annotator.models import Rating, UnsafeCategory
from annotator.pages.rating.rating_form import CONFIDENCE_TEXTS, SAFETY_TEXTS
from annotator.stages.review.rating_sheets import Said

register = template.Library()
MOST_WORDED = 3
LONGEST_WORD = 14

_LEVEL = """<label class="level"><input type="radio" name="{}" value="{}"{}>
      <span class="number">{}</span><span class="text">{}</span>{}</label>
    """


@overload
def level(score: int) -> int: ...
@overload
def level(score: float) -> float: ...
@overload
def level(score: None) -> None: ...
@register.filter
def level(score: float | None) -> float | None:
    """Returns the level that stands for a score; None where no score was given."""
    return None if score is None else score + 1


@register.filter
def confidence_text(confidence: int | None) -> str:
    return "" if confidence is None else str(CONFIDENCE_TEXTS[confidence])


@register.filter
def safety_text(rating: Rating | None) -> str:
    if rating is None or rating.safe is None:
        return ""
    if rating.safe:
        return str(SAFETY_TEXTS[1])
    known = rating.unsafe_category in UnsafeCategory.values
    return f"{SAFETY_TEXTS[0]}: {UnsafeCategory(rating.unsafe_category).label}" if known else str(SAFETY_TEXTS[0])


@register.filter
def worded(field: BoundField) -> bool:
    texts = [text for _, text in field.field.widget.choices]
    return len(texts) <= MOST_WORDED and all(0 < len(text) <= LONGEST_WORD for text in texts)


@register.simple_tag
def said_by(said: Said | None, answer: int | str) -> SafeString:
    """Returns the numbers of the raters who gave an answer; nothing where nobody did."""
    numbers = said.by_answer.get(int(answer), "") if said else ""
    if not numbers:
        return SafeString("")
    text = _("given by raters %(numbers)s") % {"numbers": numbers}
    digits = format_html('<span aria-hidden="true">{}</span><span class="visually-hidden">, {}</span>', numbers, text)
    return format_html('<small class="said-by" title="{}">{}</small> ', text, digits)


@register.simple_tag
def levels(field: BoundField, said: Said | None = None) -> SafeString:
    chosen = str(field.value())
    by_words = worded(field)
    choices = enumerate(field.field.widget.choices, 1)
    rows = (
        (
            field.html_name,
            value,
            SafeString(" checked") if str(value) == chosen else "",
            text if by_words else number,
            "" if by_words else text,
            said_by(said, value),
        )
        for number, (value, text) in choices
    )
    return format_html_join("", _LEVEL, rows)
