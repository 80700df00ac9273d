"""Lets people who have forgotten their password choose a new one, by a link that somebody makes for them.

Whoever makes such a link could use it, so it must open nothing that its maker may not do anyway. A manager makes one
only for an account that is in projects of their own, manages none, and is not staff; administrators make one for
anybody.
"""

from datetime import datetime, timedelta

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from annotator.accounts import passwords
from annotator.accounts.passwords import UnknownLink
from annotator.infrastructure import audit
from annotator.infrastructure.refusals import Refusal
from annotator.managing.members import WeakPassword
from annotator.models import PasswordLink, Project, Role, User

HOURS = 24


class PasswordLinkEnded(Refusal):
    """The link has expired, or its maker may no longer make it."""

    status = 410
    code = "password_link_ended"


def why_not(account: User, *, by: User, project: Project | None) -> str:
    """Returns why `by` must not make a link for the account, or an empty text. Without a project: an administrator."""
    if not account.is_active:
        return _("This account is closed. An administrator can open it again.")
    if by.is_superuser and by.is_active:
        return ""
    if account == by:
        return _("This is your own account. Change its password in the settings.")
    if account.is_staff or account.is_superuser:
        return _("This account may use the admin, so only an administrator can make a link for it.")
    standing = list(account.memberships.filter(project__deleted_at=None))
    here = {member.project_id for member in standing}
    managed = set(Project.objects.managed_by(by).filter(pk__in=here).values_list("pk", flat=True))
    if not by.is_active or project is None or project.pk not in managed:
        return _("Only managers of a project can make a link, and only for its members.")
    if any(Role.MANAGER in (member.role, member.offered_role) for member in standing):
        return _("This person manages a project or is asked to, so only an administrator can make a link.")
    if here - managed:
        return _("This person is also in a project that you do not manage, so only an administrator can make a link.")
    return ""


@transaction.atomic
def make(account: User, *, by: User, project: Project, now: datetime) -> tuple[PasswordLink, str]:
    """Makes a link that lasts HOURS; an earlier one ends. Returns its row and its secret, which is never shown again.

    Raises:
        Refusal: the message says why.
    """
    if refused := why_not(account, by=by, project=project):
        raise Refusal(refused, code="for_administrators", status=403)
    secret = passwords.new_secret()
    row, _is_new = PasswordLink.objects.update_or_create(
        account=account,
        defaults={
            "project": project,
            "digest": passwords.digest_of(secret),
            "made_by": by,
            "created_at": now,
            "expires_at": now + timedelta(hours=HOURS),
        },
    )
    audit.record("password.link_made", f"account {account.username}", project=project, hours=HOURS)
    return row, secret


def link_of(secret: str, *, now: datetime) -> PasswordLink:
    """Returns the link by which somebody may choose a password.

    Raises:
        UnknownLink: nobody has made such a link, or it was used, or replaced by a later one.
        PasswordLinkEnded: it has expired, or whoever made it may no longer make it.
    """
    rows = PasswordLink.objects.select_related("account", "made_by", "project")
    link = rows.filter(digest=passwords.digest_of(secret)).first()
    if link is None:
        raise UnknownLink(_("This link is unknown. It was used already, or there is a newer one. Ask for a new link."))
    if link.expires_at <= now:
        raise PasswordLinkEnded(_("This link has expired. Ask for a new one."))
    # Asked again: who manages nothing yet when the link is made may manage a project when it is used.
    if why_not(link.account, by=link.made_by, project=link.project):
        raise PasswordLinkEnded(_("This link is no longer valid. Ask an administrator for a new one."))
    return link


@transaction.atomic
def choose(secret: str, password: str, *, now: datetime) -> User:
    """Sets the password of the link's account, which ends the link, its sessions and its tokens.

    Raises:
        UnknownLink, PasswordLinkEnded: as `link_of` does.
        WeakPassword: the password breaks the rules; the link stays.
    """
    # Locked: of two who use the link at once, the second waits and finds it gone.
    PasswordLink.objects.select_for_update().filter(digest=passwords.digest_of(secret)).first()
    account = link_of(secret, now=now).account
    try:
        validate_password(password, account)
    except ValidationError as weak:
        raise WeakPassword(" ".join(weak.messages)) from weak
    account.set_password(password)
    account.must_change_password = False
    acting = audit.acting_now()
    with audit.acting(via=acting.via, actor=account.username):
        account.save(update_fields=["password", "must_change_password"])
    return account
