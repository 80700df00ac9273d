"""Brings people into a project, changes their roles, and ends memberships. Managers make the accounts: no open sign-up.

Nobody becomes a manager without agreeing to it: an account that exists already gets an offer instead.
"""

from collections.abc import Sequence
from datetime import datetime
from types import EllipsisType

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.db import locks
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.stale_edits import Seen, require_as_seen
from annotator.models import Assignment, Membership, Project, Role, Tally, User, account_names
from annotator.reading.languages import code_of
from annotator.stages import assignment


class WeakPassword(Refusal):
    """The password breaks the rules for passwords."""

    status = 400
    code = "weak_password"


class RefusedName(Refusal):
    """The name could be mistaken for another account's, or is reserved for raters that are not people."""

    status = 400
    code = "refused_name"


class LastManager(Refusal):
    """Without this manager nobody could manage the project."""

    code = "last_manager"


class UnknownLanguage(Refusal):
    """No task can have this language, so an annotator who rates only this one would get no task."""

    status = 400
    code = "invalid"

    def __init__(self, given: str, *, meant: str = "") -> None:
        hint = (
            _("Write %(code)s.") % {"code": meant}
            if meant
            else _("Write codes as tasks have them, such as en, de or pt-br.")
        )
        said = _("'%(given)s' is not a language's code.") % {"given": given}
        super().__init__(f"{said} {hint}")
        self.errors = {"languages": [str(self)]}


class NothingOffered(Refusal):
    """The offer was withdrawn, or has been answered already."""

    code = "nothing_offered"

    def __init__(self) -> None:
        super().__init__(_("There is no offer to answer. It was withdrawn, or you have already answered it."))


@transaction.atomic
def admit(
    project: Project,
    *,
    username: str,
    role: str | None = None,
    password: str | None = None,
    by: User | None = None,
) -> tuple[Membership, bool]:
    """Brings the user into the project, and makes the account if the name is new and a password is sent with it.

    Without a role, a new member annotates and an old one keeps their role. Returns the membership and whether it is
    new. A password never changes an account that exists, and such an account is only offered the role of manager.

    Raises:
        Refusal, RefusedName, WeakPassword: the account cannot be made.
        LastManager: the new role would leave the project without a manager.
    """
    one_change_at_a_time(project)
    user, is_new = _account(username, password)
    member, created = Membership.objects.get_or_create(project=project, user=user)
    if created:
        audit.record("membership.created", _named(member), project=project, role=member.role)
    if role:
        give_role(member, role, agreed=is_new or user == by)
    return member, created


@transaction.atomic
def appoint_founder(project: Project, user: User) -> Membership:
    """Makes the creator of a new project its manager."""
    member = Membership.objects.create(project=project, user=user, role=Role.MANAGER)
    follow_roles(user)
    return member


@transaction.atomic
def give_role(member: Membership, role: str, *, agreed: bool = False) -> None:
    """Gives the member a role, or offers them the role of manager if they have not agreed to it.

    Any other role withdraws an offer.

    Raises:
        LastManager: nobody else manages the project.
    """
    one_change_at_a_time(member.project)
    member.refresh_from_db(fields=["role", "offered_role"])
    if role == Role.MANAGER and member.role != Role.MANAGER and not agreed:
        if member.offered_role != role:
            member.offered_role = role
            member.save(update_fields=["offered_role"])
            audit.record("membership.offered", _named(member), project=member.project, role=role)
        return
    if role != Role.MANAGER:
        _require_another_manager(member)
    before = {"role": member.role, "offered_role": member.offered_role}
    member.role, member.offered_role = role, ""
    member.save(update_fields=["role", "offered_role"])
    changed = audit.differences(before, {"role": role, "offered_role": ""})
    if changed:
        audit.record("membership.changed", _named(member), project=member.project, changed=changed)
    follow_roles(member.user)


@transaction.atomic
def accept(member: Membership) -> None:
    """Gives the member the role that they are offered.

    Raises:
        NothingOffered: there is no offer.
    """
    give_role(member, _offered(member), agreed=True)


@transaction.atomic
def decline(member: Membership) -> None:
    """Withdraws the offer that the member declines; they keep the role that they have.

    Raises:
        NothingOffered: there is no offer.
    """
    role = _offered(member)
    member.offered_role = ""
    member.save(update_fields=["offered_role"])
    audit.record("membership.declined", _named(member), project=member.project, role=role)


def _offered(member: Membership) -> str:
    one_change_at_a_time(member.project)
    member.refresh_from_db(fields=["role", "offered_role"])
    if not member.offered_role:
        raise NothingOffered
    return member.offered_role


def one_change_at_a_time(project: Project) -> None:
    """Makes other changes of the project's members wait until this transaction ends.

    Without it, two managers who dismiss each other at once would each find another manager left.
    """
    # no_key: rows that refer to the project, such as tasks and imports, can still be added meanwhile.
    Project.objects.select_for_update(no_key=True).filter(pk=project.pk).values_list("pk").get()


@transaction.atomic
def require_other_managers(user: User) -> None:
    """Raises LastManager unless every project that the user manages has another manager."""
    # In the order of the projects, so that two such checks cannot deadlock.
    managed = user.memberships.filter(role=Role.MANAGER, project__deleted_at=None).select_related("user", "project")
    for member in managed.order_by("project"):
        one_change_at_a_time(member.project)
        _require_another_manager(member)


def _require_another_manager(member: Membership) -> None:
    managers = member.project.memberships.filter(role=Role.MANAGER, user__is_active=True)
    if member.role == Role.MANAGER and not managers.exclude(pk=member.pk).exists():
        text = _("%(name)s is the last manager of %(project)s. Make somebody else a manager first.")
        raise LastManager(text % {"name": member.user.username, "project": member.project.name})


def _named(member: Membership) -> str:
    """Returns what the audit log calls a membership."""
    return f"member {member.user.username}"


def _account(username: str, password: str | None) -> tuple[User, bool]:
    """Returns the account of this name, which is made if there is none, and whether it is new."""
    user = User.objects.filter(username=username).first()
    if user:
        return user, False
    if not password:
        text = _("There is no account '%(name)s'. Send a password too to create it.")
        raise Refusal(text % {"name": username}, code="unknown_account", status=400)
    user = _new_user(username, password)
    try:
        # A savepoint: after an IntegrityError without one, PostgreSQL would refuse the rest of the transaction.
        with transaction.atomic():
            user.save()
            audit.record("account.created", f"account {username}")
    except IntegrityError:
        # Another request made the account a moment ago.
        return User.objects.get(username=username), False
    return user, True


@transaction.atomic
def make_own_account(username: str, password: str) -> User:
    """Makes an account for somebody who chooses its name and password themselves.

    Raises:
        RefusedName, WeakPassword: the account cannot be made.
    """
    # Before the look: of two people who choose one name at once, the second one finds it taken.
    locks.waiting_transaction_lock(account_names.LOCK)
    if User.objects.filter(username=username).exists():
        raise RefusedName(_("The name %(name)s is taken. Choose another one.") % {"name": username})
    user = _new_user(username, password)
    user.must_change_password = False
    user.save()
    audit.record("account.created", f"account {username}")
    return user


def _new_user(username: str, password: str) -> User:
    user = User(username=username, must_change_password=True)
    try:
        User._meta.get_field("username").clean(username, user)
    except ValidationError as odd:
        raise RefusedName(" ".join(odd.messages)) from odd
    try:
        validate_password(password, user)
    except ValidationError as weak:
        raise WeakPassword(" ".join(weak.messages)) from weak
    user.set_password(password)
    return user


def language_codes(project: Project, given: Sequence[str]) -> list[str]:
    """Returns the languages as the codes that tasks have, each once.

    A code that tasks of the project have is accepted even if no language of that code is known.

    Raises:
        UnknownLanguage: one of them is not a language's code.
    """
    codes = []
    for language in given:
        written, known = language.strip().lower(), code_of(language)
        if written != known and (known or not project.tasks.exclude(language="").filter(language=written).exists()):
            raise UnknownLanguage(language, meant=known)
        codes.append(written)
    return list(dict.fromkeys(codes))


@transaction.atomic
def limit(
    member: Membership, *, quota: int | None, languages: Sequence[str], tasks_ahead: int | EllipsisType | None = ...
) -> None:
    """Sets how many tasks the member may rate (None: the project's number, 0: no limit), and in which languages.

    `tasks_ahead` is how many their browser holds ahead (None: the project's number); left out, it stays.

    Raises:
        UnknownLanguage: one of the languages is not a language's code.
    """
    ahead = member.tasks_ahead if isinstance(tasks_ahead, EllipsisType) else tasks_ahead
    before = {"quota": member.quota, "languages": member.languages, "tasks_ahead": member.tasks_ahead}
    codes = list(languages)
    if codes != member.languages:  # values stored before this check existed stay until they are changed
        codes = language_codes(member.project, codes)
    changed = audit.differences(before, {"quota": quota, "languages": codes, "tasks_ahead": ahead})
    if changed:
        member.quota, member.languages, member.tasks_ahead = quota, codes, ahead
        member.save(update_fields=["quota", "languages", "tasks_ahead"])
        # To the head of the line again: tasks that they passed over for their language may fit now.
        Tally.objects.filter(annotator=member.user, project=member.project).update(line=0)
        audit.record("membership.changed", _named(member), project=member.project, changed=changed)


@transaction.atomic
def change(
    member: Membership,
    *,
    role: str | None = None,
    quota: int | EllipsisType | None = ...,
    languages: Sequence[str] | None = None,
    tasks_ahead: int | EllipsisType | None = ...,
    by: User,
    seen: Seen | None = None,
) -> None:
    """Gives the member a role and sets their limits, each where it is named: all of it, or nothing.

    Raises:
        LastManager, UnknownLanguage: nothing is changed.
        ChangedMeanwhile: a value is no longer the one that the caller has seen.
    """
    one_change_at_a_time(member.project)
    member.refresh_from_db(fields=["role", "offered_role", "quota", "languages", "tasks_ahead"])
    if seen:
        require_as_seen(member, seen)
    if role:
        give_role(member, role, agreed=member.user == by)
    limit(
        member,
        quota=member.quota if isinstance(quota, EllipsisType) else quota,
        languages=member.languages if languages is None else languages,
        tasks_ahead=tasks_ahead,
    )


@transaction.atomic
def dismiss(member: Membership) -> None:
    """Ends a membership. Tasks that the person holds are released; finished work stays.

    Raises:
        LastManager: nobody else manages the project.
    """
    one_change_at_a_time(member.project)
    member.refresh_from_db(fields=["role"])
    _require_another_manager(member)
    leased = Assignment.objects.leased().filter(annotator=member.user, task__project=member.project)
    for assignment_id in list(leased.order_by("task").values_list("pk", flat=True)):
        assignment.release(assignment_id)
    audit.record("membership.ended", _named(member), project=member.project, role=member.role)
    member.delete()
    follow_roles(member.user)


@transaction.atomic
def give_another_try(member: Membership) -> None:
    """Gives the member one more try of the test than the project allows."""
    # F: two managers who click at once give two tries.
    Membership.objects.filter(pk=member.pk).update(extra_tries=F("extra_tries") + 1)
    audit.record("membership.given_another_try", _named(member), project=member.project)


@transaction.atomic
def qualify(member: Membership, *, now: datetime) -> None:
    """Lets the member work without the test. Doing so twice is harmless."""
    if Membership.objects.filter(pk=member.pk, qualified_at__isnull=True).update(qualified_at=now):
        audit.record("membership.qualified", _named(member), project=member.project, by="a manager")


def follow_roles(user: User) -> None:
    """Makes the user staff if they manage a project, and takes that back if they no longer manage any.

    Those who are staff for another reason (superusers, or because an administrator said so) stay staff.
    """
    # Locked before the roles are read: if two requests end the user's last two roles at once, the second one waits and
    # finds none left.
    locked = User.objects.select_for_update(no_key=True)
    user.refresh_from_db(fields=["is_staff", "is_superuser", "staff_by_role"], from_queryset=locked)
    manages = user.memberships.filter(role=Role.MANAGER).exists()
    if manages and not user.is_staff:
        _set(user, is_staff=True)
    elif not manages and user.staff_by_role:
        _set(user, is_staff=user.is_superuser)


def _set(user: User, *, is_staff: bool) -> None:
    if user.is_staff != is_staff:
        audit.record("account.changed", f"account {user.username}", changed={"is_staff": [user.is_staff, is_staff]})
    user.is_staff = is_staff
    user.staff_by_role = is_staff and not user.is_superuser
    user.save(update_fields=["is_staff", "staff_by_role"])
