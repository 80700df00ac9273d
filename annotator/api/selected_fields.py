"""The query parameter `fields`: an answer holds only the fields that it names."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from drf_spectacular.utils import OpenApiParameter

from annotator.web.query_parameters import BadParameter

NAME = "fields"
PARAMETER = OpenApiParameter(NAME, description="only these fields, separated by commas")


def selection(names: str, *, known: Iterable[str]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Returns a function that takes the named fields, separated by commas, out of a row.

    Raises BadParameter for a name that is not among the known ones.
    """
    wanted, offered = {name.strip() for name in names.split(",")} - {""}, list(known)
    if not wanted or wanted - set(offered):
        raise BadParameter(NAME, f"Write names out of: {', '.join(offered)}.")
    return lambda row: {name: value for name, value in row.items() if name in wanted}
