"""The Hugging Face Hub by its own library: one client for what is read and what is taken there, and its refusals."""

import os
import textwrap
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.translation import gettext as _

from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage.hidden_paths import without_places

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_LONGEST_REASON = 400


class HubRefused(Refusal):
    """The Hub cannot be asked, or does not do what it is asked; the message says what and why."""

    status = 502
    code = "hub"


def endpoint() -> str | None:
    """Returns the address of a mirror, if the Hub's own variable names one."""
    return os.environ.get("HF_ENDPOINT") or None


@contextmanager
def client(failed: Callable[[str], str], *, token: str | bool) -> "Iterator[HfApi]":
    """Yields the Hub's client. `failed` makes what an error says from the reason.

    `token` is the Hub's; False asks as a stranger, who sees public data sets alone.

    Raises:
        HubRefused: The library is not there, the Hub refused, or it could not be reached.
    """
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ImportError as missing:
        error = _("The package huggingface_hub is not installed: pip install huggingface_hub.")
        raise HubRefused(error) from missing
    # Its bases are the errors of the library that speaks HTTP, which is another one from version to version.
    errors_of_http: tuple[Any, ...] = HfHubHTTPError.__bases__
    try:
        yield HfApi(endpoint=endpoint(), token=token)
    except (*errors_of_http, HFValidationError, OSError) as wrong:
        why = without_places(str(wrong) or type(wrong).__name__)
        if settings.HF_TOKEN:
            why = why.replace(settings.HF_TOKEN, "...")
        raise HubRefused(failed(textwrap.shorten(why, _LONGEST_REASON))) from wrong


def uploads(what: str) -> AbstractContextManager["HfApi"]:
    """Returns the client for whoever takes something to the Hub, which only commands do; `what` it is, an error says.

    Raises:
        HubRefused: There is no token that may write; or as `client` does.
    """
    if not settings.HF_TOKEN:
        raise HubRefused("Set HF_TOKEN to a token of the Hugging Face Hub that may write, and try again.")
    return client(lambda why: f"The Hub did not take the {what}: {why}", token=settings.HF_TOKEN)


def require_ready() -> None:
    """Raises HubRefused where nothing can be taken to the Hub: without a token, or without the library."""
    with uploads("files"):
        pass
