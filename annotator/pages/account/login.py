"""The login and logout pages, where the admin sends those whom it does not let in, and what a stale form gets."""

import re
from typing import Any

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView, LogoutView, redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_GET

from annotator.accounts import logins
from annotator.pages.account.login_form import LoginForm
from annotator.reading.access import user_of
from annotator.stages import assignment

_KEEPS_ANSWERS = re.compile(r"/assignments/\d+/|/qualification/\d+/|/projects/[^/]+/annotate/")


class Login(LoginView):
    """Asks for a username and password; answers 429 while too many wrong passwords bar another attempt."""

    authentication_form = LoginForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Says whether the visitor comes from a page that keeps the answers of a half-filled form."""
        context = super().get_context_data(**kwargs)
        return context | {"keeps_answers": bool(_KEEPS_ANSWERS.match(self.get_redirect_url()))}

    def form_valid(self, form: Any) -> HttpResponse:
        response = super().form_valid(form)
        logins.note_login(self.request, response, user_of(self.request))
        return response

    def form_invalid(self, form: Any) -> HttpResponse:
        response = super().form_invalid(form)
        if form.wait:
            response.status_code = form.wait.status
            for name, value in form.wait.headers.items():
                response[name] = value
        return response


@login_not_required
@require_GET
def admin_login(request: HttpRequest) -> HttpResponse:
    """Leads to the one login page, or says that the admin is not for the account that is logged in."""
    if not request.user.is_authenticated:
        return redirect_to_login(request.GET.get("next") or reverse("admin:index"))
    if not admin.site.has_permission(request):
        raise PermissionDenied
    return redirect("admin:index")


@method_decorator(login_not_required, name="dispatch")
class Logout(LogoutView):
    """Ends the session."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        # Before the session ends: afterwards nobody knows whose it was.
        logins.note_logout(request)
        if request.user.is_authenticated:
            assignment.let_go(request.user)
        return super().post(request, *args, **kwargs)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Explains the refusal: most often somebody logged out, or logged in as somebody else, after opening the form."""
    return render(request, "csrf.html", {"reason": reason}, status=403)
