"""Sends a release's files, one by one or as one archive, whole or in parts."""

import mimetypes

from django.http import Http404, HttpRequest, HttpResponseBase

from annotator import audit
from annotator.models import Release, User
from annotator.releases.folder import members_of
from annotator.releases.jobs import folder_of
from annotator.web.ranged_files import ranged_content, ranged_file
from annotator.web.tar_archives import TAR, Archive

_KINDS = {".md": "text/markdown; charset=utf-8", ".parquet": "application/vnd.apache.parquet"}


def sent_file(request: HttpRequest, release: Release, path: str, *, reader: User) -> HttpResponseBase:
    """Returns a file of the release. Raises Http404, and Refusal as `folder_of` does."""
    folder, file = folder_of(release, reader), release.file_called(path)
    if file is None:
        raise Http404
    audit.record("release.downloaded", str(release), project=release.project, file=path)
    place = folder / path
    kind = _KINDS.get(place.suffix) or mimetypes.guess_type(path)[0] or "application/octet-stream"
    return ranged_file(request, place, content_type=kind, name=place.name, sha256=file["sha256"])


def sent_archive(request: HttpRequest, release: Release, *, reader: User) -> HttpResponseBase:
    """Returns all files of the release as a tar file. Raises Refusal as `folder_of` does."""
    folder = folder_of(release, reader)
    audit.record("release.downloaded", str(release), project=release.project)
    return ranged_content(
        request,
        lambda: Archive(members_of(release, folder)),
        size=release.archive_size,
        content_type=TAR,
        name=f"{release.project.slug}-release-{release.number}.tar",
        sha256=release.archive_sha256,
    )
