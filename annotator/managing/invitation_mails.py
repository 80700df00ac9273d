"""Sends invitations by e-mail, where the installation names a mail server (EMAIL_URL)."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from smtplib import SMTPException
from time import monotonic

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.utils.translation import gettext as _

from annotator.infrastructure.db.clock import database_now
from annotator.models import Invitation

PATIENCE = 20
"""Seconds that a manager waits for the mails of a list. What is not sent by then is handed over by its link."""

_log = logging.getLogger(__name__)


def are_sent() -> bool:
    """Returns whether this installation sends mails at all."""
    return bool(settings.EMAIL_HOST)


def send(invited: Sequence[tuple[Invitation, str]]) -> list[Invitation]:
    """Sends each invitation that has an address its link, and notes when; returns those that could not be sent."""
    wanted = [(invitation, link) for invitation, link in invited if invitation.email]
    if not wanted or not are_sent():
        return []
    end, left = monotonic() + PATIENCE, {invitation.pk: invitation for invitation, _link in wanted}
    with _connection() as connection:
        for invitation, link in wanted:
            if monotonic() > end:
                break
            if connection and _sent(invitation, link, connection):
                del left[invitation.pk]
    return list(left.values())


@contextmanager
def _connection() -> Iterator[BaseEmailBackend | None]:
    """Opens one connection for all mails; None if the server is out of reach."""
    connection = get_connection()
    try:
        connection.open()
    except (SMTPException, OSError) as refused:
        _log.warning("the mail server cannot be reached: %s", refused)
        yield None
        return
    try:
        yield connection
    finally:
        connection.close()


def _sent(invitation: Invitation, link: str, connection: BaseEmailBackend) -> bool:
    try:
        _mail(invitation, link, connection).send()
    except (SMTPException, OSError) as refused:
        _log.warning("%s was not sent: %s", invitation, refused)
        return False
    Invitation.objects.filter(pk=invitation.pk).update(mailed_at=database_now())
    return True


def _mail(invitation: Invitation, link: str, connection: BaseEmailBackend) -> EmailMessage:
    # A line break in a subject would begin another header.
    project = " ".join(invitation.project.name.split())
    text = _(
        "You are invited to the project “%(project)s” on Rewardloop, as %(role)s.\n\n"
        "Open this link to join. It is valid until %(end)s and lets in one person, so do not pass it on:\n\n"
        "%(link)s\n\n"
        "If you did not expect this invitation, ignore this e-mail."
    ) % {
        "project": project,
        "role": invitation.get_role_display().lower(),
        "end": f"{invitation.expires_at:%Y-%m-%d %H:%M} UTC",
        "link": link,
    }
    subject = _("Invitation to %(project)s") % {"project": project}
    return EmailMessage(subject, text, to=[invitation.email], connection=connection)
