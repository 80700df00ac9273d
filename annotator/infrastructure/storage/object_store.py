"""Talks to the object store that ARTIFACTS_URL names: contents by their SHA-256, and the mark that says whose it is.

The library is used here alone. It must not be used in a process that is forked afterwards.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.translation import gettext as _

from annotator.infrastructure.refusals import Refusal

if TYPE_CHECKING:
    from obstore.store import ObjectStore

PART = 16 << 20
"""Bytes of a file that travel in one request."""
AT_ONCE = 4
PATIENCE_SECONDS, RETRIES = 60, 3
"""How long one request may take, and how often it is repeated."""
MARK = "installation"
_log = logging.getLogger(__name__)


class StoreAway(Refusal):
    """The object store does not answer, or refuses this process."""

    status = 503
    code = "store_away"


@cache
def _connected(url: str, seconds: int, retries: int) -> "ObjectStore":
    from obstore.store import from_url  # noqa: PLC0415  without an object store nobody needs it

    # Within a cluster a server often has no certificate: it is asked without encryption only where its address says so.
    plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
    options: Any = {"timeout": f"{seconds}s", "connect_timeout": "2s", "allow_http": plain}
    return from_url(url, client_options=options, retry_config={"max_retries": retries})


def _store() -> "ObjectStore":
    return _connected(settings.ARTIFACTS_STORE, PATIENCE_SECONDS, RETRIES)


@contextmanager
def _answering() -> Iterator[None]:
    """Turns what the library raises into StoreAway, but for what is missing."""
    from obstore.exceptions import BaseError  # noqa: PLC0415

    try:
        yield
    except FileNotFoundError:
        raise
    except (BaseError, OSError) as error:
        _log.warning("the object store: %s", str(error).partition("\n")[0])
        raise StoreAway(_("The object store of the artifacts does not answer. Try again in a moment.")) from error


def _key(sha256: str) -> str:
    return f"sha256/{sha256[:2]}/{sha256}"


def part_of(sha256: str, *, start: int, length: int) -> bytes:
    """Returns some bytes of a content. Raises FileNotFoundError and StoreAway."""
    import obstore  # noqa: PLC0415

    with _answering():
        return bytes(obstore.get_range(_store(), _key(sha256), start=start, length=length))


def upload(sha256: str, file: Path | bytes) -> None:
    """Stores a content, whole or not at all. Raises StoreAway."""
    import obstore  # noqa: PLC0415

    with _answering():
        obstore.put(_store(), _key(sha256), file, chunk_size=PART, max_concurrency=AT_ONCE)


def holds(sha256: str) -> bool:
    """Returns whether the content is there. Raises StoreAway."""
    import obstore  # noqa: PLC0415

    with _answering(), suppress(FileNotFoundError):
        obstore.head(_store(), _key(sha256))
        return True
    return False


def delete(sha256: str) -> None:
    """Deletes a content, if it is there. Raises StoreAway."""
    import obstore  # noqa: PLC0415

    with _answering(), suppress(FileNotFoundError):
        obstore.delete(_store(), _key(sha256))


def older_than(moment: datetime) -> Iterator[set[str]]:
    """Yields the hashes of the contents that were stored before, some at a time. Raises StoreAway."""
    import obstore  # noqa: PLC0415

    with _answering():
        for batch in obstore.list(_store(), "sha256", chunk_size=1000):
            yield {Path(one["path"]).name for one in batch if one["last_modified"] < moment}


def marked_as() -> bytes | None:
    """Returns what `mark` has written; None where nobody has. Raises StoreAway, within seconds."""
    import obstore  # noqa: PLC0415

    with _answering(), suppress(FileNotFoundError):
        return bytes(obstore.get(_connected(settings.ARTIFACTS_STORE, 2, 0), MARK).bytes())
    return None


def mark(content: bytes) -> None:
    """Writes what says whose store this is. Raises StoreAway."""
    import obstore  # noqa: PLC0415

    with _answering():
        obstore.put(_store(), MARK, content)
