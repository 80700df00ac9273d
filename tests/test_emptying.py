"""What a test with real transactions leaves behind is gone before the next one begins."""

import pytest
from django.contrib.auth.models import Permission
from django.test import TransactionTestCase

from annotator.infrastructure import audit
from annotator.models import AuditEntry, Project, Rubric, User
from tests import emptying
from tests.conftest import Cast


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("grown_bytes", [0, 10**9], ids=["by truncating", "by deleting"])
def test_only_what_migrations_wrote_is_left(cast: Cast, monkeypatch: pytest.MonkeyPatch, grown_bytes: int) -> None:
    monkeypatch.setattr(emptying, "_GROWN_BYTES", grown_bytes)
    permissions = set(Permission.objects.values_list("pk", flat=True))
    Rubric.objects.update(name="Changed")
    audit.record("account.created", "account frank")
    emptying.empty_tables(TransactionTestCase())
    assert not [model for model in (AuditEntry, Project, User) if model.objects.exists()]
    assert Rubric.objects.exists()
    assert not Rubric.objects.filter(name="Changed").exists()
    assert set(Permission.objects.values_list("pk", flat=True)) == permissions != set()
