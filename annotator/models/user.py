"""Accounts of people, and of the raters that came with imported data; tokens, and counts of wrong passwords."""

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from knox.models import AbstractAuthToken

from annotator.models import account_names


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
            account_names.require_addressable,
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
                condition=Q(username__regex=account_names.ADDRESSABLE),
                name="account_names_begin_with_a_letter_or_a_digit",
            )
        ]


class Scope(models.TextChoices):
    """A kind of call. A token may make the calls of its scopes, as far as its account's roles allow them."""

    READ = "read"
    ANNOTATE = "annotate"
    MANAGE = "manage"
    SCORE = "score"


def every_scope() -> list[str]:
    return [str(scope) for scope in Scope.values]


class Token(AbstractAuthToken):  # type: ignore[misc]
    """A token, stored as its digest: nobody can read the token itself again."""

    id = models.BigAutoField(primary_key=True)
    digest = models.CharField(max_length=128, unique=True)
    name = models.CharField(_("name"), max_length=80, blank=True, help_text=_("What it is for, in its owner's words."))
    scopes = ArrayField(models.CharField(max_length=20), default=every_scope, verbose_name=_("scopes"))
    last_used_at = models.DateTimeField(
        _("last used at"), null=True, editable=False, help_text=_("Accurate to the hour.")
    )

    class Meta:
        verbose_name = _("token")
        verbose_name_plural = _("tokens")
        db_table = "annotator_token"

    def __str__(self) -> str:
        return f"{self.name or 'token'} of {self.user}"


class LoginFailures(models.Model):
    """The number of recent wrong passwords for an account, from an address or browser, or for a combination of them."""

    # A digest of what is counted: people type passwords into the field for the name, and nobody must read them here.
    key = models.CharField(max_length=64, primary_key=True)
    count = models.PositiveIntegerField()
    ends_at = models.DateTimeField(db_index=True, help_text="when counting begins anew")

    class Meta:
        verbose_name_plural = "login failures"

    def __str__(self) -> str:
        return f"{self.count} until {self.ends_at:%H:%M}"
