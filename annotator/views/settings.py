"""The pages of a person's own settings: layout, language, keys, tokens and password."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.views import PasswordChangeView
from django.contrib.messages.views import SuccessMessageMixin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from annotator.access import user_of
from annotator.accounts import tokens
from annotator.forms.login import OwnPasswordForm
from annotator.forms.settings import KeysForm, LayoutForm
from annotator.forms.tokens import TokenForm
from annotator.models import User
from annotator.views.returning import back
from annotator.web.keyboard import ACTIONS, keys_of, own_keys

TOKENS_SHOWN = 50
"""The newest tokens are listed, so many at most; REST lists all."""


@require_http_methods(["GET", "POST"])
def settings(request: HttpRequest) -> HttpResponse:
    """Shows all settings; a POST changes the keys, or restores those that the page starts with."""
    user = user_of(request)
    if request.method == "POST" and "reset" in request.POST:
        return _with_keys(request, user, {})
    form = KeysForm(request.POST or None, initial=keys_of(user))
    if request.method == "POST" and form.is_valid():
        return _with_keys(request, user, own_keys(form.cleaned_data))
    return _page(request, form=form, token_form=TokenForm())


def _page(request: HttpRequest, *, form: KeysForm, token_form: TokenForm) -> HttpResponse:
    page = {
        "form": form,
        "token_form": token_form,
        "tokens": tokens.living(user_of(request)).order_by("-created")[:TOKENS_SHOWN],
        "layouts": User.Layout.choices,
        "back": back(request),
        "here": request.get_full_path() if request.path == reverse("settings") else reverse("settings"),
        "reset": " ".join(action.key.upper() for action in ACTIONS.values()),
    }
    return render(request, "settings.html", page, status=422 if form.errors or token_form.errors else 200)


def _with_keys(request: HttpRequest, user: User, keys: dict[str, str]) -> HttpResponse:
    user.keys = keys
    user.save(update_fields=["keys"])
    messages.success(request, _("Your keys are saved.") if keys else _("The keys are reset to the defaults."))
    return redirect(request.get_full_path())


@require_POST
def layout(request: HttpRequest) -> HttpResponse:
    """Stores whether responses are side by side or below each other, and goes back to the page with the button."""
    form = LayoutForm(request.POST, instance=user_of(request))
    if form.is_valid():
        form.save()
    return redirect(back(request) or "home")


@require_POST
def make_token(request: HttpRequest) -> HttpResponse:
    """Issues a token and shows it, only this once."""
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _page(request, form=KeysForm(initial=keys_of(user_of(request))), token_form=form)
    row, token = tokens.issue(user_of(request), **form.cleaned_data)
    return render(request, "token.html", {"row": row, "token": token, "header": "Authorization: Token …"})


@require_POST
def end_token(request: HttpRequest, pk: int) -> HttpResponse:
    """Ends one of the user's own tokens."""
    tokens.end(get_object_or_404(tokens.living(user_of(request)), pk=pk))
    messages.success(request, _("The token has been revoked."))
    return redirect(f"{reverse('settings')}#tokens")


class Password(SuccessMessageMixin, PasswordChangeView):  # type: ignore[type-arg]
    """Sets a new password for somebody who knows the old one. All other sessions of the account end."""

    template_name = "password.html"
    form_class = OwnPasswordForm
    success_message = gettext_lazy("Your password has been changed.")

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "request": self.request}

    def form_valid(self, form: Any) -> HttpResponse:
        """Sends those who had to choose a password on to their work, and everybody else back to the settings."""
        # Read before the form is saved, which clears the flag.
        self.success_url = reverse("home" if user_of(self.request).must_change_password else "settings")
        return super().form_valid(form)

    def form_invalid(self, form: Any) -> HttpResponse:
        return self.render_to_response(self.get_context_data(form=form), status=422)
