"""Forms that ask for a password."""

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.http import HttpRequest
from django.utils.translation import gettext as _

from annotator.accounts import logins
from annotator.accounts.logins import TooManyFailures


class LoginForm(AuthenticationForm):
    """Asks for a username and password; whoever has to wait is told for how long."""

    wait: TooManyFailures | None = None

    def clean(self) -> dict[str, Any]:
        try:
            return super().clean()
        except TooManyFailures as wait:
            # The view answers with its status and headers.
            self.wait = wait
            raise forms.ValidationError(str(wait), code=wait.code) from wait


class OwnPasswordForm(PasswordChangeForm):
    """Sets a new password for somebody who knows the old one."""

    def __init__(self, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request

    def clean_old_password(self) -> str:
        old = str(self.cleaned_data["old_password"])
        # Counted like logins: whoever finds an open session must not guess the password here.
        try:
            right = logins.knows_password(self.request, self.user, old)
        except TooManyFailures as wait:
            raise forms.ValidationError(str(wait), code=wait.code) from wait
        if not right:
            raise forms.ValidationError(self.error_messages["password_incorrect"], code="password_incorrect")
        return old

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("old_password") and cleaned["old_password"] == cleaned.get("new_password1"):
            self.add_error("new_password1", _("This is already your password. Choose another one."))
        return cleaned

    def save(self, commit: bool = True) -> Any:
        self.user.must_change_password = False
        return super().save(commit)
