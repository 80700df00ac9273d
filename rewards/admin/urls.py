"""The button of the admin's opening page, beside the admin's own addresses."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from annotator.infrastructure.web.acting import show_refusal
from annotator.reading.access import user_of
from rewards.admin import installation


@require_POST
def send_test_mail(request: HttpRequest) -> HttpResponse:
    """Sends the administrator a mail, or shows why none can be sent."""
    user = user_of(request)
    if not user.is_superuser:
        raise PermissionDenied
    with show_refusal(request):
        installation.send_test_mail(user)
        messages.success(request, _("A test mail is on its way to %(address)s.") % {"address": user.email})
    return redirect("admin:index")


urlpatterns = [path("test-mail/", send_test_mail, name="send-test-mail")]
