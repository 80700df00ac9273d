"""Sends a model's files, one by one or as one archive, whole or in parts."""

import hashlib
import io
import mimetypes
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from django.http import Http404, HttpRequest, HttpResponseBase

from annotator.infrastructure import audit
from annotator.infrastructure.storage import store
from annotator.infrastructure.web.ranged_files import ranged_content
from annotator.infrastructure.web.tar_archives import TAR, Member, TarArchive
from rewards.model_downloads.files import ModelFile, files_of, members_of, part_of
from rewards.models import RewardModel

_KINDS = {".md": "text/markdown; charset=utf-8", ".jinja": "text/plain; charset=utf-8"}


def sent_file(request: HttpRequest, model: RewardModel, path: str) -> HttpResponseBase:
    """Returns the file with this path. Raises Http404, and Refusal as `files_of` does."""
    file = file_with_path(files_of(model), path)
    _note(model, file=path)
    return answer_with_file(request, file)


def file_with_path(files: Sequence[ModelFile], path: str) -> ModelFile:
    """Returns the file with this path; raises Http404 where there is none."""
    file = next((file for file in files if file.path == path), None)
    if file is None:
        raise Http404
    return file


def answer_with_file(request: HttpRequest, file: ModelFile) -> HttpResponseBase:
    """Returns the file's content, or the part that the request asks for."""
    name = PurePosixPath(file.path)
    kind = _KINDS.get(name.suffix) or mimetypes.guess_type(name.name)[0] or "application/octet-stream"
    return ranged_content(
        request,
        lambda: store.opened(file.content) if isinstance(file.content, Path) else io.BytesIO(file.content),
        size=file.size,
        content_type=kind,
        name=name.name,
        sha256=file.sha256,
    )


def sent_archive(request: HttpRequest, model: RewardModel, *, part: str = "") -> HttpResponseBase:
    """Returns the files, or those of one part, as a tar file.

    Raises:
        Refusal: as `files_of` and `part_of` do.
    """
    files = part_of(files_of(model), part)
    members = members_of(model, files)
    _note(model, part=part or "all")
    name = "-".join(filter(None, [model.project.slug, "reward-model", str(model.version), part]))
    return answer_with_archive(request, files, members, name=name)


def answer_with_archive(
    request: HttpRequest, files: Sequence[ModelFile], members: Sequence[Member], *, name: str
) -> HttpResponseBase:
    """Returns the members as a tar file of this name, or the part that the request asks for."""
    archive = TarArchive(members)
    # To hash gigabytes for each request would take longer than to send them; the files' hashes stand for them.
    tag = hashlib.sha256("".join(f"{file.path} {file.sha256}\n" for file in files).encode()).hexdigest()
    return ranged_content(request, lambda: archive, size=archive.size, content_type=TAR, name=f"{name}.tar", tag=tag)


def _note(model: RewardModel, **details: str) -> None:
    audit.record("model.downloaded", f"model version {model.version}", project=model.project, **details)
