"""Invites many people at once, from lines of `name,role,languages,quota` or of e-mail addresses.

All lines become invitations, or none: a list with a mistake is corrected and sent again without doubling the others.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.spreadsheets import csv_lines, text_of_cell
from annotator.infrastructure.web.query_parameters import as_number
from annotator.managing import invitations
from annotator.managing.invitations import DAYS, LONGEST_NAME, InvitationInput
from annotator.models import Invitation, Project, Role, User

MOST_LINES = 500
HEADER = ("name", "role", "languages", "quota")
_LANGUAGES_BETWEEN = str.maketrans(";|/", "   ")


@dataclass(frozen=True)
class LineError:
    """What is wrong with a line; lines are counted from 1, the header included."""

    line: int
    text: str

    def __str__(self) -> str:
        return _("Line %(line)d: %(text)s") % {"line": self.line, "text": self.text}


class WrongLines(Refusal):
    """Nobody was invited, because some lines are wrong."""

    status = 400
    code = "wrong_lines"

    def __init__(self, wrong: Sequence[LineError]) -> None:
        super().__init__(
            ngettext(
                "Nobody was invited, because %(number)d line is wrong. Correct it and send the list again.",
                "Nobody was invited, because %(number)d lines are wrong. Correct them and send the list again.",
                len(wrong),
            )
            % {"number": len(wrong)}
        )
        self.wrong = wrong
        self.errors = {"lines": [str(error) for error in wrong]}


@dataclass(frozen=True)
class Invited:
    """An invitation with its link, which is shown this once."""

    invitation: Invitation
    secret: str


@transaction.atomic
def invite_all(project: Project, text: str, *, days: int = DAYS, by: User, now: datetime) -> list[Invited]:
    """Makes an invitation for each line, for one person each.

    Raises:
        WrongLines: names every line that is wrong; then no line has become an invitation.
    """
    invited, wrong = [], []
    for line, cells in _lines(text):
        try:
            invited.append(Invited(*invitations.invite(project, _wish(cells, days=days), by=by, now=now)))
        except Refusal as refused:
            wrong.append(LineError(line, str(refused)))
    if not invited and not wrong:
        wrong = [LineError(1, _("There is nobody in this list."))]
    if wrong:
        raise WrongLines(wrong)
    return invited


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yields the lines that name somebody, with their numbers. Raises WrongLines for a text that is no such list."""
    if "\0" in text:
        raise WrongLines([LineError(1, _("This is not plain text. Save the table as CSV."))])
    # Spreadsheets write semicolons where the comma is in numbers.
    first = text.split("\n", 1)[0]
    separator = ";" if ";" in first and "," not in first else "," if "," in first or "\t" not in first else "\t"
    rows = csv.reader(text.removeprefix("\ufeff").splitlines(), delimiter=separator)
    seen = 0
    try:
        for row in rows:
            cells = [text_of_cell(cell.strip()) for cell in row]
            if not any(cells) or tuple(cell.lower() for cell in cells[:2]) == HEADER[:2]:
                continue
            seen += 1
            if seen > MOST_LINES:
                text = _("A list has at most %(most)d people. Send the others in a list of their own.")
                raise WrongLines([LineError(rows.line_num, text % {"most": MOST_LINES})])
            yield rows.line_num, cells
    except csv.Error as unreadable:
        raise WrongLines([LineError(rows.line_num, str(unreadable))]) from unreadable


def _wish(cells: Sequence[str], *, days: int) -> InvitationInput:
    name, role, languages, quota, *more = (*cells, "", "", "", "")[: max(len(cells), len(HEADER))]
    if any(more):
        raise invitations.UnusableInvitation(
            "lines", _("There are more than four values. Write a space between languages.")
        )
    if len(name) > LONGEST_NAME:
        raise invitations.UnusableInvitation(
            "name", _("This name is longer than %(most)d characters.") % {"most": LONGEST_NAME}
        )
    number = as_number(quota, most=invitations.LARGEST_QUOTA) if quota else None
    if quota and number is None:
        raise invitations.UnusableInvitation("quota", _("“%(quota)s” is not a whole number.") % {"quota": quota[:40]})
    return InvitationInput(
        role=role.lower() or Role.ANNOTATOR.value,
        languages=languages.translate(_LANGUAGES_BETWEEN).split(),
        quota=number,
        days=days,
        email=_email(name) if "@" in name else "",
        meant_for=name,
    )


def _email(text: str) -> str:
    try:
        validate_email(text)
    except ValidationError:
        raise invitations.UnusableInvitation(
            "name", _("“%(text)s” is not an e-mail address.") % {"text": text[:80]}
        ) from None
    return text


def as_csv(rows: Sequence[tuple[Invitation, str]]) -> str:
    """Returns the invitations and their links as a table that spreadsheets can open."""
    lines = (
        {
            "name": invitation.meant_for or invitation.email,
            "role": invitation.role,
            "languages": " ".join(invitation.languages),
            "quota": "" if invitation.quota is None else invitation.quota,
            "link": link,
            "expires_at": invitation.expires_at.isoformat(timespec="minutes"),
        }
        for invitation, link in rows
    )
    return b"".join(csv_lines(lines, [*HEADER, "link", "expires_at"])).decode()
