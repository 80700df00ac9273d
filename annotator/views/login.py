"""Logging in and out: one page for everybody, and the admin's, which lets staff in only."""

from typing import Any

from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse

from annotator.access import user_of
from annotator.accounts import logins
from annotator.forms.login import LoginForm, StaffLoginForm


class Login(LoginView):
    """Asks for name and password; answers 429 while no more passwords are looked at."""

    authentication_form = LoginForm
    redirect_authenticated_user = True

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
    """The same page, for whoever wants to enter the admin."""

    authentication_form = StaffLoginForm
    redirect_authenticated_user = False
    next_page = "admin:index"


class Logout(LogoutView):
    """Logs out: ends the session."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        logins.note_logout(request)
        return super().post(request, *args, **kwargs)
