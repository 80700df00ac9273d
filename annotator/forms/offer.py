"""The answer to the offer of a role."""

from django import forms


class OfferForm(forms.Form):
    answer = forms.ChoiceField(choices=[("accept", "accept"), ("decline", "decline")])
