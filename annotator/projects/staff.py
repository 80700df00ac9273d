"""Lets those who manage a project enter the admin, which admits staff and shows managers their own projects."""

from annotator import audit
from annotator.models import Role, User


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
