"""The pages of a person's own settings: layout, language, keys, tokens and password."""

from typing import Any

from django import forms
from django.conf import settings as conf
from django.contrib import messages
from django.contrib.auth.views import PasswordChangeView
from django.contrib.messages.views import SuccessMessageMixin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from annotator.accounts import tokens
from annotator.infrastructure.web.keyboard import ACTIONS, keys_of, own_keys
from annotator.models import Scope, User, every_scope
from annotator.pages.account.login_form import OwnPasswordForm
from annotator.pages.rating.returning import back
from annotator.reading.access import user_of


class LayoutForm(forms.ModelForm):  # type: ignore[type-arg]
    """Asks whether responses are shown side by side or below each other."""

    class Meta:
        model = User
        fields = ("layout",)


class KeysForm(forms.Form):
    """Asks for one key for each action. No two actions share a key, and none takes a key that every page needs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, action in ACTIONS.items():
            self.fields[name] = forms.CharField(label=str(action.label), strip=False, validators=[_check_free])

    def clean(self) -> dict[str, Any]:
        cleaned = {name: key.lower() for name, key in self.cleaned_data.items()}
        for name, key in cleaned.items():
            others = [ACTIONS[other].label for other, taken in cleaned.items() if taken == key and other != name]
            if others:
                text = _("%(key)s is also the key for “%(other)s”. Choose another key for one of them.")
                self.add_error(name, text % {"key": key.upper(), "other": others[0]})
        return cleaned


def _check_free(key: str) -> None:
    # Keys are compared in lower case, and that of some letters, such as İ, is longer than one character.
    if len(key) != 1 or len(key.lower()) != 1 or not key.isprintable() or key.isspace():
        raise forms.ValidationError(
            _("Type one letter or symbol. Enter, Tab, Escape, Backspace, Space and the arrow keys cannot be changed.")
        )
    if key.isdigit():
        raise forms.ValidationError(_("Digits are used for rating, so they cannot do anything else."))


SCOPES = {
    Scope.READ: gettext_lazy("read: everything that you may see"),
    Scope.ANNOTATE: gettext_lazy("annotate: take tasks and rate them"),
    Scope.MANAGE: gettext_lazy("manage: change projects, people, data and runs"),
    Scope.SCORE: gettext_lazy("score: have a reward model score texts"),
}


class TokenForm(forms.Form):
    """Asks for a new token's name, by which its owner recognises it in the list, its scopes and its days."""

    name = forms.CharField(label=gettext_lazy("What it is for"), max_length=80)
    scopes = forms.MultipleChoiceField(
        label=gettext_lazy("What it may do"), choices=list(SCOPES.items()), widget=forms.CheckboxSelectMultiple
    )
    days = forms.IntegerField(label=gettext_lazy("Days until it expires"), min_value=1, max_value=conf.TOKEN_DAYS_MOST)

    def __init__(self, data: Any = None) -> None:
        # The least scope is ticked at first. The prefix keeps the fields apart from those of the other forms there.
        super().__init__(data, prefix="token", initial={"scopes": every_scope()[:1], "days": conf.TOKEN_DAYS})


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
