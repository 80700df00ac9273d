"""Invites people by links: each lets one person, or a number of them, join a project in one role.

A link works until it expires, is revoked or is used up, and only as long as whoever made it manages the project: a
manager who is dismissed cannot come back by a link of their own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Case, F, QuerySet, Value, When
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotator.accounts import passwords
from annotator.accounts.passwords import UnknownLink
from annotator.infrastructure import audit
from annotator.infrastructure.db.storable_text import check_written
from annotator.infrastructure.refusals import Refusal
from annotator.managing import members
from annotator.models import MOST_PLACES, Exclusion, Invitation, InvitationUse, Membership, Project, Role, User
from annotator.models.member import maker_manages

DAYS, MOST_DAYS = 7, 90
LONGEST_NAME = 150
LARGEST_QUOTA = 2**31 - 1
_RANKS = {Role.ANNOTATOR: 0, Role.REVIEWER: 1, Role.MANAGER: 2}


class UnusableInvitation(Refusal):
    """The invitation would let in nobody, too many, or last too long; `errors` names the field."""

    status = 400
    code = "invalid"

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.errors = {field: [text]}


class InvitationEnded(Refusal):
    """The link has expired, was revoked, or is used up."""

    status = 410
    code = "invitation_ended"


class AlreadyMember(Refusal):
    """The person is in the project already, in this role or one that may do more."""

    code = "already_member"


class JoinedBefore(Refusal):
    """The person has joined by this link already, and somebody has changed or ended their membership since."""

    code = "joined_before"


class StillExcluded(Refusal):
    """A manager has excluded this person from the project."""

    code = "excluded"


ENDED = {
    Invitation.State.EXPIRED: gettext_lazy(
        "This invitation has expired. Ask the manager who invited you for a new one."
    ),
    Invitation.State.REVOKED: gettext_lazy(
        "This invitation has been revoked. Ask the manager of the project if you still want to join."
    ),
    Invitation.State.USED: gettext_lazy(
        "This invitation is used up: as many people have joined as it was for. If you are one of them, log in. "
        "Otherwise ask the manager who invited you for a new one."
    ),
}


@dataclass(frozen=True)
class InvitationInput:
    """What an invitation is to be: for whom, in which role, with which limits, and how long it lasts."""

    role: str = Role.ANNOTATOR
    languages: Sequence[str] = ()
    quota: int | None = None
    places: int = 1
    days: int = DAYS
    email: str = ""
    meant_for: str = ""
    request_id: UUID | None = None


@transaction.atomic
def invite(project: Project, wish: InvitationInput, *, by: User, now: datetime) -> tuple[Invitation, str]:
    """Makes an invitation; returns its row and the secret of its link, which is never shown again.

    Raises:
        UnusableInvitation, members.UnknownLanguage: one of the wishes cannot be met.
    """
    _check(wish)
    invitation = Invitation(
        project=project,
        role=wish.role,
        languages=members.language_codes(project, wish.languages),
        quota=wish.quota,
        places=wish.places,
        email=wish.email,
        meant_for=wish.meant_for,
        made_by=by,
        created_at=now,
        expires_at=now + timedelta(days=wish.days),
        request_id=wish.request_id,
    )
    secret = passwords.new_secret()
    invitation.digest = passwords.digest_of(secret)
    invitation.save()
    # Without the address and the name: an entry can never be redacted.
    audit.record(
        "invitation.made",
        str(invitation),
        project=project,
        role=wish.role,
        places=wish.places,
        days=wish.days,
        quota=wish.quota,
        languages=invitation.languages,
    )
    return invitation, secret


def _check(wish: InvitationInput) -> None:
    if wish.role not in Role.values:
        text = _("There is no role “%(role)s”. Write %(known)s.")
        raise UnusableInvitation("role", text % {"role": wish.role[:40], "known": ", ".join(Role.values)})
    if not 1 <= wish.days <= MOST_DAYS:
        raise UnusableInvitation("days", _("An invitation lasts from 1 to %(most)d days.") % {"most": MOST_DAYS})
    if not 1 <= wish.places <= MOST_PLACES:
        raise UnusableInvitation("places", _("A link is for 1 to %(most)d people.") % {"most": MOST_PLACES})
    if wish.role == Role.MANAGER and wish.places != 1:
        raise UnusableInvitation("places", _("A link that makes somebody a manager is for one person."))
    if wish.quota is not None and not 0 <= wish.quota <= LARGEST_QUOTA:
        raise UnusableInvitation("quota", _("A quota is a whole number from 0 on."))
    if wish.email and wish.places != 1:
        raise UnusableInvitation("places", _("A link that is sent by e-mail is for one person."))
    check_written(wish.meant_for, "meant_for", longest=LONGEST_NAME)


@transaction.atomic
def revoke(invitation: Invitation, *, now: datetime) -> None:
    """Ends the link: nobody joins by it any more. Who has joined stays. Doing so twice is harmless."""
    if Invitation.objects.filter(pk=invitation.pk, revoked_at=None).update(revoked_at=now):
        audit.record("invitation.revoked", str(invitation), project=invitation.project, joined=invitation.taken)


def newest_first(project: Project) -> QuerySet[Invitation]:
    """Returns the project's invitations with who made them and who joined."""
    rows = project.invitations.select_related("made_by").prefetch_related("uses__user", "made_by__memberships")
    return rows.order_by("-pk")


def state_of(invitation: Invitation, *, now: datetime) -> Invitation.State:
    """Returns whether people can join by the link, or what has ended it."""
    if invitation.revoked_at:
        return Invitation.State.REVOKED
    if invitation.taken >= invitation.places:
        return Invitation.State.USED
    if invitation.expires_at <= now:
        return Invitation.State.EXPIRED
    return Invitation.State.OPEN if _is_backed(invitation) else Invitation.State.REVOKED


def in_state(rows: QuerySet[Invitation], state: str, *, now: datetime) -> QuerySet[Invitation]:
    """Selects the invitations of which `state_of` says this."""
    stated = Case(
        When(revoked_at__isnull=False, then=Value(Invitation.State.REVOKED)),
        When(taken__gte=F("places"), then=Value(Invitation.State.USED)),
        When(expires_at__lte=now, then=Value(Invitation.State.EXPIRED)),
        When(maker_manages(), then=Value(Invitation.State.OPEN)),
        default=Value(Invitation.State.REVOKED),
    )
    return rows.alias(stated=stated).filter(stated=state)


def _is_backed(invitation: Invitation) -> bool:
    """Returns whether the person who made the link manages the project still."""
    maker = invitation.made_by
    if maker is None or not maker.is_active:
        return False
    # All memberships, because lists read those of all makers at once.
    managed = (one.project_id for one in maker.memberships.all() if one.role == Role.MANAGER)
    return maker.is_superuser or invitation.project_id in managed


# At the door -----------------------------------------------------------------------------------------------


def invitation_of(secret: str, *, now: datetime) -> Invitation:
    """Returns the invitation by which somebody may join.

    Raises:
        UnknownLink: nobody has made such a link, or its project is deleted.
        InvitationEnded: the message says why, and what to do.
    """
    rows = Invitation.objects.filter(project__deleted_at=None).select_related("project", "made_by")
    invitation = rows.filter(digest=passwords.digest_of(secret)).first()
    if invitation is None:
        raise UnknownLink(
            _("This link is not an invitation. Check that you have copied all of it, or ask for a new one.")
        )
    state = state_of(invitation, now=now)
    if state != Invitation.State.OPEN:
        raise InvitationEnded(str(ENDED[state]))
    if invitation.project.archived_at:
        raise InvitationEnded(_("This project is archived, and nobody can join it. Ask its manager."))
    return invitation


def accept(secret: str, user: User, *, now: datetime) -> Membership:
    """Lets the account join by the link. Somebody who is a member already gets the role if it may do more.

    Raises:
        UnknownLink, InvitationEnded: as `invitation_of` does, also where somebody else was quicker.
        AlreadyMember, JoinedBefore, StillExcluded: this account cannot join; no place is taken.
    """
    return _joined(secret, lambda: user, now=now)


def join(secret: str, *, username: str, password: str, now: datetime) -> Membership:
    """Makes an account with a name and a password that its owner has chosen, and lets it join by the link.

    Raises:
        UnknownLink, InvitationEnded: as `accept` does.
        members.RefusedName, members.WeakPassword: the account cannot be made; no place is taken.
    """
    acting = audit.acting_now()
    # The owner acts, although they are logged in only once the account exists.
    with audit.acting(via=acting.via, actor=username):
        return _joined(secret, lambda: members.make_own_account(username, password), now=now)


@transaction.atomic
def _joined(secret: str, account: Callable[[], User], *, now: datetime) -> Membership:
    invitation = invitation_of(secret, now=now)
    project = invitation.project
    # First, as in `members.admit`, which locks the project before the account's name: no two can deadlock.
    members.one_change_at_a_time(project)
    # Of two people who take the last place at once, the second finds none: the second UPDATE waits for the first one's
    # row, and then looks at it anew.
    free = Invitation.objects.filter(pk=invitation.pk, taken__lt=F("places"), revoked_at=None, expires_at__gt=now)
    if not free.update(taken=F("taken") + 1):
        invitation.refresh_from_db(fields=["taken", "revoked_at"])
        raise InvitationEnded(str(ENDED[state_of(invitation, now=now)]))
    user = account()
    if Exclusion.objects.filter(project=project, annotator=user).exists():
        raise StillExcluded(_("You no longer rate in this project. Ask its manager why."))
    known = project.memberships.filter(user=user).first()
    if known and _RANKS[Role(known.role)] >= _RANKS[Role(invitation.role)]:
        raise AlreadyMember(
            _("You are in this project already, as %(role)s.") % {"role": known.get_role_display().lower()}
        )
    if invitation.uses.filter(user=user).exists():
        text = _(
            "You have joined by this link before, and it lets nobody in twice. Ask the project's manager for another."
        )
        raise JoinedBefore(text)
    member, is_new = members.admit(project, username=user.username, role=invitation.role, by=user)
    if is_new:
        members.limit(member, quota=invitation.quota, languages=invitation.languages)
    InvitationUse.objects.create(invitation=invitation, user=user, joined_at=now)
    audit.record("invitation.accepted", str(invitation), project=project, account=user.username, role=invitation.role)
    return member
