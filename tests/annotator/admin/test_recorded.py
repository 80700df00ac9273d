"""Forms of the admin write what was changed in them, and nothing else."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.test import RequestFactory

from annotator.models import User
from tests.builders import make_user
from tests.conftest import Cast


def save(row: Any, by: User, **changes: Any) -> None:
    """Saves the row as its form in the admin does, with what the form was opened with otherwise."""
    request: HttpRequest = RequestFactory().post("/admin/")
    request.user = by
    page = admin.site._registry[type(row)]
    form_class = page.get_form(request, row, change=True)
    sent = {name: value for name, value in form_class(instance=row).initial.items() if value is not None} | changes
    form = form_class(sent, instance=row)
    assert form.is_valid(), form.errors
    page.save_model(request, form.save(commit=False), form, change=True)


def test_a_password_stays_as_it_is_by_now(cast: Cast) -> None:
    root = make_user("root", is_superuser=True, is_staff=True)
    read = User.objects.get(pk=cast.bob.pk)
    User.objects.filter(pk=cast.bob.pk).update(password="new", must_change_password=True)
    save(read, root, first_name="Bob", date_joined_0="2026-01-31", date_joined_1="12:00:00")
    read.refresh_from_db()
    assert (read.first_name, read.password, read.must_change_password) == ("Bob", "new", True)
