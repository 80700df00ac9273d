"""Accounts of people, and of the raters that came with imported data."""

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import Q

from annotator.models import account_names, address_names


class User(AbstractUser):  # type: ignore[django-manager-missing]  # of tokens: the package is untyped
    """An account. `staff_by_role` says that it is staff only because it manages a project, and as long as it does."""

    class Layout(models.TextChoices):
        """How a task's responses are arranged on the rating page."""

        BELOW = "below"
        BESIDE = "beside"

    staff_by_role = models.BooleanField(default=False, editable=False)
    username = models.CharField(
        max_length=150,
        unique=True,
        validators=[
            AbstractUser.username_validator,
            address_names.require_addressable,
            account_names.require_unmistakable,
        ],
        help_text="at most 150 letters, digits and @ . + - _",
    )
    layout = models.CharField(max_length=10, choices=Layout.choices, default=Layout.BESIDE)
    keys = models.JSONField(default=dict, blank=True, help_text="own keys of the rating page: {action: key}")

    must_change_password = models.BooleanField(
        default=False, help_text="somebody else chose the password; the pages ask for another one first"
    )
    made_by_demo = models.BooleanField(default=False, editable=False)

    class Meta(AbstractUser.Meta):
        db_table = "annotator_user"
        constraints = [
            models.CheckConstraint(
                condition=Q(username__regex=address_names.ADDRESSABLE),
                name="account_names_begin_with_a_letter_or_a_digit",
            )
        ]
