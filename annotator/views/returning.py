"""Where somebody came from."""

from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme


def back(request: HttpRequest) -> str:
    """The page of ours that led here, or nothing."""
    address = request.POST.get("next") or request.GET.get("next", "")
    # What is no path would be taken for the name of a view.
    return (
        address
        if address.startswith("/") and url_has_allowed_host_and_scheme(address, allowed_hosts={request.get_host()})
        else ""
    )
