"""Fetches the files of a data set from the Hugging Face Hub, for an import that names it as hub:OWNER/NAME."""

import os
import re
from pathlib import Path

from django.conf import settings

from annotator.refusals import Refusal
from annotator.storage import disk_space

PREFIX = "hub:"
_NAME = re.compile(r"([\w.-]+/[\w.-]+)(?:/([^/].*))?")


class HubRefused(Refusal):
    """The Hub cannot be asked, or does not have the data set; the message says which and what to do."""

    status = 502
    code = "hub"


def fetch(name: str, folder: Path, *, endings: tuple[str, ...]) -> None:
    """Writes the files of rows of hub:OWNER/NAME, or of hub:OWNER/NAME/PATH, to the folder.

    The Hub's own variables count: HF_TOKEN for data sets that are not public, and HF_ENDPOINT for a mirror.

    Raises:
        HubRefused: Nothing was fetched.
        DiskNearlyFull: There is no room for the files.
    """
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HFValidationError, HTTPError  # type: ignore[attr-defined]
    except ImportError as missing:
        error = "Reading from the Hub needs the package huggingface_hub (pip install huggingface_hub)."
        raise HubRefused(error) from missing
    match = _NAME.fullmatch(name.removeprefix(PREFIX))
    if match is None:
        raise HubRefused(f"{name} names no data set: write hub:OWNER/NAME, or hub:OWNER/NAME/FOLDER.")
    repository, path = match[1], (match[2] or "").rstrip("/")
    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None, token=settings.HF_TOKEN or None)
    try:
        info = api.dataset_info(repository, files_metadata=True)
        files = [
            file
            for file in info.siblings or ()
            if file.rfilename.removesuffix(".gz").endswith(endings)
            and (not path or file.rfilename == path or file.rfilename.startswith(f"{path}/"))
        ]
        if not files:
            raise HubRefused(f"{name} holds no file of rows: they end with {', '.join(sorted(endings))}.")
        disk_space.require_room(extra=sum(file.size or 0 for file in files))
        for file in files:
            api.hf_hub_download(repository, file.rfilename, repo_type="dataset", revision=info.sha, local_dir=folder)
    except (HTTPError, HFValidationError, OSError) as wrong:
        first = str(wrong).strip().partition("\n")[0]
        raise HubRefused(f"{name} cannot be read from the Hub: {first or type(wrong).__name__}") from wrong
