"""{% cells row %} gives the cells of a segment, {% said row %} what raters said in them, only to be read.

They are written in Python, as there may be a thousand of them.
"""

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from annotator.pages.rating.segments_form import SegmentRow

register = template.Library()

_CELL = """<td class="cell-of" data-name="{}" data-question><input class="cell{}" name="{}" value="{}" \
data-levels="{}" data-aspect="{}" aria-label="{}" maxlength="1" autocomplete="off" inputmode="numeric">{}</td>"""
_SAID = """<td class="cell-of{}" data-name="{}"><span class="levels-said">{}</span>{}</td>"""
_LEVELS = """<span class="levels-said{}">{}</span>"""
_AGREED = """<strong class="agreed"><span class="visually-hidden">{} </span>{}</strong>"""


@register.simple_tag
def cells(row: SegmentRow) -> SafeString:
    label = _("Segment %(number)s, %(aspect)s")
    names = [cell.aspect.shown_name for cell in row.cells]
    return format_html_join(
        "",
        _CELL,
        (
            (
                name,
                " refused" if cell.refused else "",
                cell.name,
                cell.value,
                len(cell.aspect.levels),
                cell.aspect.key,
                label % {"number": row.number, "aspect": name},
                format_html(_LEVELS, " disputed" if cell.disputed else "", cell.rater_levels)
                if cell.rater_levels
                else "",
            )
            for cell, name in zip(row.cells, names, strict=True)
        ),
    )


@register.simple_tag
def said(row: SegmentRow) -> SafeString:
    label = _("Label")
    cells = (
        (
            " disputed" if cell.disputed else "",
            cell.aspect.shown_name,
            cell.rater_levels,
            format_html(_AGREED, label, cell.label_level) if cell.label_level else "",
        )
        for cell in row.cells
    )
    return format_html_join("", _SAID, cells)
