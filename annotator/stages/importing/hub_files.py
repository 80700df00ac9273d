"""Fetches the files of a data set from the Hugging Face Hub, for an import that names it as hub:OWNER/NAME."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils.translation import gettext as _

from annotator.infrastructure.storage import disk_space
from annotator.infrastructure.storage import hub as storage_hub
from annotator.infrastructure.storage.hub import HubRefused
from annotator.stages.importing.sources import ENDINGS

if TYPE_CHECKING:
    from huggingface_hub import HfApi

PREFIX = "hub:"
LONGEST = 300
"""Characters of the name of a data set, folder or file."""
PATIENCE_SECONDS = 30.0
_CHUNK = 1 << 20
_NAME = re.compile(r"(\w[\w.-]*/\w[\w.-]*?)(?:@(\w[\w.-]*))?(?:/([^/].*))?")
"""Each part begins with a letter, digit or underscore: `..` in an address leads elsewhere."""


class BadHubName(HubRefused):
    """The name is none of a data set."""

    status = 400
    code = "bad_hub_name"


@dataclass(frozen=True)
class HubName:
    """A data set, and the folder or the file of it that is meant; an empty revision is the newest one."""

    repository: str
    revision: str = ""
    path: str = ""

    def __str__(self) -> str:
        revision, path = f"@{self.revision}" if self.revision else "", f"/{self.path}" if self.path else ""
        return f"{self.repository}{revision}{path}"


@dataclass(frozen=True)
class HubFile:
    """A file of rows: its name with the commit that was looked at, and its size in bytes."""

    name: HubName
    size: int


def parsed(name: str) -> HubName:
    """Reads OWNER/NAME, OWNER/NAME@REVISION or either with /FOLDER or /FILE. Raises BadHubName."""
    match = _NAME.fullmatch(name.strip().removeprefix(PREFIX)) if len(name) <= LONGEST and name.isprintable() else None
    if match is None:
        text = _("%(name)s names no data set: write OWNER/NAME, or OWNER/NAME/FOLDER.")
        raise BadHubName(text % {"name": name[:LONGEST]})
    return HubName(match[1], match[2] or "", (match[3] or "").rstrip("/"))


def files_of(name: HubName, *, token: str | bool) -> list[HubFile]:
    """Asks the Hub for the files of rows that are meant, in the order of their names.

    `token` is the Hub's; False asks as a stranger, who sees public data sets alone. HF_ENDPOINT names a mirror.

    Raises:
        HubRefused: There are none, or the Hub does not answer.
    """
    with _client(name, token=token) as api:
        info = api.dataset_info(name.repository, revision=name.revision or None, files_metadata=True)
    files = [
        HubFile(HubName(name.repository, info.sha or "", file.rfilename), file.size or 0)
        for file in info.siblings or ()
        if file.rfilename.removesuffix(".gz").endswith(ENDINGS)
        and (not name.path or file.rfilename == name.path or file.rfilename.startswith(f"{name.path}/"))
    ]
    if not files:
        text = _("%(name)s holds no file of rows: they end with %(endings)s.")
        raise HubRefused(text % {"name": name, "endings": ", ".join(sorted(ENDINGS))})
    return sorted(files, key=lambda file: file.name.path)


def fetch(name: str, folder: Path) -> None:
    """Writes the files of rows of hub:OWNER/NAME, or of hub:OWNER/NAME/PATH, to the folder.

    The Hub's own variables count: HF_TOKEN for data sets that are not public, and HF_ENDPOINT for a mirror.

    Raises:
        HubRefused: Nothing was fetched.
        DiskNearlyFull: There is no room for the files.
    """
    meant, token = parsed(name), settings.HF_TOKEN or False
    files = files_of(meant, token=token)
    disk_space.require_room(extra=sum(file.size for file in files))
    with _client(meant, token=token) as api:
        for file in files:
            api.hf_hub_download(
                file.name.repository,
                file.name.path,
                repo_type="dataset",
                revision=file.name.revision,
                local_dir=folder,
            )


@contextmanager
def opened(file: HubFile) -> Iterator[Callable[[int], bytes]]:
    """Opens a public file; what it yields reads the next piece, and nothing at the end. Raises HubRefused.

    The library's own download ends with the file or not at all: it has no place to sign that the worker lives, to stop
    where the disk is full, or to count more bytes than were announced.
    """
    with _client(file.name, token=False):
        from huggingface_hub import get_session, hf_hub_url

        name = file.name
        address = hf_hub_url(
            name.repository, name.path, repo_type="dataset", revision=name.revision, endpoint=storage_hub.endpoint()
        )
        # Without the header of a token: as a stranger.
        with get_session().stream("GET", address, follow_redirects=True, timeout=PATIENCE_SECONDS) as answer:
            answer.raise_for_status()
            pieces = answer.iter_bytes(_CHUNK)
            yield lambda _size: next(pieces, b"")


def _client(name: HubName, *, token: str | bool) -> AbstractContextManager["HfApi"]:
    def failed(why: str) -> str:
        return _("%(name)s cannot be read from the Hub: %(why)s") % {"name": f"{PREFIX}{name}", "why": why}

    return storage_hub.client(failed, token=token)
