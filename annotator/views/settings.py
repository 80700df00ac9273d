"""A person's own settings: layout, language, keys, password."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import PasswordChangeView
from django.contrib.messages.views import SuccessMessageMixin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from annotator.access import user_of
from annotator.forms.settings import KeysForm, LayoutForm
from annotator.keyboard import ACTIONS, keys_of, own_keys
from annotator.models import User
from annotator.views.returning import back


@login_required
@require_http_methods(["GET", "POST"])
def settings(request: HttpRequest) -> HttpResponse:
    """Shows everything; a POST changes the keys, or gives back those that the page starts with."""
    user = user_of(request)
    if request.method == "POST" and "reset" in request.POST:
        return _with_keys(request, user, {})
    form = KeysForm(request.POST or None, initial=keys_of(user))
    if request.method == "POST" and form.is_valid():
        return _with_keys(request, user, own_keys(form.cleaned_data))
    page = {"form": form, "layouts": User.Layout.choices, "back": back(request), "reset": _as_at_the_start()}
    return render(request, "settings.html", page, status=422 if form.errors else 200)


def _with_keys(request: HttpRequest, user: User, keys: dict[str, str]) -> HttpResponse:
    user.keys = keys
    user.save(update_fields=["keys"])
    messages.success(request, _("Your keys are stored.") if keys else _("The keys are as at the start."))
    return redirect(request.get_full_path())


def _as_at_the_start() -> str:
    return " ".join(action.key.upper() for action in ACTIONS.values())


@login_required
@require_POST
def layout(request: HttpRequest) -> HttpResponse:
    """Remembers where the responses stand, and goes back to the page it was asked from."""
    form = LayoutForm(request.POST, instance=user_of(request))
    if form.is_valid():
        form.save()
    return redirect(back(request) or "home")


class Password(SuccessMessageMixin, PasswordChangeView):  # type: ignore[type-arg]
    """A new password for who knows the old one; all other sessions of the account end."""

    template_name = "password.html"
    success_url = reverse_lazy("settings")
    success_message = gettext_lazy("Your password is changed.")

    def form_invalid(self, form: Any) -> HttpResponse:
        return self.render_to_response(self.get_context_data(form=form), status=422)
