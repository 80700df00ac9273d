"""Who may enter the admin because they manage a project. The admin lets staff in, and shows managers their own."""

from annotator import audit
from annotator.models import Role, User


def follow_roles(user: User) -> None:
    """Makes staff of whoever manages a project, and takes that back from whoever manages none any more.

    Who is staff for another reason (a superuser, or an administrator has said so) stays staff.
    """
    # Locked before the roles are read: of two who end the last two roles at once, the second finds none left.
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
