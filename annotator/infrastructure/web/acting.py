"""Does what a form of a page asks for, or shows its reader why it cannot be done."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse

from annotator.infrastructure.refusals import Refusal

INVALID = 422


@contextmanager
def show_refusal(request: HttpRequest) -> Iterator[None]:
    """Ends the block at the first refusal and shows it on the next page, so the view goes on behind the block."""
    try:
        yield
    except Refusal as refused:
        messages.error(request, str(refused))


def answers_scripts(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Lets a script that accepts JSON alone send the view's form: what the next page would say is the whole answer.

    That is {"said": [...]} without what went as it should, or {"detail": ...} with status 409 where it is refused, and
    with 401 where the form's `user` is somebody else. A form with faults comes back as the page that shows them, with
    status 422.
    """

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.accepts("text/html"):
            return view(request, *args, **kwargs)
        if request.POST.get("user", str(request.user.pk)) != str(request.user.pk):
            return JsonResponse({"detail": "Somebody else is logged in."}, status=401)
        response = view(request, *args, **kwargs)
        if response.status_code == INVALID:
            return response
        said = list(messages.get_messages(request))
        if refused := [str(one) for one in said if one.level == messages.ERROR]:
            return JsonResponse({"detail": " ".join(refused)}, status=409)
        return JsonResponse({"said": [str(one) for one in said if one.level != messages.SUCCESS]})

    return answer
