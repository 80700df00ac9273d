"""The columns of a mapping that hold what people said: votes for one of two responses, and scores of each response."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotator.importing.field_checks import BadRow, shown, whole_of_cell
from annotator.models.annotation import TIE
from annotator.refusals import Refusal

FIRST, SECOND = -1, 1
"""Votes say which response is better, and not how much."""
PERSON, LOWEST = "person", "lowest"
MOST_VOTES = 25
_OF_VOTES = ("column", PERSON, "first", "second", "tie")


class BadMapping(Refusal):
    """The mapping is not valid; the message says what to change."""

    status = 400
    code = "bad_mapping"


@dataclass(frozen=True)
class VoteColumn:
    """A column of votes, and how it writes that the first response is better, or the second, or neither.

    The votes are those of the people in the column `person`, or else of one person for the whole column.
    """

    column: str
    person: str = ""
    first: str = "1"
    second: str = "2"
    tie: str = "0"


def read_votes(value: Any) -> tuple[VoteColumn, ...]:
    """Reads the JSON of the columns of votes. Raises BadMapping."""
    if not isinstance(value, list | tuple) or len(value) > MOST_VOTES:
        raise BadMapping(_("votes: Write a list of at most %(most)s columns.") % {"most": MOST_VOTES})
    return tuple(_vote(given, f"votes[{number}]") for number, given in enumerate(value))


def _vote(value: Any, name: str) -> VoteColumn:
    given = {"column": value} if isinstance(value, str) else value
    if not isinstance(given, dict) or not given.get("column") or not given.keys() <= {*_OF_VOTES}:
        text = _('%(name)s: Write an object like {"column": "winner", "first": "1", "second": "2", "tie": "0"}.')
        raise BadMapping(text % {"name": name})
    words = {key: _word(item) for key, item in given.items()}
    vote = VoteColumn(**words)
    if len({vote.first, vote.second, vote.tie}) < 3:
        raise BadMapping(_("%(name)s: first, second and tie must differ.") % {"name": name})
    return vote


def _word(value: Any) -> str:
    return str(whole_of_cell(value)).strip()[:200]


def read_scores(value: Any, name: str) -> dict[str, str]:
    """Reads the column of each attribute's scores. Raises BadMapping."""
    if not isinstance(value, dict) or not all(isinstance(column, str) and column for column in value.values()):
        text = _('%(name)s: Write an object like {"helpfulness": "helpfulness_1"}.')
        raise BadMapping(text % {"name": name})
    return {str(attribute)[:200]: column[:200] for attribute, column in value.items()}


def annotations_of(
    cell: Callable[[str], Any],
    *,
    votes: Sequence[VoteColumn],
    scores: Sequence[Mapping[str, str]],
    person: str,
    rated_by: str,
    lowest: int,
) -> list[dict[str, Any]]:
    """Returns what the row's people said, as our own layout writes it. Raises BadRow.

    `cell` returns the value of a column, None where it is empty; `scores` has the columns of each response. They are
    those of the person in the column `person`, or else of `rated_by`.
    """
    said = [found for vote in votes if (found := _said(cell, vote))]
    rated = [_scores(cell, columns, lowest) for columns in scores]
    if any(rated):
        said.append({"annotator": _person(cell, person) or rated_by, "scores": rated})
    return said


def _said(cell: Callable[[str], Any], vote: VoteColumn) -> dict[str, Any] | None:
    value = cell(vote.column)
    if value is None:
        return None
    meant = {vote.first.lower(): FIRST, vote.second.lower(): SECOND, vote.tie.lower(): TIE}
    word = _word(value).lower()
    if word not in meant:
        known = f"{vote.first}, {vote.second} or {vote.tie}"
        raise BadRow(f"{vote.column} is {shown(value)}: the mapping says that it is {known}", vote.column)
    return {"annotator": _person(cell, vote.person) or vote.column, "preference": meant[word]}


def _person(cell: Callable[[str], Any], column: str) -> str:
    value = cell(column) if column else None
    return "" if value is None else _word(value)


def _scores(cell: Callable[[str], Any], columns: Mapping[str, str], lowest: int) -> dict[str, Any] | None:
    given = {attribute: whole_of_cell(cell(column)) for attribute, column in columns.items()}
    there = {attribute: value for attribute, value in given.items() if value is not None}
    if not there:
        return None
    for attribute, value in there.items():
        if type(value) is not int:
            column = columns[attribute]
            raise BadRow(f"{column} is {shown(value)}: a score is a whole number from {lowest}", column)
    return {attribute: value - lowest for attribute, value in there.items()}
