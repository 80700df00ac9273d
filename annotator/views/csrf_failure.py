"""The page for a form whose token does not fit the session."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Explains the refusal: most often somebody logged out, or logged in as somebody else, after opening the form."""
    return render(request, "csrf.html", {"reason": reason}, status=403)
