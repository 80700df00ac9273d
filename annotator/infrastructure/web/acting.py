"""Does what a form of a page asks for, or shows its reader why it cannot be done."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib import messages
from django.http import HttpRequest

from annotator.infrastructure.refusals import Refusal


@contextmanager
def show_refusal(request: HttpRequest) -> Iterator[None]:
    """Ends the block at the first refusal and shows it on the next page, so the view goes on behind the block."""
    try:
        yield
    except Refusal as refused:
        messages.error(request, str(refused))
