"""The webhooks of a project, in its settings: the list, one with its log, and the buttons of both."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.stale_edits import FIELD, ChangedMeanwhile, sealed
from annotator.infrastructure.web.acting import show_refusal
from annotator.infrastructure.web.paging import page_of
from annotator.infrastructure.webhooks.events import EVENTS
from annotator.managing import webhooks as endpoints
from annotator.managing.webhooks import WebhookInput
from annotator.models import LONGEST_URL, Project, Webhook, WebhookDelivery
from annotator.pages.projects.seen import SeenField, theirs
from annotator.reading import access
from annotator.reading.access import user_of


class WebhookForm(forms.Form):
    """Asks where events are posted to, and which."""

    url = forms.CharField(
        label=gettext_lazy("URL"),
        max_length=LONGEST_URL,
        help_text=gettext_lazy("Where events are posted to, such as https://example.org/hook."),
        widget=forms.URLInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    events = forms.MultipleChoiceField(
        label=gettext_lazy("Events"),
        required=False,
        choices=[(name, format_lazy("{}: {}", name, text)) for name, text in EVENTS.items()],
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("Tick none to get all of them."),
    )
    active = forms.BooleanField(label=gettext_lazy("Active"), required=False, initial=True)
    seen = SeenField()

    @classmethod
    def of(cls, webhook: Webhook, data: Any = None) -> "WebhookForm":
        """Returns the form as the webhook is, or with what was sent."""
        shown = {"url": webhook.url, "events": webhook.events, "active": webhook.active}
        return cls(data, initial=shown | {FIELD: sealed(shown)})

    def wish(self) -> WebhookInput:
        """Returns a valid form's answers."""
        return WebhookInput(**{name: value for name, value in self.cleaned_data.items() if name != FIELD})

    def show(self, refused: Refusal) -> None:
        """Shows a refusal beside its field, or above the form."""
        for field, texts in (refused.errors or {"": [str(refused)]}).items():
            self.add_error(field if field in self.fields else None, texts[0])


PAGE = 25


@require_http_methods(["GET", "POST"])
def webhooks(request: HttpRequest, slug: str) -> HttpResponse:
    """Lists the webhooks; a POST makes one, and shows its secret only this once."""
    project = access.managed_project(user_of(request), slug)
    form = WebhookForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            made, secret = endpoints.make(project, form.wish(), by=user_of(request), now=database_now())
        except Refusal as refused:
            form.show(refused)
        else:
            return _secret(request, made, secret)
    rows = list(endpoints.webhooks_of(project))
    page = {"project": project, "form": form, "rows": rows, "full": len(rows) >= endpoints.MOST, "most": endpoints.MOST}
    return render(request, "workspace/webhooks.html", page, status=200 if request.method == "GET" else 422)


@require_http_methods(["GET", "POST"])
def webhook(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Shows a webhook with what was sent to it; a POST changes it."""
    row = _webhook(request, slug, pk)
    form = WebhookForm.of(row, request.POST if request.method == "POST" else None)
    page: dict[str, Any] = {"project": row.project, "webhook": row, "form": form, **_log(request, row)}
    if form.is_valid():
        try:
            endpoints.change(row, form.wish(), seen=form.cleaned_data[FIELD])
        except ChangedMeanwhile as stale:
            page["theirs"] = theirs(form, WebhookForm.of(_webhook(request, slug, pk)), stale)
            return render(request, "workspace/webhook.html", page, status=409)
        except Refusal as refused:
            form.show(refused)
        else:
            messages.success(request, _("The webhook is saved."))
            return redirect("webhook", slug, pk)
    return render(request, "workspace/webhook.html", page, status=200 if request.method == "GET" else 422)


@require_GET
def deliveries(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The log alone, which the page reads again while something is about to be sent."""
    row = _webhook(request, slug, pk)
    page = {"project": row.project, "webhook": row, **_log(request, row)}
    return render(request, "workspace/_webhook_deliveries.html", page)


@require_POST
def test_webhook(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Sends a test, whose outcome the log shows."""
    with show_refusal(request):
        endpoints.send_test(_webhook(request, slug, pk))
        messages.success(request, _("The test is being sent. Its outcome is in the log below."))
    return redirect("webhook", slug, pk)


@require_POST
def rotate_webhook(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Makes a new secret, and shows it only this once."""
    row = _webhook(request, slug, pk)
    return _secret(request, row, endpoints.rotate(row, now=database_now()), is_new=False)


@require_POST
def delete_webhook(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Deletes a webhook with its log."""
    endpoints.delete(_webhook(request, slug, pk))
    messages.success(request, _("The webhook is deleted. Nothing is sent to it any more."))
    return redirect("webhooks", slug)


@require_POST
def retry_delivery(request: HttpRequest, slug: str, pk: int, delivery_id: int) -> HttpResponse:
    """Sends a delivery again."""
    rows = endpoints.deliveries_of(_webhook(request, slug, pk))
    with show_refusal(request):
        endpoints.send_again(get_object_or_404(rows, pk=delivery_id))
        messages.success(request, _("The event is being sent again."))
    return redirect("webhook", slug, pk)


def _webhook(request: HttpRequest, slug: str, pk: int) -> Webhook:
    project: Project = access.managed_project(user_of(request), slug)
    return get_object_or_404(endpoints.webhooks_of(project), pk=pk)


def _secret(request: HttpRequest, row: Webhook, secret: str, *, is_new: bool = True) -> HttpResponse:
    page = {"project": row.project, "webhook": row, "secret": secret, "is_new": is_new}
    return render(request, "workspace/webhook_secret.html", page)


def _log(request: HttpRequest, row: Webhook) -> dict[str, Any]:
    page = page_of(request, endpoints.deliveries_of(row), size=PAGE)
    waiting = [one for one in page["rows"] if one.state == WebhookDelivery.State.WAITING]
    # Read again while a first attempt is to come; later ones may be hours away.
    under_way = row.active and any(one.attempts == 0 or one.event == "webhook.test" for one in waiting)
    return page | {"under_way": under_way}
