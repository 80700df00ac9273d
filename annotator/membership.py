"""Who joins and leaves a project. Sign-up is by invitation: a manager makes the account."""

from datetime import datetime

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F

from annotator import account_names, assignment, audit
from annotator.models import Assignment, Membership, Project, Role, Tally, User
from annotator.refusals import Refusal


class UnknownAccount(Refusal):
    """No account has this name, and no password came to make one."""

    status = 400
    code = "unknown_account"


class WeakPassword(Refusal):
    """The password breaks the rules."""

    status = 400
    code = "weak_password"


class RefusedName(Refusal):
    """The name could be mistaken for another account's, or is kept for raters that are not people."""

    status = 400
    code = "refused_name"


@transaction.atomic
def admit(
    project: Project, *, username: str, role: str | None = None, password: str | None = None
) -> tuple[Membership, bool]:
    """Gives the user a role in the project, making the account where a password comes with a new name.

    Without a role, a new member annotates and an old one stays what they are. Returns the membership and whether it
    is new. A password never changes an account that exists.
    """
    user = User.objects.filter(username=username).first() or _new_user(username, password)
    member, created = Membership.objects.get_or_create(
        project=project, user=user, defaults={"role": role or Role.ANNOTATOR}
    )
    if created:
        audit.record("membership.created", _named(member), project=project, role=member.role)
    if role and member.role != role:
        audit.record("membership.changed", _named(member), project=project, changed={"role": [member.role, role]})
        member.role = role
        member.save(update_fields=["role"])
    if member.role == Role.MANAGER:
        _let_into_the_admin(user)
    return member, created


def _named(member: Membership) -> str:
    """What the audit calls a membership."""
    return f"member {member.user.username}"


def _let_into_the_admin(user: User) -> None:
    """The admin lets staff in, and shows managers their own projects."""
    if user.is_staff:
        return
    user.is_staff = True
    user.save(update_fields=["is_staff"])
    audit.record("account.changed", f"account {user.username}", changed={"is_staff": [False, True]})


def _new_user(username: str, password: str | None) -> User:
    if not password:
        raise UnknownAccount(f"There is no account {username!r}. Send a password too, and it is made.")
    try:
        account_names.require_unmistakable(username)
    except ValidationError as mistakable:
        raise RefusedName(" ".join(mistakable.messages)) from mistakable
    user = User(username=username, must_change_password=True)
    try:
        User.username_validator(username)
        validate_password(password, user)
    except ValidationError as weak:
        raise WeakPassword(" ".join(weak.messages)) from weak
    user.set_password(password)
    audit.record("account.created", f"account {username}")
    user.save()
    return user


@transaction.atomic
def limit(member: Membership, *, quota: int | None, languages: list[str]) -> None:
    """How many tasks the member may rate (None: the project's number, 0: no limit), and in which languages."""
    before = {"quota": member.quota, "languages": member.languages}
    after = {"quota": quota, "languages": languages}
    changed = {name: [before[name], value] for name, value in after.items() if before[name] != value}
    if changed:
        member.quota, member.languages = quota, languages
        member.save(update_fields=["quota", "languages"])
        look_anew(member)
        audit.record("membership.changed", _named(member), project=member.project, changed=changed)


def look_anew(member: Membership) -> None:
    """The member begins at the head of the line again: what was passed over in other languages may be theirs now."""
    Tally.objects.filter(annotator=member.user, project=member.project).update(line=0)


@transaction.atomic
def dismiss(member: Membership) -> None:
    """Ends a membership; tasks that the person holds go back, finished work stays."""
    held = Assignment.objects.leased().filter(annotator=member.user, task__project=member.project)
    for assignment_id in list(held.values_list("pk", flat=True)):
        assignment.release(assignment_id)
    audit.record("membership.ended", _named(member), project=member.project, role=member.role)
    member.delete()


@transaction.atomic
def give_another_try(member: Membership) -> None:
    """One more try of the test, beside the project's number."""
    Membership.objects.filter(pk=member.pk).update(extra_tries=F("extra_tries") + 1)
    audit.record("membership.given_another_try", _named(member), project=member.project)


@transaction.atomic
def qualify(member: Membership, *, now: datetime) -> None:
    """Spares the member the test. Twice does no harm."""
    if Membership.objects.filter(pk=member.pk, qualified_at__isnull=True).update(qualified_at=now):
        audit.record("membership.qualified", _named(member), project=member.project, by="a manager")
