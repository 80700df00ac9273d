"""Tokens of the REST interface."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _
from knox.models import AbstractAuthToken


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
