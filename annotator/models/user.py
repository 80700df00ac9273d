"""People, and the raters that came with imported data."""

import secrets

from django.contrib.auth.models import AbstractUser
from django.db import models


def new_pseudonym() -> str:
    return f"r-{secrets.token_hex(5)}"


class User(AbstractUser):
    """An account. `pseudonym` names the rater in exports, so that no export carries a person's name."""

    class Layout(models.TextChoices):
        """Where a task's responses stand on the rating page."""

        BELOW = "below"
        BESIDE = "beside"

    pseudonym = models.CharField(max_length=32, unique=True, default=new_pseudonym, editable=False)
    layout = models.CharField(max_length=10, choices=Layout.choices, default=Layout.BELOW)
    keys = models.JSONField(default=dict, blank=True, help_text="own keys of the rating page: {action: key}")

    class Meta(AbstractUser.Meta):
        db_table = "annotator_user"
