"""The login and logout pages: one login for everybody, and one for the admin, which lets only staff in."""

import re
from typing import Any

from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse

from annotator.access import user_of
from annotator.accounts import logins
from annotator.forms.login import LoginForm, StaffLoginForm

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


class StaffLogin(Login):
    """The login page of the admin, which lets only staff in."""

    authentication_form = StaffLoginForm
    # The admin sends accounts without access here: sending them back would never end.
    redirect_authenticated_user = False
    next_page = "admin:index"


class Logout(LogoutView):
    """Ends the session."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        # Before the session ends: afterwards nobody knows whose it was.
        logins.note_logout(request)
        return super().post(request, *args, **kwargs)
