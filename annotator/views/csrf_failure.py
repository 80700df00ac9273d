"""The page for a form that the session refuses."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The form's token does not fit the session: most often somebody logged out, or in as another, in between."""
    return render(request, "csrf.html", {"reason": reason}, status=403)
