"""Sends a model's files, one by one or as one archive, whole or in parts."""

import hashlib
import io
import mimetypes
from pathlib import Path, PurePosixPath

from django.http import Http404, HttpRequest, HttpResponseBase

from annotator import audit
from annotator.web.ranged_files import Seekable, ranged_content
from annotator.web.tar_archives import TAR, Archive
from rewards.model_downloads.files import ModelFile, files_of, members_of, part_of
from rewards.models import RewardModel

_KINDS = {".md": "text/markdown; charset=utf-8", ".jinja": "text/plain; charset=utf-8"}


def sent_file(request: HttpRequest, model: RewardModel, path: str) -> HttpResponseBase:
    """Returns the file with this path. Raises Http404, and FilesErased and FilesMissing as `files_of` does."""
    file = next((file for file in files_of(model) if file.path == path), None)
    if file is None:
        raise Http404
    _note(model, file=path)
    name = PurePosixPath(path)
    kind = _KINDS.get(name.suffix) or mimetypes.guess_type(name.name)[0] or "application/octet-stream"
    return ranged_content(
        request, lambda: _opened(file), size=file.size, content_type=kind, name=name.name, sha256=file.sha256
    )


def _opened(file: ModelFile) -> Seekable:
    return file.content.open("rb") if isinstance(file.content, Path) else io.BytesIO(file.content)


def sent_archive(request: HttpRequest, model: RewardModel, *, part: str = "") -> HttpResponseBase:
    """Returns the files, or those of one part, as a tar file.

    Raises:
        FilesErased, FilesMissing, NoRewardFolder: as `files_of` and `part_of` do.
    """
    files = part_of(files_of(model), part)
    members = members_of(model, files)
    archive = Archive(members)
    _note(model, part=part or "all")
    # To hash gigabytes for each request would take longer than to send them; the files' hashes stand for them.
    tag = hashlib.sha256("".join(f"{file.path} {file.sha256}\n" for file in files).encode()).hexdigest()
    name = "-".join(filter(None, [model.project.slug, "reward-model", str(model.version), part]))
    return ranged_content(request, lambda: archive, size=archive.size, content_type=TAR, name=f"{name}.tar", tag=tag)


def _note(model: RewardModel, **details: str) -> None:
    audit.record("model.downloaded", f"model version {model.version}", project=model.project, **details)
