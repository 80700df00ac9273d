"""Columns by names that may reach into them, such as `data.prompt` and `answers.0`."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from annotator.importing.field_checks import BadRow


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
