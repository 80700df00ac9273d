"""The members of projects, their names there, and the links by which people join."""

from __future__ import annotations

import secrets

from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from annotator.infrastructure.limits import MOST_AHEAD
from annotator.models.project import Project, Role


class PauseReason(models.TextChoices):
    GOLD = "gold", _("ratings of gold tasks differ too much from the experts'")
    MANAGER = "manager", _("a manager's decision")


class MembershipQuerySet(models.QuerySet["Membership"]):
    def with_pseudonym(self) -> MembershipQuerySet:
        """Adds `pseudonym`: what the project calls each member where user names are not shown."""
        pseudonyms = apps.get_model("annotator", "Pseudonym").objects.filter(
            user=models.OuterRef("user"), project=models.OuterRef("project")
        )
        return self.annotate(pseudonym=models.Subquery(pseudonyms.values("name")))

    def in_use(self) -> MembershipQuerySet:
        """Returns memberships of projects that are neither archived nor deleted."""
        # Only archived projects are deleted (only_the_archived_are_deleted), so one condition is enough.
        return self.filter(project__archived_at=None)


def maker_manages() -> Q:
    """Returns the condition on rows with `made_by` and `project` that whoever made them still manages the project."""
    managing = Membership.objects.filter(
        user=models.OuterRef("made_by"), project=models.OuterRef("project"), role=Role.MANAGER
    )
    return Q(made_by__is_active=True) & (Q(made_by__is_superuser=True) | Q(models.Exists(managing)))


class Membership(models.Model):
    """A user's role in a project, the guideline version acknowledged (0: none), and whether they may rate.

    `offered_role` is a role that the member has not accepted yet and does not have until then. Only gold tasks rated
    since `gold_counts_from` are judged. `pause_reason` says why the member was paused.
    """

    user = models.ForeignKey(
        "annotator.User", on_delete=models.CASCADE, db_index=False, related_name="memberships", verbose_name=_("user")
    )
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="memberships", verbose_name=_("project")
    )
    role = models.CharField(_("role"), max_length=10, choices=Role.choices, default=Role.ANNOTATOR)
    offered_role = models.CharField(max_length=10, choices=Role.choices, blank=True, default="", editable=False)
    acknowledged_version = models.PositiveIntegerField(_("acknowledged version"), default=0)
    qualified_at = models.DateTimeField(_("qualified at"), null=True, blank=True)
    extra_tries = models.PositiveSmallIntegerField(
        _("extra tries"), default=0, help_text=_("Tries of the test in addition to the project's number.")
    )
    paused_at = models.DateTimeField(_("paused at"), null=True, blank=True)
    pause_reason = models.CharField(_("paused because of"), max_length=20, choices=PauseReason.choices, blank=True)
    quota = models.PositiveIntegerField(
        _("quota"),
        null=True,
        blank=True,
        help_text=_("Tasks that this person may rate. Leave it empty for the project's number; 0 means no limit."),
    )
    languages = ArrayField(
        models.CharField(max_length=16),
        default=list,
        blank=True,
        help_text=_("Languages of the tasks that this person gets. Leave it empty for all languages."),
        verbose_name=_("languages"),
    )
    tasks_ahead = models.PositiveSmallIntegerField(
        _("tasks ready ahead"),
        null=True,
        blank=True,
        validators=[MaxValueValidator(MOST_AHEAD)],
        help_text=_("Tasks that this person's browser holds ahead. Leave it empty for the project's number."),
    )
    gold_counts_from = models.DateTimeField(_("gold tasks count from"), null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        verbose_name = _("member")
        verbose_name_plural = _("members")
        ordering = ["user__username"]
        constraints = [
            models.UniqueConstraint(fields=["user", "project"], name="one_role_per_user_and_project"),
            models.CheckConstraint(
                condition=Q(paused_at__isnull=False) | Q(pause_reason=""), name="a_reason_needs_a_pause"
            ),
            models.CheckConstraint(
                condition=Q(offered_role="") | ~Q(offered_role=F("role")), name="nobody_is_offered_what_they_have"
            ),
            models.CheckConstraint(condition=Q(tasks_ahead__lte=MOST_AHEAD), name="nobody_holds_many_tasks_ahead"),
        ]

    def __str__(self) -> str:
        return f"{self.user} as {self.role}"

    def most_ahead(self) -> int:
        """Returns how many tasks may be ready for this member before they are shown."""
        return self.project.tasks_ahead if self.tasks_ahead is None else self.tasks_ahead

    def lacks_test(self) -> bool:
        """Returns whether the project asks for a test that this member has not passed."""
        return self.project.qualification_required and self.role == Role.ANNOTATOR and not self.qualified_at

    def has_unread_guidelines(self) -> bool:
        """Returns whether a newer version is in force than the one that this member has acknowledged."""
        return self.project.guidelines.filter(version__gt=self.acknowledged_version).exists()


class Tally(models.Model):
    """The number of a project's tasks that an annotator has rated, and their place in the line of begun tasks.

    Up to `line` no begun task has room for this annotator. It is a hint that saves reading, not a promise.
    """

    annotator = models.ForeignKey("annotator.User", on_delete=models.PROTECT, db_index=False, related_name="tallies")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="tallies")
    done = models.PositiveIntegerField(db_default=0)
    line = models.BigIntegerField(db_default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["annotator", "project"], name="one_tally_per_annotator")]

    def __str__(self) -> str:
        return f"{self.annotator} in {self.project}: {self.done}"


def new_pseudonym() -> str:
    return f"r-{secrets.token_hex(5)}"


class Pseudonym(models.Model):
    """The name that a project uses for a person where user names are not shown. No other project knows it.

    Triggers give one to every member and to everybody who has rated.
    """

    user = models.ForeignKey("annotator.User", on_delete=models.CASCADE, related_name="pseudonyms")
    project = models.ForeignKey(
        "annotator.Project", on_delete=models.CASCADE, db_index=False, related_name="pseudonyms"
    )
    name = models.CharField(max_length=32, default=new_pseudonym)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "user"], name="one_pseudonym_per_person_and_project"),
            models.UniqueConstraint(fields=["project", "name"], name="one_person_per_pseudonym_and_project"),
        ]

    def __str__(self) -> str:
        return self.name


class ImportedRater(models.Model):
    """The account behind a rater of imported files, who is known only by a place in the file's lists."""

    project = models.ForeignKey(
        "annotator.Project", on_delete=models.CASCADE, db_index=False, related_name="imported_raters"
    )
    place = models.CharField(max_length=40, help_text="such as rater-1 or preference-2")
    user = models.ForeignKey("annotator.User", on_delete=models.PROTECT, related_name="imported_places")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "place"], name="one_imported_rater_per_place"),
        ]

    def __str__(self) -> str:
        return f"{self.place} of {self.project}"


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
    request_id = models.UUIDField(null=True, blank=True, help_text="made up by whoever asked, who may ask again")

    class Meta:
        verbose_name = _("invitation")
        verbose_name_plural = _("invitations")
        constraints = [
            models.UniqueConstraint(fields=["project", "request_id"], name="an_invitation_is_made_once_for_a_request"),
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
