"""Joins and splits the segments of a half-filled form. Answers go along where they still say the same."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from annotator.pages.rating.rating_form import RatingForm
from annotator.pages.rating.segments_form import SegmentTable, cell_name, cut_value, place_of
from annotator.stages.annotation import require_room
from annotator.stages.segmenting import CannotRecut, Range, joined, split

_KINDS = ("comment", "quote")


def recut(
    form: RatingForm, values: Mapping[str, Any], *, join: str = "", divide: str = "", quote: str = ""
) -> dict[str, Any]:
    """Returns the form's values with two segments joined, or one divided where the quoted text begins in it.

    `join` and `divide` name a segment as its cells do: the response's number, a hyphen and the index. Joined segments
    keep the answers that both have in common.

    Raises:
        CannotRecut: there is no such segment, or it cannot be joined or divided so.
        NotAPartition: the task has as many segments as it may have.
    """
    table, index = _named(form, join or divide)
    if join:
        cut = joined(table.cut, index, last=index + 1)
        sources: list[Sequence[int]] = [[place] for place in range(len(table.cut))]
        sources[index : index + 2] = [[index, index + 1]]
    else:
        require_room([1, *(len(one.cut) for one in form.tables)])
        if not 0 <= index < len(table.cut):
            raise CannotRecut(_("This segment is no longer there. Reload the page."))
        segment = table.cut[index]
        at = table.response.text.find(quote.strip(), segment.start, segment.end) if quote.strip() else -1
        if at < 0:
            raise CannotRecut(
                _("Select where the second part begins: a few of its words, as they stand in the source.")
            )
        cut = split(table.cut, table.response.text, at=at)
        sources = [[place] for place in range(len(table.cut))]
        sources.insert(index, [index])
    return _renamed(table, values, cut, sources)


def _named(form: RatingForm, name: str) -> tuple[SegmentTable, int]:
    response, _hyphen, index = name.partition("-")
    for table in form.tables:
        if str(table.response.public_id) == response and index.isdecimal() and len(index) < 5:
            return table, int(index)
    raise CannotRecut(_("This segment is no longer there. Reload the page."))


def _renamed(
    table: SegmentTable, values: Mapping[str, Any], cut: Sequence[Range], sources: Sequence[Sequence[int]]
) -> dict[str, Any]:
    """Returns the values with the cells of the table under the numbers that their segments have now."""
    number = table.response.public_id
    prefixes = tuple(f"{kind}-{number}-" for kind in ("seg", *_KINDS))
    result = {name: value for name, value in values.items() if not name.startswith(prefixes)}
    result[table.cut_name] = cut_value(cut)
    for index, old in enumerate(sources):
        for aspect in table.aspects:
            given = {str(values.get(cell_name(place_of(number, place), aspect.key)) or "") for place in old}
            result[cell_name(place_of(number, index), aspect.key)] = given.pop() if len(given) == 1 else ""
        # A divided segment's comment stays with its first part.
        if index == 0 or sources[index - 1] != old:
            for kind in _KINDS:
                texts = [str(values.get(f"{kind}-{place_of(number, place)}") or "") for place in old]
                result[f"{kind}-{place_of(number, index)}"] = "\n".join(
                    filter(None, texts if kind == "comment" else texts[:1])
                )
    return result
