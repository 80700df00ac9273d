"""The page that a form leads back to."""

from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme


def back(request: HttpRequest) -> str:
    """Returns the address of our page that the request names as `next`, or an empty text."""
    address = request.POST.get("next") or request.GET.get("next", "")
    # An address elsewhere, `//host/` included, would make our pages lead to somebody else's; `redirect` takes what is
    # no path for the name of a view.
    return (
        address
        if address.startswith("/") and url_has_allowed_host_and_scheme(address, allowed_hosts={request.get_host()})
        else ""
    )
