"""Turns rows of any columns into rows of our own layout, as a mapping says.

The names of columns may reach into them, as `data.prompt` and `answers.0` do.
"""

import json
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

from django.utils.translation import gettext as _

from annotator.models.annotation import TIE
from annotator.stages.importing.conversations import messages_from_prompt
from annotator.stages.importing.decoders import MOST_COLUMNS
from annotator.stages.importing.field_checks import BadRow, shown, storable_text, whole_of_cell
from annotator.stages.importing.mappings import FIRST, KEPT, SECOND, BadMapping, ColumnMapping, ResponseColumns, word_of
from annotator.stages.importing.task_rows import RawRow

LOOKED_AT = 100
"""The first rows of a file, one of which must have each column that the mapping names."""
LOOKED_AT_BYTES = 4 << 20


class MissingColumn(BadMapping):
    """The mapping names a column that the file does not have; the message names the column."""

    code = "missing_column"


def mapped_rows(rows: Iterator[RawRow], mapping: ColumnMapping) -> Iterator[RawRow]:
    """Returns each row as a row of our own layout, or with the reason why it cannot be one.

    Raises:
        MissingColumn: None of the first rows has one of the mapping's columns.
    """
    first: deque[RawRow] = deque()
    for row in islice(rows, LOOKED_AT):
        first.append(row)
        if sum(one.size for one in first) > LOOKED_AT_BYTES:
            break
    require_columns(mapping, columns_of(first))
    # They are let go one by one, as a large row would stay in memory while the next one is read.
    return map(partial(_mapped, mapping=mapping), chain((first.popleft() for _ in range(len(first))), rows))


def columns_of(rows: Iterable[RawRow]) -> list[str]:
    """Returns the names of the columns of these rows, in the order in which they occur, at most MOST_COLUMNS."""
    names = dict.fromkeys(chain.from_iterable(row.values or () for row in rows))
    return [str(name) for name in islice(names, MOST_COLUMNS)]


def require_columns(mapping: ColumnMapping, columns: Sequence[str]) -> None:
    """Raises MissingColumn unless the columns, which are empty if no row could be read, include the mapping's."""
    missing = [name for name in mapping.columns() if not is_there(name, columns)]
    if columns and missing:
        there = ", ".join(map(shown, columns[:20])) + (", ..." if len(columns) > 20 else "")
        text = _("The mapping names the column %(column)s, which the file lacks. It has %(others)s.")
        raise MissingColumn(text % {"column": shown(missing[0]), "others": there})


def _mapped(raw: RawRow, mapping: ColumnMapping) -> RawRow:
    if raw.values is None:
        return raw
    try:
        values = own_row(raw.values, mapping)
    except BadRow as bad:
        return RawRow(raw.line, None, str(bad), size=raw.size, field=bad.field)
    return RawRow(raw.line, values, size=raw.size, not_finite=raw.not_finite, is_mapped=True)


def own_row(values: Mapping[str, Any], mapping: ColumnMapping) -> dict[str, Any]:
    """Returns the row in our own layout (docs/formats.md). Raises BadRow, which names the column."""
    responses = [made for columns in mapping.responses if (made := _own_response(values, columns, mapping))]
    if not responses:
        names = ", ".join(columns.text for columns in mapping.responses)
        raise BadRow(f"no response has a text: {names}", mapping.responses[0].text)
    if mapping.prompt_text:
        messages: Any = [{"role": "user", "content": mapping.prompt_text}]
    elif mapping.prompt:
        messages = messages_from_prompt(storable_text(cell(values, mapping.prompt), mapping.prompt))
    else:
        messages = of_json(cell(values, mapping.messages))
    row: dict[str, Any] = {"messages": messages, "responses": responses}
    if identity := _optional(values, mapping.id):
        row["id"] = identity
    if language := _optional(values, mapping.language):
        row["lang"] = language
    if (priority := _optional(values, mapping.priority)) is not None:
        row["priority"] = whole_of_cell(priority)
    rest = unnamed(values, set(mapping.columns())) if mapping.rest == KEPT else {}
    own = of_json(_optional(values, mapping.metadata))
    if metadata := {**rest, **own} if isinstance(own, dict) else rest if own is None else own:
        row["metadata"] = metadata
    if said := _annotations(values, mapping):
        row["annotations"] = said
    return row


def _own_response(values: Mapping[str, Any], columns: ResponseColumns, mapping: ColumnMapping) -> dict[str, Any] | None:
    if mapping.fewer and _optional(values, columns.text) is None:
        return None
    made: dict[str, Any] = {"text": storable_text(cell(values, columns.text), columns.text)}
    if model := _optional(values, columns.model) or columns.model_name:
        made["model"] = model
    if identity := _optional(values, columns.id):
        made["id"] = identity
    return made


def _annotations(values: Mapping[str, Any], mapping: ColumnMapping) -> list[dict[str, Any]]:
    """Returns what the row's people said, votes and scores, as our own layout writes it. Raises BadRow."""
    said: list[dict[str, Any]] = []
    for vote in mapping.votes:
        if (value := _optional(values, vote.column)) is None:
            continue
        meant = {vote.first.lower(): FIRST, vote.second.lower(): SECOND, vote.tie.lower(): TIE}
        word = word_of(value).lower()
        if word not in meant:
            known = f"{vote.first}, {vote.second} or {vote.tie}"
            raise BadRow(f"{vote.column} is {shown(value)}: the mapping says that it is {known}", vote.column)
        said.append({"annotator": _person(values, vote.person) or vote.column, "preference": meant[word]})
    rated = [_scores(values, columns.scores, mapping.lowest) for columns in mapping.responses]
    if any(rated):
        said.append({"annotator": _person(values, mapping.person) or mapping.rated_by, "scores": rated})
    return said


def _person(values: Mapping[str, Any], column: str) -> str:
    value = _optional(values, column)
    return "" if value is None else word_of(value)


def _scores(values: Mapping[str, Any], columns: Mapping[str, str], lowest: int) -> dict[str, int] | None:
    scores = {}
    for attribute, column in columns.items():
        if (value := whole_of_cell(_optional(values, column))) is None:
            continue
        if type(value) is not int:
            raise BadRow(f"{column} is {shown(value)}: a score is a whole number from {lowest}", column)
        scores[attribute] = value - lowest
    return scores or None


def _optional(values: Mapping[str, Any], column: str) -> Any:
    """Returns the value, or None where the row has none or an empty one."""
    try:
        value = cell(values, column) if column else None
    except BadRow:
        return None
    return None if isinstance(value, str) and not value.strip() else value


def is_there(name: str, columns: Collection[str]) -> bool:
    """Returns whether a file of these columns has the one of this name, or the one into which the name reaches."""
    return name in columns or name.partition(".")[0] in columns


def cell(values: Mapping[str, Any], column: str) -> Any:
    """Returns the value of a column, or of a field inside it, such as `data.prompt` or `answers.0`. Raises BadRow."""
    if column in values:
        return values[column]
    value: Any = values
    for name in column.split("."):
        value = of_json(value)
        if isinstance(value, list) and name.isdecimal() and int(name[:9]) < len(value):
            value = value[int(name)]
        elif isinstance(value, Mapping) and name in value:
            value = value[name]
        else:
            raise BadRow(f"the column {column} is missing", column)
    return value


def unnamed(values: Mapping[str, Any], named: Collection[str]) -> dict[str, Any]:
    """Returns the columns that are not named; one into which names reach without what they reach."""
    paths = [name.split(".") for name in named if name not in values]
    kept = {}
    for column, value in values.items():
        inside = [path[1:] for path in paths if path[0] == column]
        left = _unreached(value, inside)
        if column not in named and (left is not None or not inside):
            kept[column] = left
    return kept


def _unreached(value: Any, paths: Sequence[Sequence[str]]) -> Any:
    """Returns the value without what the paths reach in it; None if nothing is left."""
    if not all(paths):
        return None
    value = of_json(value) if paths else value
    if not paths or not isinstance(value, Mapping | list):
        return value
    items = value.items() if isinstance(value, Mapping) else enumerate(value)
    left = {key: _unreached(item, [path[1:] for path in paths if path[0] == str(key)]) for key, item in items}
    left = {key: item for key, item in left.items() if item is not None}
    return (left if isinstance(value, Mapping) else list(left.values())) or None


def of_json(value: Any) -> Any:
    """Reads a list or an object that is JSON text in a cell. Any other value stays, and later checks judge it."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
