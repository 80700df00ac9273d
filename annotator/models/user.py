"""People, and the raters that came with imported data."""

from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):
    """An account. `staff_by_role`: it is staff because it manages a project, and for as long as it does."""

    class Layout(models.TextChoices):
        """Where a task's responses stand on the rating page."""

        BELOW = "below"
        BESIDE = "beside"

    staff_by_role = models.BooleanField(default=False, editable=False)
    layout = models.CharField(max_length=10, choices=Layout.choices, default=Layout.BELOW)
    keys = models.JSONField(default=dict, blank=True, help_text="own keys of the rating page: {action: key}")

    class Meta(AbstractUser.Meta):
        db_table = "annotator_user"
