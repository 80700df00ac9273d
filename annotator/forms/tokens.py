"""The form for a new token on the page *Settings*."""

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from annotator.models import Scope, every_scope

SCOPES = {
    Scope.READ: _("read: everything that you may see"),
    Scope.ANNOTATE: _("annotate: take tasks and rate them"),
    Scope.MANAGE: _("manage: change projects, people, data and runs"),
    Scope.SCORE: _("score: have a reward model score texts"),
}


class TokenForm(forms.Form):
    """Asks for a new token's name, by which its owner recognises it in the list, its scopes and its days."""

    name = forms.CharField(label=_("What it is for"), max_length=80)
    scopes = forms.MultipleChoiceField(
        label=_("What it may do"), choices=list(SCOPES.items()), widget=forms.CheckboxSelectMultiple
    )
    days = forms.IntegerField(label=_("Days until it expires"), min_value=1, max_value=settings.TOKEN_DAYS_MOST)

    def __init__(self, data: Any = None) -> None:
        # The least scope is ticked at first. The prefix keeps the fields apart from those of the other forms there.
        super().__init__(data, prefix="token", initial={"scopes": every_scope()[:1], "days": settings.TOKEN_DAYS})
