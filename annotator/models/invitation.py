"""Links by which people join a project or choose a new password. Only the hash of a link's secret is stored."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from annotator.models.project import Project, Role

MOST_PLACES = 500
"""The most people that one link may let in."""


class Invitation(models.Model):
    """A link that lets `places` people join a project in one role, until it expires, is revoked or is used up.

    It works only as long as the person who made it manages the project.
    """

    class State(models.TextChoices):
        OPEN = "open", _("open")
        USED = "used", _("used up")
        EXPIRED = "expired", _("expired")
        REVOKED = "revoked", _("revoked")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False, related_name="invitations")
    digest = models.CharField(max_length=64, unique=True)
    role = models.CharField(_("role"), max_length=10, choices=Role.choices, default=Role.ANNOTATOR)
    languages = ArrayField(models.CharField(max_length=16), default=list, blank=True)
    quota = models.PositiveIntegerField(_("quota"), null=True, blank=True)
    places = models.PositiveIntegerField(default=1, validators=[MinValueValidator(1), MaxValueValidator(MOST_PLACES)])
    taken = models.PositiveIntegerField(default=0)
    meant_for = models.CharField(max_length=150, blank=True, help_text="a name in the manager's words, for their list")
    email = models.EmailField(blank=True)
    mailed_at = models.DateTimeField(null=True, blank=True)
    made_by = models.ForeignKey("annotator.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("invitation")
        verbose_name_plural = _("invitations")
        constraints = [
            models.CheckConstraint(condition=Q(taken__lte=F("places")), name="no_more_join_than_are_invited"),
            models.CheckConstraint(
                condition=Q(places__gte=1, places__lte=MOST_PLACES), name="an_invitation_is_for_somebody"
            ),
            models.CheckConstraint(
                condition=~Q(role=Role.MANAGER) | Q(places=1), name="one_manager_for_each_invitation"
            ),
        ]
        indexes = [models.Index(fields=["project", "-id"], name="invitations_newest_first")]

    def __str__(self) -> str:
        return f"invitation {self.pk}"


class InvitationUse(models.Model):
    """Somebody who joined by an invitation."""

    invitation = models.ForeignKey(Invitation, on_delete=models.CASCADE, db_index=False, related_name="uses")
    user = models.ForeignKey("annotator.User", on_delete=models.CASCADE, related_name="+")
    joined_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["invitation", "user"], name="one_place_for_each_person")]

    def __str__(self) -> str:
        return f"{self.user} by {self.invitation}"


class PasswordLink(models.Model):
    """A link by which the owner of an account chooses a new password. Making another one ends the earlier one.

    `project` is the one as whose manager somebody made it, empty for administrators.
    """

    account = models.OneToOneField("annotator.User", on_delete=models.CASCADE, related_name="password_link")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, related_name="+")
    digest = models.CharField(max_length=64, unique=True)
    made_by = models.ForeignKey("annotator.User", on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"password link of {self.account}"
