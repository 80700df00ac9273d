"""Whom the attacks come from, besides the cast."""

import pytest
from django.test import Client

from annotator.models import User
from tests.conftest import Cast


@pytest.fixture
def admin(cast: Cast, client: Client) -> Client:
    """Carol in the admin, which managers enter as staff."""
    User.objects.filter(pk=cast.carol.pk).update(is_staff=True)
    client.force_login(cast.carol)
    return client
