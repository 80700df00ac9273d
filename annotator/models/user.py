"""People, and the raters that came with imported data."""

import secrets

from django.contrib.auth.models import AbstractUser
from django.db import models


def new_pseudonym() -> str:
    return f"r-{secrets.token_hex(5)}"


class User(AbstractUser):
    """An account. `pseudonym` names the rater in exports, so that no export carries a person's name."""

    pseudonym = models.CharField(max_length=32, unique=True, default=new_pseudonym, editable=False)

    class Meta(AbstractUser.Meta):
        db_table = "annotator_user"
