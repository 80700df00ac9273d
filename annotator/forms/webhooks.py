"""The form of a webhook on the pages of a project's settings."""

from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from annotator.forms.seen import SeenField
from annotator.models import LONGEST_URL, Webhook
from annotator.refusals import Refusal
from annotator.stale_edits import FIELD, sealed
from annotator.webhooks.endpoints import Wish
from annotator.webhooks.events import EVENTS


class WebhookForm(forms.Form):
    """Asks where events are posted to, and which."""

    url = forms.CharField(
        label=_("URL"),
        max_length=LONGEST_URL,
        help_text=_("Where events are posted to, such as https://example.org/hook."),
        widget=forms.URLInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    events = forms.MultipleChoiceField(
        label=_("Events"),
        required=False,
        choices=[(name, format_lazy("{}: {}", name, text)) for name, text in EVENTS.items()],
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Tick none to get all of them."),
    )
    active = forms.BooleanField(label=_("Active"), required=False, initial=True)
    seen = SeenField()

    @classmethod
    def of(cls, webhook: Webhook, data: Any = None) -> "WebhookForm":
        """Returns the form as the webhook is, or with what was sent."""
        shown = {"url": webhook.url, "events": webhook.events, "active": webhook.active}
        return cls(data, initial=shown | {FIELD: sealed(shown)})

    def wish(self) -> Wish:
        """Returns a valid form's answers."""
        return Wish(**{name: value for name, value in self.cleaned_data.items() if name != FIELD})

    def show(self, refused: Refusal) -> None:
        """Shows a refusal beside its field, or above the form."""
        for field, texts in (refused.errors or {"": [str(refused)]}).items():
            self.add_error(field if field in self.fields else None, texts[0])
