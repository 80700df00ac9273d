"""Takes files to the Hugging Face Hub. Only commands do so, for whoever runs the installation."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.conf import settings

from annotator.refusals import Refusal
from annotator.storage.hidden_paths import without_places

if TYPE_CHECKING:
    from huggingface_hub import HfApi


class CannotPush(Refusal):
    """A folder cannot be taken to the Hub; the message says what is missing, or what the Hub answered."""

    code = "cannot_push"


def require_ready() -> None:
    """Raises CannotPush where there is no token, or no library."""
    if not settings.HF_TOKEN:
        raise CannotPush("Set HF_TOKEN to a token of the Hugging Face Hub that may write, and try again.")
    try:
        import huggingface_hub  # noqa: F401  it takes half a second, and only this command needs it
    except ImportError as missing:
        raise CannotPush(
            "The package huggingface_hub is not installed. It comes with the packages for training, or by "
            "`pip install huggingface_hub`."
        ) from missing


@contextmanager
def hub_api(what: str) -> "Iterator[HfApi]":
    """Yields the Hub's API, for whoever takes something there; `what` it is, an error says.

    Raises:
        CannotPush: See `require_ready`; or the Hub refused, or could not be reached.
    """
    require_ready()
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    # Its bases are the errors of the library that speaks HTTP, which is another one from version to version.
    errors_of_http: tuple[Any, ...] = HfHubHTTPError.__bases__
    try:
        yield HfApi(token=settings.HF_TOKEN)
    except (*errors_of_http, HFValidationError) as refused:
        reason = without_places(str(refused)).replace(settings.HF_TOKEN, "...").strip()
        raise CannotPush(f"The Hub did not take the {what}: {reason}") from refused
